"""Comparisons with Spark's meaning, and the greatest and the least of several values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.values import Kernel, Values

#: Of arrays of one type, but for floats: in Arrow NaN equals nothing.
COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compared(comparator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """bool[n] of ``left comparator right`` of two arrays of one type, as `nodes.TaskComparison` says."""
    if comparator == "<=>":
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both, pc.fill_null(compared("=", left, right), False))
    if pa.types.is_null(left.type):
        return pa.nulls(len(left), pa.bool_())
    if pa.types.is_boolean(left.type):
        left, right = pc.cast(left, pa.int8()), pc.cast(right, pa.int8())
    if pa.types.is_floating(left.type):
        return _compared_floats(comparator, left, right)
    return COMPARISONS[comparator](left, right)


def _compared_floats(comparator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """NaN equals itself and is above all numbers."""
    if comparator in (">", ">="):
        return _compared_floats("<" if comparator == ">" else "<=", right, left)
    if comparator == "<>":
        return pc.invert(_compared_floats("=", left, right))
    ours, theirs = pc.is_nan(left), pc.is_nan(right)
    plain = COMPARISONS[comparator](left, right)
    if comparator == "=":
        return pc.or_(plain, pc.and_(ours, theirs))
    return pc.or_(plain, theirs if comparator == "<=" else pc.and_not(theirs, ours))


def _extreme(arguments: Sequence[pa.Array], call: TaskCall, comparator: str) -> Values:
    """The first value that is not NULL and beyond none of the others."""
    result = arguments[0]
    for array in arguments[1:]:
        beyond = pc.fill_null(compared(comparator, array, result), False)
        result = pc.if_else(pc.or_(beyond, pc.is_null(result)), array, result)
    return Values(result)


KERNELS: dict[str, Kernel] = {"greatest": partial(_extreme, comparator=">"), "least": partial(_extreme, comparator="<")}
