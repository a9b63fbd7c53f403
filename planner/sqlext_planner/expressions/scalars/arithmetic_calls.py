"""Arithmetic of numbers, and of times with intervals, with Spark's types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlext_operators.expressions import nodes as operators

from sqlext_planner.expressions.arithmetic import INTEGERS, decimal_type, widest
from sqlext_planner.expressions.scalars import coercion, rules
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.values import TIMES, Typed, arrow_type, called, constant, folded, widened
from sqlext_planner.expressions.typed import Interval

#: Microseconds of the units of intervals of days and less.
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_NUMBERS = frozenset(("whole", "float", "decimal"))


def combined(sign: str, left: Typed, right: Typed, settings: ScalarSettings) -> Typed | None:
    """``left sign right`` of two numbers, for + - * / %."""
    if left.dtype == "void" or right.dtype == "void":
        other = right if left.dtype == "void" else left
        left, right = (constant(None, other.dtype) if item.dtype == "void" else item for item in (left, right))
    families = {left.family, right.family}
    if not families <= _NUMBERS or not (settings.by_rows or _is_safe(sign, right, settings)):
        return None
    if "float" in families:
        return _of_type(sign, [left, right], _float_type(sign, left, right, settings), settings)
    if families == {"whole"}:
        dtype = "double" if sign == "/" else widest([left.dtype, right.dtype])
        return _of_type(sign, [left, right], dtype, settings)
    return _decimals(sign, left, right, settings)


def _is_safe(sign: str, divisor: Typed, settings: ScalarSettings) -> bool:
    """Whether no division by zero is an error."""
    return sign not in "/%" or not settings.ansi or bool(divisor.constant)


def _float_type(sign: str, left: Typed, right: Typed, settings: ScalarSettings) -> str:
    dtypes, families = (left.dtype, right.dtype), (left.family, right.family)
    wide = "double" in dtypes or "decimal" in families or (settings.ansi and "whole" in families)
    return "double" if sign == "/" or wide else "float"


def _of_type(sign: str, sides: Sequence[Typed], dtype: str, settings: ScalarSettings) -> Typed | None:
    """Whole numbers or floats in their common type."""
    known = [coercion.cast(side, dtype, settings) for side in sides]
    first, second = (None if side is None else side.expression for side in known)
    if first is None or second is None:
        return None
    may_fail = (sign in "/%" and not (sides[1].constant or 0)) or (sign in "+-*" and dtype in INTEGERS)
    checked = settings.ansi and may_fail
    call = operators.TaskArithmetic(sign, first, second, arrow_type(dtype), checked)  # type: ignore[arg-type]
    return folded(Typed(call, dtype))


def _decimals(sign: str, left: Typed, right: Typed, settings: ScalarSettings) -> Typed | None:
    shapes = [side.number.shape for side in (left, right)]
    known = [shape for shape in shapes if shape is not None]
    types = [decimal_type(*shape) for shape in known]
    names = [name for name in types if name is not None]
    if len(names) < 2:
        return None
    sides = [Typed(widened(side, name), name) for side, name in zip((left, right), names, strict=True)]
    (p, s), (q, t) = known
    digits = p + q + 1 if sign == "*" else max(p - s, q - t) + max(s, t) + 1
    dtype = coercion.decimal_result(sign, known[0], known[1])
    if sign in "+-*" and digits <= 38:
        first, second = (side.expression for side in sides)
        call = operators.TaskArithmetic(sign, first, second, arrow_type(dtype))  # type: ignore[arg-type]
        return folded(Typed(call, dtype))
    return called(f"decimal {sign}", sides, dtype, (settings.ansi,)) if settings.by_rows else None


def whole_quotient(left: Typed, right: Typed, settings: ScalarSettings) -> Typed | None:
    """``left DIV right``, a bigint."""
    families = {left.family, right.family}
    if not settings.by_rows or not families <= {"whole", "decimal"}:
        return None
    if families == {"whole"}:
        sides = [Typed(widened(side, "bigint"), "bigint") for side in (left, right)]
        return called("div", sides, "bigint", (settings.ansi,))
    shapes = [side.number.shape for side in (left, right)]
    names = [None if shape is None else decimal_type(*shape) for shape in shapes]
    sides = [Typed(widened(s, name), name) for s, name in zip((left, right), names, strict=True) if name is not None]
    return called("decimal div", sides, "bigint", (settings.ansi,)) if len(sides) == 2 else None


def negative(value: Typed, settings: ScalarSettings) -> Typed | None:
    """``- value``."""
    if value.dtype in INTEGERS and value.digits is None:
        kind = value.expression.type
        zero = operators.TaskConstant(0, kind)
        return folded(Typed(operators.TaskArithmetic("-", zero, value.expression, kind, settings.ansi), value.dtype))
    return rules.negative([value], settings) if value.family in _NUMBERS else None


def moved(moment: Typed, interval: Interval, sign: int, settings: ScalarSettings) -> Typed | None:
    """A time plus (`sign` 1) or minus (-1) an INTERVAL of days and less."""
    unit = _UNITS.get(interval.unit)
    if unit is None or not settings.by_rows:
        return None
    if moment.dtype == "date" and interval.unit == "day":
        return called("plus days", [moment, constant(interval.number, "int")], "date", (sign,))
    if moment.dtype == "date" and interval.unit not in ("week",):
        start = coercion.cast(moment, "timestamp", settings)
        return None if start is None else moved(start, interval, sign, settings)
    zone = _zone(moment, settings)
    if zone is None:
        return None
    return called("plus interval", [moment], moment.dtype, (sign * interval.number * unit, zone))


def moved_by_millis(moment: Typed, number: Typed, sign: int, settings: ScalarSettings) -> Typed | None:
    """A time plus or minus a whole number of milliseconds."""
    zone = _zone(moment, settings)
    if zone is None or number.family != "whole" or not settings.by_rows:
        return None
    millis: Any = Typed(widened(number, "bigint"), "bigint")
    return called("plus millis", [moment, millis], moment.dtype, (sign, zone))


def _zone(moment: Typed, settings: ScalarSettings) -> str | None:
    if moment.dtype not in TIMES:
        return None
    return "UTC" if moment.dtype == "timestamp_ntz" else settings.zone
