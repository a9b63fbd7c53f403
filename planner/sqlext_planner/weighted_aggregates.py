"""Spark's aggregates over rows that each stand for n equal rows."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlext_planner.expressions import Column, Expression, SparkExpr

#: A column in the text of an expression.
_MARK = "\0"
_CALL = re.compile(
    rf"\b(?P<name>count|sum|avg|mean|min|max)\s*\(\s*(?P<distinct>distinct\s)?\s*(?P<argument>\*|\d+|{_MARK})\s*\)",
    re.IGNORECASE,
)
#: What may stand between the calls: arithmetic on their results.
_BETWEEN = re.compile(r"[\s\d.+*/()-]*")
_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_INTEGERS = (*_SMALL_INTEGERS, "bigint")
_FLOATS = ("float", "double")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
#: Digits of the factor n beside a decimal: what is left of 38.
_MOST_DIGITS = 18


def arguments(expression: Expression) -> tuple[Column, ...] | None:
    """The columns that the calls of an aggregate expression read; None if it holds more than calls known here."""
    if not isinstance(expression, SparkExpr) or not expression.deterministic or expression.has_subquery:
        return None
    if not all(isinstance(part, (str, Column)) for part in expression.parts):
        return None
    text, columns = _text(expression)
    calls = list(_CALL.finditer(text))
    rest = _CALL.sub("", text)
    if not calls or _BETWEEN.fullmatch(rest) is None or expression.has_window:
        return None
    return columns


def weighted(expression: Expression, dtypes: Mapping[Column, str | None], weight: Column) -> Expression | None:
    """The expression over rows that stand for `weight` (bigint, > 0) rows each; None where that is not exact."""
    if arguments(expression) is None or not isinstance(expression, SparkExpr):
        return None
    text, columns = _text(expression)
    left = iter(columns)
    parts: list[str | Expression] = []
    at = 0
    for call in _CALL.finditer(text):
        column = next(left) if call["argument"] == _MARK else None
        new = _weighted_call(call, column, None if column is None else dtypes.get(column), weight)
        if new is None:
            return None
        parts += [text[at : call.start()], *new]
        at = call.end()
    parts.append(text[at:])
    return SparkExpr(tuple(part for part in parts if part != ""), dtype=expression.dtype, span=expression.span)


def _text(expression: SparkExpr) -> tuple[str, tuple[Column, ...]]:
    text = "".join(part if isinstance(part, str) else _MARK for part in expression.parts)
    return text, tuple(part for part in expression.parts if isinstance(part, Column))


def _weighted_call(
    call: re.Match[str], column: Column | None, dtype: str | None, weight: Column
) -> tuple[str | Expression, ...] | None:
    name = call["name"].lower()
    if column is None:
        if name == "count" and not call["distinct"]:
            return ("coalesce(sum(", weight, "), 0L)")
        return (call[0],) if call["distinct"] or name in ("min", "max") else None
    if call["distinct"] or name in ("min", "max"):
        before, after = call[0].split(_MARK)
        return (before, column, after)
    if name == "count":
        return ("coalesce(sum(CASE WHEN ", column, " IS NOT NULL THEN ", weight, " END), 0L)")
    return _sum(column, dtype, weight) if name == "sum" else _average(column, dtype, weight)


def _sum(column: Column, dtype: str | None, weight: Column) -> tuple[str | Expression, ...] | None:
    """sum(column) in the type that Spark gives it."""
    if dtype in _SMALL_INTEGERS:  # 31 bits times a count of rows: no product overflows
        return ("sum(CAST(", column, " AS BIGINT) * ", weight, ")")
    if dtype == "bigint":
        return ("CAST(sum(CAST(", column, " AS DECIMAL(19,0)) * CAST(", weight, " AS DECIMAL(18,0))) AS BIGINT)")
    if dtype in _FLOATS:
        return ("sum(CAST(", column, " AS DOUBLE) * ", weight, ")")
    shape = _DECIMAL.fullmatch(dtype or "")
    if shape is None or int(shape[1]) > 38 - 1 - _MOST_DIGITS:
        return None
    total = f"DECIMAL({min(38, int(shape[1]) + 10)},{shape[2]})"
    return ("CAST(sum(", column, " * CAST(", weight, f" AS DECIMAL({_MOST_DIGITS},0))) AS {total})")


def _average(column: Column, dtype: str | None, weight: Column) -> tuple[str | Expression, ...] | None:
    """avg(column), a double for integers and floats; of decimals Spark rounds by rules of its own."""
    if dtype not in (*_INTEGERS, *_FLOATS):
        return None
    count = (" / sum(CASE WHEN ", column, " IS NOT NULL THEN ", weight, " END))")
    return ("(sum(CAST(", column, " AS DOUBLE) * ", weight, ")", *count)
