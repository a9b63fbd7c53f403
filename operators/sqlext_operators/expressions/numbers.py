"""Functions of whole numbers and floats.

Roots, exponentials and logarithms are those of Java's StrictMath, which Spark calls: fdlibm, whose last bit is not
always that of C's library (`fdlibm.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.flat import fixed_width, valid_mask
from sqlext_operators.expressions import fdlibm
from sqlext_operators.expressions.decimal_texts import rounded_double
from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.values import (
    Kernel,
    Values,
    both_valid,
    by_row,
    division_by_zero,
    inexact,
    like,
    overflow,
    whole,
)


def _negate(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``- x``; option: whether the least whole number is an error instead of itself."""
    return _signed(arguments[0], call, pc.negate(arguments[0]))


def _abs(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The absolute value; option as of `_negate`."""
    source = arguments[0]
    # of the least whole number it is itself, in numpy; Arrow has no such promise
    wraps = pa.types.is_integer(call.kind)
    return _signed(source, call, like(source, np.abs(fixed_width(source)), call.kind) if wraps else pc.abs(source))


def _signed(source: pa.Array, call: TaskCall, array: pa.Array) -> Values:
    if not pa.types.is_integer(call.kind) or not call.options[0]:
        return Values(array)
    least = np.iinfo(call.kind.to_pandas_dtype()).min
    wrong = pc.fill_null(pc.equal(source, pa.scalar(int(least), call.kind)), False).to_numpy(zero_copy_only=False)
    return Values(array).failing(wrong, overflow())


def _div(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``a DIV b`` of two bigints; option: whether a zero divisor and an overflow are errors."""
    ours, theirs = map(whole, arguments)
    valid = both_valid(arguments)
    zero = theirs == 0
    known = ~zero if valid is None else ~zero & valid
    divisor = np.where(known & (theirs != -1), theirs, 1)
    with np.errstate(over="ignore"):
        quotient = np.where(theirs == -1, -ours, np.sign(ours) * np.sign(divisor) * _magnitudes(ours, divisor))
    array = pa.array(quotient, pa.int64(), mask=~known)
    if not call.options[0]:
        return Values(array)
    zero = zero if valid is None else zero & valid
    wraps = known & (theirs == -1) & (ours == np.iinfo(np.int64).min)
    return Values(array).failing(zero, division_by_zero()).failing(wraps, overflow())


def _magnitudes(ours: Any, theirs: Any) -> Any:
    """|a| // |b| as int64, where the largest is 2**63 and divided by more than 1, or stands beside a sign."""
    with np.errstate(over="ignore"):
        return (np.abs(ours).view(np.uint64) // np.abs(theirs).view(np.uint64)).view(np.int64)


def _whole_of(arguments: Sequence[pa.Array], call: TaskCall, round: Callable[[Any], Any]) -> Values:
    """floor and ceil of a double, as a bigint: what is beyond it is its end, NaN is 0. Option: ANSI mode, in which
    these are an error since Spark 4.3, and left to Spark."""
    values = fixed_width(arguments[0])
    with np.errstate(invalid="ignore"):
        rounded = np.nan_to_num(round(values), nan=0.0)
        inside = (rounded >= -(2.0**63)) & (rounded < 2.0**63)
        limit = np.where(rounded < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        result = np.where(inside, np.where(inside, rounded, 0.0).astype(np.int64), limit)
    array = like(arguments[0], result, call.kind)
    beyond = ~inside | np.isnan(values)
    valid = valid_mask(array)
    rows = beyond if valid is None else beyond & valid
    return Values(array).failing(rows, inexact("a whole number beyond bigint")) if call.options[0] else Values(array)


def _sqrt(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    with np.errstate(invalid="ignore"):
        return Values(like(arguments[0], np.sqrt(fixed_width(arguments[0])), call.kind))


def _exp(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, fdlibm.exp)


def _power(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, fdlibm.power)


def _log(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The logarithm to the base of the option; NULL of what is not above 0."""
    logarithm = _LOGARITHMS[call.options[0]]
    return by_row(arguments, call, lambda value: None if value <= 0 else logarithm(value))


def _log_to(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``log(base, x)``."""
    return by_row(arguments, call, _quotient_of_logs)


def _quotient_of_logs(base: float, value: float) -> float | None:
    if base <= 0 or value <= 0:
        return None
    above, below = fdlibm.log(value), fdlibm.log(base)
    if below == 0:
        return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above) * math.copysign(1, below)
    return above / below


_LOGARITHMS: dict[str, Callable[[float], float]] = {
    "e": fdlibm.log,
    "2": lambda value: fdlibm.log(value) / fdlibm.log(2.0),
    "10": fdlibm.log10,
}


def _round(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A double rounded half up to a number of digits; options: the digits, Java's version (None: not known)."""
    digits, java = call.options

    def rounded(value: float) -> float:
        if math.isnan(value) or math.isinf(value):
            return value
        return float(rounded_double(value, digits, java)) + 0.0  # decimals have no negative zero

    return by_row(arguments, call, rounded)


KERNELS: dict[str, Kernel] = {
    "negate": _negate,
    "abs": _abs,
    "div": _div,
    "floor": partial(_whole_of, round=np.floor),
    "ceil": partial(_whole_of, round=np.ceil),
    "sqrt": _sqrt,
    "exp": _exp,
    "pow": _power,
    "log": _log,
    "log_to": _log_to,
    "round": _round,
}
