"""Spark's aggregates over rows that each stand for n equal rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlext_planner.expressions.aggregate_calls import AggregateCall, aggregate_calls
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, SMALL_INTEGERS, arithmetic_type, decimal_shape
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.sql_tokens import Token, joined

#: Digits of the factor n beside a decimal: what is left of 38.
_MOST_DIGITS = 18


def arguments(expression: Expression) -> tuple[Column, ...] | None:
    """The columns that an aggregate expression reads; None if it holds more than calls known here."""
    pieces = aggregate_calls(expression)
    if pieces is None or not any(isinstance(piece, AggregateCall) for piece in pieces):
        return None
    read: list[Column] = []
    for piece in pieces:
        parts = piece.text if isinstance(piece, AggregateCall) else (piece,)
        found = [part for part in parts if isinstance(part, Expression)]
        if not all(map(is_movable, found)):
            return None
        read += [column for part in found for column in part.walk() if isinstance(column, Column)]
    return tuple(read)


def weighted(expression: Expression, dtypes: Mapping[Column, str | None], weight: Column) -> Expression | None:
    """The expression over rows that stand for `weight` (bigint, > 0) rows each; None where that is not exact."""
    if arguments(expression) is None or not isinstance(expression, SparkExpr):
        return None
    parts: list[Token] = []
    for piece in aggregate_calls(expression) or ():
        new = _weighted_call(piece, dtypes, weight) if isinstance(piece, AggregateCall) else (piece,)
        if new is None:
            return None
        parts += new
    return replace(expression, parts=joined(parts))


def _weighted_call(
    call: AggregateCall, dtypes: Mapping[Column, str | None], weight: Column
) -> tuple[Token, ...] | None:
    if not call.sees_multiplicity:
        return call.text
    value = call.filtered_argument
    if value is None:
        return ("coalesce(sum(", weight, "), 0L)")
    if call.name == "count":
        return ("coalesce(sum(CASE WHEN ", value, " IS NOT NULL THEN ", weight, " END), 0L)")
    dtype = arithmetic_type(value, dtypes)
    return _sum(value, dtype, weight) if call.name == "sum" else _average(value, dtype, weight)


def _sum(value: Expression, dtype: str | None, weight: Column) -> tuple[Token, ...] | None:
    """sum(value) in the type that Spark gives it."""
    if dtype in SMALL_INTEGERS:  # 31 bits times a count of rows: no product overflows
        return ("sum(CAST(", value, " AS BIGINT) * ", weight, ")")
    if dtype == "bigint":
        return ("CAST(sum(CAST(", value, " AS DECIMAL(19,0)) * CAST(", weight, " AS DECIMAL(18,0))) AS BIGINT)")
    if dtype in FLOATS:
        return ("sum(CAST(", value, " AS DOUBLE) * ", weight, ")")
    shape = decimal_shape(dtype)
    if shape is None or shape[0] > 38 - 1 - _MOST_DIGITS:
        return None
    total = f"DECIMAL({min(38, shape[0] + 10)},{shape[1]})"
    return ("CAST(sum(", value, " * CAST(", weight, f" AS DECIMAL({_MOST_DIGITS},0))) AS {total})")


def _average(value: Expression, dtype: str | None, weight: Column) -> tuple[Token, ...] | None:
    """avg(value), a double for integers and floats; of decimals Spark rounds by rules of its own."""
    if dtype not in (*INTEGERS, *FLOATS):
        return None
    count = (" / sum(CASE WHEN ", value, " IS NOT NULL THEN ", weight, " END))")
    return ("(sum(CAST(", value, " AS DOUBLE) * ", weight, ")", *count)
