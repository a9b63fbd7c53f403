"""The types of keys and ends that several inputs have in common; the analyzer's checks, and those of real types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.numbers import decimal_shape
from sqlext_planner.expressions.types import common_type
from sqlext_planner.period_algebra.nodes import PeriodAlgebra
from sqlext_planner.periods.types import PeriodEnd, check_period_types

#: Digits of a decimal whose values are int64 codes.
_WORD_DIGITS = 18


def common_types(node: PeriodAlgebra, types: Sequence[Sequence[str]]) -> list[str]:
    """The type of each of the node's columns, from those of each input. Raises AnalysisError."""
    keys = list(types[0][:-2])
    for row in types[1:]:
        keys = [
            common_key_type(str(key), own, their, key.span)
            for key, own, their in zip(node.keys, keys, row, strict=False)
        ]
    places = [column.span for column in node.columns[-2:]]
    ends = [PeriodEnd(dtype, span) for row in types for dtype, span in zip(row[-2:], places, strict=True)]
    return [*keys, *(_end_type(node, ends),) * 2]


def common_key_type(key: str, own: str, their: str, span: Span | None) -> str:
    """The type in which keys of two inputs compare. Raises AnalysisError if there is none."""
    common = own if own == their else common_type(own, their)
    if common is None:
        raise AnalysisError(
            f"the keys of EXCEPT have different types, {own} and {their}: {key}",
            condition="key-type",
            span=span,
            help="cast one of them",
        )
    return common


def _end_type(node: PeriodAlgebra, ends: Sequence[PeriodEnd]) -> str:
    """The common type of all ends. Raises AnalysisError."""
    dtype = check_period_types(ends, (), node.empty)
    span = node.columns[-1].span
    if dtype is None:
        raise AnalysisError(
            "the ends of the periods have no type", condition="period-ends", span=span, help="CAST(... AS their type)"
        )
    if (decimal_shape(dtype) or (0, 0))[0] > _WORD_DIGITS:
        raise AnalysisError(
            f"an operation over periods does not take ends of type {dtype}",
            condition="period-ends",
            span=span,
            help=f"cast the ends to a decimal of at most {_WORD_DIGITS} digits",
        )
    return dtype
