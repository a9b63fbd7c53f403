"""Spark's conversions between types: casts, what an argument becomes, and the type that several values have in common.

Everything is None where it is not certain, or where Spark has no such conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, common_decimal, decimal_shape, exact_shape, widest
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.values import TIMES, Typed, called, constant, family_of, widened

Mode = Literal["ansi", "try", "legacy"]

#: What a value of a family can be cast to. None of them differs between ANSI mode and the other in what is allowed.
_CASTS: dict[str, tuple[str, ...]] = {
    "whole": ("whole", "float", "decimal", "boolean", "string", "timestamp"),
    "float": ("whole", "float", "decimal", "boolean", "string", "timestamp"),
    "decimal": ("whole", "float", "decimal", "boolean", "string"),
    "boolean": ("whole", "float", "decimal", "string"),
    "string": ("whole", "float", "decimal", "boolean", "date", "timestamp", "timestamp_ntz"),
    "date": ("string", "timestamp", "timestamp_ntz"),
    "timestamp": ("string", "date", "timestamp_ntz", "whole", "float"),
    "timestamp_ntz": ("string", "date", "timestamp"),
}
#: Types that are called as functions, ``double(x)``, as casts.
CAST_NAMES = {
    **{name: name for name in ("boolean", *INTEGERS, *FLOATS, "string", "date", "timestamp")},
    "decimal": "decimal(10,0)",
}
#: Casts whose result depends on the session's time zone.
_ZONED = frozenset(
    (
        *((source, "timestamp") for source in ("string", "date", "timestamp_ntz")),
        *(("timestamp", target) for target in ("string", "date", "timestamp_ntz")),
    )
)


def cast_table() -> dict[str, tuple[str, ...]]:
    """What is cast to what, by families of types."""
    return dict(_CASTS)


def default_mode(settings: ScalarSettings) -> Mode:
    """How a conversion without TRY_ treats what does not fit."""
    return "ansi" if settings.ansi else "legacy"


def cast(value: Typed, to: str, settings: ScalarSettings, mode: Mode | None = None) -> Typed | None:
    """``CAST(value AS to)``; `mode` "try" for TRY_CAST."""
    if value.dtype == to:
        return Typed(value.expression, to)
    target = family_of(to)
    if value.dtype == "void":
        return constant(None, to) if target in (*_CASTS, "binary") else None
    if target not in _CASTS.get(value.family, ()):
        return None
    if _is_promotion(value.dtype, to):
        return Typed(widened(value, to), to)
    pair = (value.family, target)
    zoned = pair in _ZONED
    if not settings.by_rows or (zoned and settings.zone is None):
        return None
    from sqlext_operators.expressions.casts import CastOptions

    java = settings.java if value.family == "float" else None
    options = CastOptions(mode or default_mode(settings), settings.zone or "UTC" if zoned else "UTC", java)
    return called("cast", [value], to, (options,))


def _is_promotion(source: str, target: str) -> bool:
    """Whether Arrow's own conversion is Spark's for every value."""
    if source in INTEGERS and target in INTEGERS:
        return widest([source, target]) == target
    if target in FLOATS:
        return source in INTEGERS or source == "float"
    shape, wanted = exact_shape(source), decimal_shape(target)
    if shape is None or wanted is None:
        return False
    return wanted[1] >= shape[1] and wanted[0] - wanted[1] >= shape[0] - shape[1]


#: What a parameter takes, and what becomes it without a cast being written.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "string": ("whole", "float", "decimal", "boolean", "date", "timestamp", "timestamp_ntz"),
    "double": ("whole", "float", "decimal", "string"),
    "date": ("timestamp", "timestamp_ntz", "string"),
    "timestamp": ("date", "timestamp_ntz", "string"),
    "boolean": (),
}


def argument(value: Typed, parameter: str, settings: ScalarSettings) -> Typed | None:
    """A value as Spark passes it to a parameter of this name (`table.py`)."""
    match parameter:
        case "any":
            return value
        case "whole" | "float" | "decimal":
            return value if value.family == parameter else None
        case "number":
            return value if value.family in ("whole", "float", "decimal") else None
        case "time":
            return value if value.dtype in TIMES else argument(value, "timestamp", settings)
        case "int" | "bigint":
            fits = value.dtype in INTEGERS and widest([value.dtype, parameter]) == parameter
            return cast(value, parameter, settings) if fits or value.dtype == "void" else None
    if value.dtype in (parameter, "void") or value.family in _ARGUMENTS[parameter]:
        return cast(value, parameter, settings)
    return None


def common(values: Sequence[Typed], settings: ScalarSettings) -> str | None:
    """The type of a CASE, coalesce or IN over these values."""
    result = "void"
    for value in values:
        wider = _wider(result, value.dtype, settings)
        if wider is None:
            return None
        result = wider
    return result


def _wider(left: str, right: str, settings: ScalarSettings) -> str | None:
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    pair = {family_of(left), family_of(right)}
    if "string" in pair:
        return _with_string(next(item for item in (left, right) if item != "string"), settings)
    if pair == {"whole"}:
        return widest([left, right])
    if pair <= {"whole", "float", "decimal"}:
        return _number(left, right, pair, settings)
    if pair == {"date", "timestamp"} or pair == set(TIMES):
        return "timestamp"
    return "timestamp_ntz" if pair == {"date", "timestamp_ntz"} else None


def _number(left: str, right: str, pair: set[str], settings: ScalarSettings) -> str | None:
    if "float" not in pair:
        return common_decimal(left, right)
    if "decimal" in pair or "double" in (left, right) or (settings.ansi and "whole" in pair):
        return "double"
    return "float"


def _with_string(other: str, settings: ScalarSettings) -> str | None:
    """Beside a string: under ANSI the other value's type, numbers in their widest, without it a string."""
    family = family_of(other)
    if not settings.ansi:
        return None if family in ("binary", "boolean") else "string"
    wide = {"whole": "bigint", "float": "double", "decimal": "double"}
    return wide.get(family) or (other if family in ("date", *TIMES, "boolean") else None)


def compared(left: Typed, right: Typed, settings: ScalarSettings) -> str | None:
    """The type in which Spark compares two values."""
    pair = [left, right]
    if "string" in (left.dtype, right.dtype) and left.dtype != right.dtype and not settings.ansi:
        other = next(item for item in pair if item.dtype != "string")
        if other.family in ("boolean", "date", *TIMES, "whole", "float"):
            return other.dtype
        return "double" if other.family == "decimal" else None
    if {left.family, right.family} == {"whole", "decimal"}:
        shapes = [item.number.shape for item in pair]
        known = [f"decimal({shape[0]},{shape[1]})" for shape in shapes if shape is not None]
        return common_decimal(*known)
    return common(pair, settings)


#: Digits after the point that Spark keeps of a result with more than 38 digits, and its most digits.
_KEPT_SCALE, _MOST = 6, 38


def decimal_result(sign: str, left: tuple[int, int], right: tuple[int, int]) -> str:
    """Spark's type of arithmetic on decimals of these (digits, digits after the point)."""
    (p, s), (q, t) = left, right
    if sign == "*":
        return _adjusted(p + q + 1, s + t)
    if sign == "/":
        scale = max(_KEPT_SCALE, s + q + 1)
        return _adjusted(p - s + t + scale, scale)
    scale = max(s, t)
    if sign == "%":
        return _adjusted(min(p - s, q - t) + scale, scale)
    return _adjusted(max(p - s, q - t) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> str:
    if precision <= _MOST:
        return f"decimal({precision},{scale})"
    kept = max(_MOST - (precision - scale), min(scale, _KEPT_SCALE))
    return f"decimal({_MOST},{kept})"
