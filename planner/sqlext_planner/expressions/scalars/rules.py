"""Functions whose expression depends on the types or the constants of their arguments.

A rule takes the arguments as its row of the table converts them, and gives None for what only Spark computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlext_operators.expressions import nodes as operators

from sqlext_planner.expressions.arithmetic import decimal_shape
from sqlext_planner.expressions.scalars import coercion, patterns
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.values import (
    COMPARED,
    TIMES,
    Typed,
    arrow_type,
    called,
    constant,
    folded,
    widened,
)

Arguments = Sequence[Typed]


def comparison(op: Any, left: Typed, right: Typed, settings: ScalarSettings) -> Typed | None:
    """``left op right``."""
    common = coercion.compared(left, right, settings)
    if common is None or not COMPARED.fullmatch(left.dtype) or not COMPARED.fullmatch(right.dtype):
        return None
    sides = [_in(side, common, settings) for side in (left, right)]
    known = [side.expression for side in sides if side is not None]
    if len(known) < 2:
        return None
    return folded(Typed(operators.TaskComparison(op, known[0], known[1]), "boolean"))


def _in(value: Typed, dtype: str, settings: ScalarSettings) -> Typed | None:
    """A value in the type that it is compared in; an interval has the same Arrow type as another one."""
    kind = arrow_type(dtype)
    if value.expression.type == kind and not value.dtype.startswith("decimal("):
        return value
    if "void" in (dtype, value.dtype) or (value.family in ("whole", "decimal") and dtype.startswith("decimal(")):
        return Typed(widened(value, dtype), dtype)
    return coercion.cast(value, dtype, settings)


def cases(conditions: Sequence[Typed], values: Sequence[Typed], settings: ScalarSettings) -> Typed | None:
    """CASE with as many conditions as values but for the last one."""
    common = coercion.common(values, settings)
    known = [] if common is None else [coercion.cast(value, common, settings) for value in values]
    results = tuple(value.expression for value in known if value is not None)
    if common is None or len(results) < len(values):
        return None
    if any(condition.dtype not in ("boolean", "void") for condition in conditions):
        return None
    tests = tuple(widened(condition, "boolean") for condition in conditions)
    return folded(Typed(operators.TaskCase(tests, results, arrow_type(common)), common))


def coalesce(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    common = coercion.common(arguments, settings)
    known = [] if common is None else [coercion.cast(value, common, settings) for value in arguments]
    values = tuple(value.expression for value in known if value is not None)
    if common is None or len(values) < len(arguments):
        return None
    return folded(Typed(operators.TaskFirst(values, arrow_type(common)), common))


def if_then(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return cases(arguments[:1], arguments[1:], settings)


def if_known(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return cases([is_not_null(arguments[:1], settings)], arguments[1:], settings)


def null_if(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    same = comparison("=", arguments[0], arguments[1], settings)
    if same is None:
        return None
    return cases([same], [constant(None, arguments[0].dtype), arguments[0]], settings)


def is_null(arguments: Arguments, settings: ScalarSettings) -> Typed:
    return folded(Typed(operators.IsNull(arguments[0].expression), "boolean"))


def is_not_null(arguments: Arguments, settings: ScalarSettings) -> Typed:
    return negation(is_null(arguments, settings))


def negation(value: Typed) -> Typed:
    """``NOT value``."""
    return folded(Typed(operators.TaskNot(value.expression), "boolean"))


def _extreme(arguments: Arguments, settings: ScalarSettings, kernel: str) -> Typed | None:
    common = coercion.common(arguments, settings)
    strings = {argument.dtype == "string" for argument in arguments if argument.dtype != "void"}
    if common is None or len(strings) > 1 or not COMPARED.fullmatch(common):
        return None
    known = [coercion.cast(value, common, settings) for value in arguments]
    values = [value for value in known if value is not None]
    return called(kernel, values, common, fails=False) if len(values) == len(arguments) else None


def greatest(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _extreme(arguments, settings, "greatest")


def least(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _extreme(arguments, settings, "least")


def itself(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return arguments[0]


def absolute(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _signed("abs", arguments[0], settings)


def negative(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _signed("negate", arguments[0], settings)


def _signed(kernel: str, value: Typed, settings: ScalarSettings) -> Typed | None:
    if value.family == "decimal":
        return called(f"decimal {kernel}", [value], value.dtype) if settings.by_rows else None
    fails = settings.ansi and value.family == "whole"
    return called(kernel, [value], value.dtype, (settings.ansi,), fails=fails)


def _whole(arguments: Arguments, settings: ScalarSettings, kernel: str) -> Typed | None:
    value = arguments[0]
    shape = decimal_shape(value.dtype)
    if value.family == "whole":
        return coercion.cast(value, "bigint", settings)
    if shape is None:
        double = coercion.cast(value, "double", settings)
        return None if double is None else called(kernel, [double], "bigint", (settings.ansi,), fails=settings.ansi)
    if not shape[1]:
        return value
    digits = min(shape[0] - shape[1] + 1, 38)
    return called(f"decimal {kernel}", arguments, f"decimal({digits},0)", fails=False) if settings.by_rows else None


def floor(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _whole(arguments, settings, "floor")


def ceil(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    return _whole(arguments, settings, "ceil")


def rounded(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    value, digits = arguments[0], 0 if len(arguments) == 1 else arguments[1].constant
    if not isinstance(digits, int) or not settings.by_rows:
        return None
    if value.family == "whole":
        return value if digits >= 0 else None
    if value.dtype == "double":
        return called("round", [value], "double", (digits, settings.java)) if -300 < digits < 300 else None
    shape = decimal_shape(value.dtype)
    if shape is None or not 0 <= digits <= 38:
        return None
    scale = min(shape[1], digits)
    dtype = f"decimal({min(shape[0] - shape[1] + 1 + scale, 38)},{scale})"
    return called("decimal round", [value], dtype, (scale, settings.ansi))


def _text(value: Typed) -> str | None:
    """The text of a constant string."""
    return value.constant if value.dtype == "string" and isinstance(value.constant, str) else None


def rlike(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    text = _text(arguments[1])
    pattern = None if text is None else patterns.regular_expression(text)
    return None if pattern is None else called("rlike", arguments[:1], "boolean", (pattern,), fails=False)


def split(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    text = _text(arguments[1])
    between = None if text is None else patterns.plain_text(text)
    return None if between is None else called("split", arguments[:1], "array<string>", (between,), fails=False)


_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("quarter", "week", "hour", "minute", "second", "millisecond", "microsecond")},
}
_DATE_UNITS = frozenset(("year", "month", "quarter", "week"))


def date_start(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    unit = _UNITS.get((_text(arguments[1]) or "").lower())
    return called("date start", arguments[:1], "date", (unit,), fails=False) if unit in _DATE_UNITS else None


def time_start(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    unit = _UNITS.get((_text(arguments[0]) or "").lower())
    if unit is None or settings.zone is None:
        return None
    return called("time start", arguments[1:], "timestamp", (unit, settings.zone))


def date_format(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    text = _text(arguments[1])
    pattern = None if text is None else patterns.time_pattern(text)
    if pattern is None or settings.zone is None:
        return None
    return called("format time", arguments[:1], "string", (pattern, settings.zone))


def to_date(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    known = arguments[0].dtype in ("string", "date", "void", *TIMES)
    return coercion.cast(arguments[0], "date", settings) if known else None


def to_timestamp(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    known = arguments[0].dtype in ("string", "date", "void", *TIMES)
    return coercion.cast(arguments[0], "timestamp", settings) if known else None


def to_date_by(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    moment = to_timestamp_by(arguments, settings)
    return None if moment is None else coercion.cast(moment, "date", settings)


def to_timestamp_by(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    from sqlext_operators.expressions.time_texts import readable

    text = _text(arguments[1])
    pattern = None if text is None else patterns.time_pattern(text)
    if pattern is None or settings.zone is None or not readable(pattern):
        return None
    return called("parse time", arguments[:1], "timestamp", (pattern, settings.zone, settings.ansi))


def unix_timestamp(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    moment = coercion.cast(arguments[0], "timestamp", settings) if arguments[0].dtype in ("timestamp", "date") else None
    return None if moment is None else called("units cut", [moment], "bigint", (1_000_000,), fails=False)


_DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def unix_timestamp_by(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    pattern = arguments[1] if len(arguments) > 1 else constant(_DEFAULT_PATTERN, "string")
    moment = to_timestamp_by([arguments[0], pattern], settings)
    return None if moment is None else unix_timestamp([moment], settings)


def from_unixtime(arguments: Arguments, settings: ScalarSettings) -> Typed | None:
    pattern = arguments[1] if len(arguments) > 1 else constant(_DEFAULT_PATTERN, "string")
    moment = called("from units", arguments[:1], "timestamp", (1_000_000,))
    return date_format([moment, pattern], settings)


#: Rules whose functions depend on the session's time zone.
ZONED: frozenset[Callable[..., Typed | None] | None] = frozenset(
    (
        *(time_start, date_format, to_date, to_date_by, to_timestamp, to_timestamp_by, unix_timestamp),
        *(unix_timestamp_by, from_unixtime),
    )
)
