"""Casts between the types of single values, as Spark's.

The options of a cast are `CastOptions`. What Spark refuses in ANSI mode is an error of the row there, NULL in TRY_CAST,
and without ANSI mode what Spark makes of it: NULL, or a number that wraps around.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.flat import fixed_width, valid_mask
from sqlext_operators.errors import TaskError
from sqlext_operators.expressions import time_texts, zones
from sqlext_operators.expressions.decimal_texts import double_text, rounded_double
from sqlext_operators.expressions.decimals import fitted
from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.times import outside
from sqlext_operators.expressions.values import (
    Kernel,
    Values,
    by_row,
    inexact,
    like,
    malformed,
    null_where,
    overflow,
    whole,
)
from sqlext_operators.expressions.zones import DAY, SECOND

Mode = Literal["ansi", "try", "legacy"]


@dataclass(frozen=True)
class CastOptions:
    """What becomes of values that do not fit; the zone of times that have none; Java's version, None: not known."""

    mode: Mode
    zone: str = "UTC"
    java: int | None = None


Cast = Callable[[pa.Array, TaskCall, CastOptions], Values]


def _failed(array: pa.Array, wrong: Bools, source: pa.Array, options: CastOptions, error: TaskError) -> Values:
    """The values, where `wrong` says of valid ones that they do not fit: NULL in TRY_CAST, an error in ANSI mode."""
    valid = valid_mask(source)
    rows = wrong if valid is None else wrong & valid
    if options.mode == "ansi":
        return Values(array).failing(rows, error)
    return Values(null_where(array, rows)) if options.mode == "try" else Values(array)


def _read(source: pa.Array, call: TaskCall, options: CastOptions, read: Callable[[str], Any], name: str) -> Values:
    """The values of texts; a text for which `read` gives None is an error in ANSI mode, else NULL."""

    def parsed(text: str) -> Any:
        value = read(text)
        if value is None and options.mode == "ansi":
            raise malformed(text, name)
        return value

    return by_row([source], call, parsed)


def _limits(kind: pa.DataType) -> tuple[int, int]:
    ends = np.iinfo(kind.to_pandas_dtype())
    return int(ends.min), int(ends.max)


def _whole_to_whole(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    numbers, (least, most) = whole(source), _limits(call.kind)
    array = like(source, numbers.astype(call.kind.to_pandas_dtype()), call.kind)
    return _failed(array, (numbers < least) | (numbers > most), source, options, overflow("a whole number"))


def _float_to_whole(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Towards 0. Without ANSI mode what is beyond int or bigint is its end, NaN is 0, and smaller types wrap around."""
    values = fixed_width(source).astype(np.float64)
    least, most = _limits(call.kind)
    with np.errstate(invalid="ignore"):
        # in Spark floor(x) <= most and ceil(x) >= least, in doubles
        wrong = ~((np.floor(values) <= float(most)) & (np.ceil(values) >= float(least)))
        bits = 64 if call.kind == pa.int64() else 32
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        inside = (values >= float(low)) & (values < float(2 ** (bits - 1)))
        numbers = np.where(inside, np.where(inside, values, 0.0).astype(np.int64), np.where(values < 0, low, high))
        numbers = np.where(np.isnan(values), 0, numbers)
    array = like(source, numbers.astype(call.kind.to_pandas_dtype()), call.kind)
    return _failed(array, wrong, source, options, overflow("a number"))


def _decimal_to_whole(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    least, most = _limits(call.kind)
    bits = call.kind.bit_width

    def cut(value: Decimal) -> int | None:
        number = int(value)
        if least <= number <= most:
            return number
        if options.mode == "ansi":
            raise overflow("a number")
        return None if options.mode == "try" else (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    return by_row([source], call, cut)


_WHOLE = re.compile(r"([+-]?)(\d*)(\.\d*)?", re.ASCII)


def _string_to_whole(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    least, most = _limits(call.kind)
    with_point = options.mode == "legacy"

    def read(text: str) -> int | None:
        match = _WHOLE.fullmatch(time_texts.trimmed(text))
        if match is None or not (match[2] or (match[3] and with_point)) or (match[3] is not None and not with_point):
            return None
        number = int(match[1] + (match[2] or "0"))
        return number if least <= number <= most else None

    return _read(source, call, options, read, "whole number of its type")


_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?", re.ASCII)
_HEX_FLOAT = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[dDfF]?", re.ASCII)
_SPECIAL = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}


def _string_to_float(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    single = call.kind == pa.float32()

    def read(text: str) -> Any:
        text = text.strip(_JAVA_BLANKS)
        if _FLOAT.fullmatch(text) is not None:
            plain = text.rstrip("dDfF")
            return _single(plain) if single else float(plain)
        if _HEX_FLOAT.fullmatch(text) is not None:
            number = float.fromhex(text.rstrip("dDfF") if "p" in text.lower() else text)
            return float(np.float32(number)) if single else number
        if text.lstrip("+-") == "NaN" and len(text) <= 4:
            return math.nan
        special = _SPECIAL.get(text.lower().lstrip("+-"))
        if special is None or len(text) - len(text.lstrip("+-")) > 1 or (math.isnan(special) and text[0] in "+-"):
            return None
        return -special if text[0] == "-" else special

    return _read(source, call, options, read, "number")


_EXACT = Context(prec=2000)
_JAVA_BLANKS = "".join(map(chr, range(33)))


def _single(text: str) -> float:
    """The float nearest to a decimal text, without the double between them."""
    with np.errstate(over="ignore"):
        near = np.float32(float(text))
    if not np.isfinite(near):
        # half way between the largest float and what would be the next rounds up
        beyond = Decimal(text).copy_abs() >= 2**128 - 2**103
        return float(near) if beyond else math.copysign(float(np.finfo(np.float32).max), float(text))
    exact, best = Decimal(text), near
    for step in (-np.float32(np.inf), np.float32(np.inf)):
        other = np.nextafter(near, step)
        if not np.isfinite(other):
            continue
        gap, least = (_EXACT.subtract(Decimal(float(one)), exact).copy_abs() for one in (other, best))
        if gap < least or (gap == least and not int(other.view(np.uint32)) & 1):
            best = other
    return float(best)


_BEYOND = Decimal(10) ** 60


def _string_to_decimal(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    def read(text: str) -> Decimal | None:
        text = text.strip(_JAVA_BLANKS)
        if _FLOAT.fullmatch(text) is None or text[-1] in "dDfF":
            if any(letter.isdecimal() and not letter.isascii() for letter in text):
                raise inexact(f"the number {text!r}")  # Java knows digits of other alphabets here
            return None
        try:
            number = Decimal(text)
        except InvalidOperation:
            return None
        # what is beyond every decimal is so with few digits, too
        number = Decimal(0) if number.adjusted() < -60 else min(max(number, -_BEYOND), _BEYOND)
        return fitted(number, call.kind, options.mode == "ansi")

    return _read(source, call, options, read, "number")


def _whole_to_decimal(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return by_row([source], call, lambda value: fitted(Decimal(value), call.kind, options.mode == "ansi"))


def _float_to_decimal(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """By the text of the double, of a float too."""

    def read(value: float) -> Decimal | None:
        if math.isnan(value) or math.isinf(value):  # NULL in ANSI mode, too
            return None
        large = abs(value) >= 1e39
        number = Decimal(value) if large else rounded_double(value, call.kind.scale, options.java)
        return fitted(number, call.kind, options.mode == "ansi")

    return by_row([source], call, read)


def _decimal_to_float(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Through the text in floats, as Java does: rounded once."""
    single = call.kind == pa.float32()
    return by_row([source], call, lambda value: _single(str(value)) if single else float(value))


def _float_to_float(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    with np.errstate(over="ignore"):
        return Values(like(source, fixed_width(source).astype(call.kind.to_pandas_dtype()), call.kind))


def _whole_to_float(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return Values(like(source, whole(source).astype(call.kind.to_pandas_dtype()), call.kind))


def _number_to_boolean(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return Values(pc.not_equal(source, pa.scalar(0, source.type)))


def _boolean_to_number(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    if pa.types.is_decimal(call.kind):
        return by_row([source], call, lambda value: fitted(Decimal(int(value)), call.kind, options.mode == "ansi"))
    return Values(pc.cast(pc.cast(source, pa.int8()), call.kind))


_TRUE, _FALSE = frozenset(("t", "true", "y", "yes", "1")), frozenset(("f", "false", "n", "no", "0"))


def _string_to_boolean(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    def read(text: str) -> bool | None:
        word = time_texts.trimmed(text).lower()
        return True if word in _TRUE else False if word in _FALSE else None

    return _read(source, call, options, read, "boolean")


def _plain_to_string(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return Values(pc.cast(source, pa.string()))


def _float_to_string(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    single = pa.types.is_float32(source.type)
    return by_row([source], call, lambda value: double_text(value, options.java, single))


def _decimal_to_string(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """In ANSI mode all digits, else Java's form, with an exponent where six zeros would follow the point."""
    if options.mode == "legacy":
        return by_row([source], call, lambda value: str(value).replace("E+", "E"))
    return by_row([source], call, lambda value: format(value, "f"))


def _date_to_string(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return by_row([source], call, time_texts.date_text)


def _time_to_string(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    zone = _zone_of(source, options)
    micros = whole(source)
    walls = like(source, zones.to_local(micros, zone), pa.int64())
    return outside(by_row([walls], call, time_texts.time_text), source, micros, zone)


def _string_to_date(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    return _read(source, call, options, time_texts.read_date, "date")


def _string_to_time(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    def read(text: str) -> int | None:
        moment = time_texts.read_time(text)
        if moment is None:
            return None
        wall, zone = moment
        if call.kind.tz is None:
            return wall
        return zones.instant(wall, zone or options.zone)

    return _read(source, call, options, read, "timestamp")


def _zone_of(source: pa.Array, options: CastOptions) -> str:
    return "UTC" if source.type.tz is None else options.zone


def _time_to_date(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    zone, micros = _zone_of(source, options), whole(source)
    days = (zones.to_local(micros, zone) // DAY).astype(np.int32)
    return outside(Values(like(source, days, call.kind)), source, micros, zone)


def _date_to_time(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    zone = "UTC" if call.kind.tz is None else options.zone
    walls = whole(source) * DAY
    return outside(Values(like(source, zones.to_instants(walls, zone), call.kind)), source, walls, zone)


def _time_to_time(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Between an instant and its wall clock's time."""
    micros = whole(source)
    convert = zones.to_instants if source.type.tz is None else zones.to_local
    moved = convert(micros, options.zone)
    return outside(Values(like(source, moved, call.kind)), source, micros, options.zone)


def _time_to_number(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Seconds since 1970: rounded down as a whole number, with a fraction as a double."""
    micros = whole(source)
    if pa.types.is_floating(call.kind):
        return Values(like(source, (micros / SECOND).astype(call.kind.to_pandas_dtype()), call.kind))
    # without ANSI mode what does not fit is NULL here
    fitting = CastOptions("try") if options.mode == "legacy" else options
    return _whole_to_whole(like(source, micros // SECOND, pa.int64()), call, fitting)


def _whole_to_time(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Seconds since 1970; beyond the times of Spark it is their end."""
    seconds = whole(source)
    most = (2**63 - 1) // SECOND
    micros: npt.NDArray[np.int64] = np.where(
        (seconds >= -most) & (seconds <= most),
        np.clip(seconds, -most, most) * SECOND,
        np.where(seconds < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max),
    )
    return Values(like(source, micros, call.kind))


def _float_to_time(source: pa.Array, call: TaskCall, options: CastOptions) -> Values:
    """Seconds since 1970."""
    with np.errstate(invalid="ignore", over="ignore"):
        values = fixed_width(source).astype(np.float64)
        micros = values * SECOND
        odd = ~np.isfinite(values)
        low, high = micros < -(2.0**63), micros >= 2.0**63
        plain = np.where(odd | low | high, 0.0, micros).astype(np.int64)
        cut = np.where(low, np.iinfo(np.int64).min, np.where(high, np.iinfo(np.int64).max, plain))
    array = like(source, cut, call.kind)
    valid = valid_mask(source)
    odd = odd if valid is None else odd & valid
    if options.mode == "ansi":
        wrong = odd | (low | high if valid is None else (low | high) & valid)
        return Values(array).failing(wrong, overflow("a timestamp"))
    return Values(null_where(array, odd))


#: (what of, what to) -> the cast; the families of `_family`.
CASTS: dict[tuple[str, str], Cast] = {
    ("whole", "whole"): _whole_to_whole,
    ("whole", "float"): _whole_to_float,
    ("whole", "decimal"): _whole_to_decimal,
    ("whole", "boolean"): _number_to_boolean,
    ("whole", "string"): _plain_to_string,
    ("whole", "timestamp"): _whole_to_time,
    ("float", "whole"): _float_to_whole,
    ("float", "float"): _float_to_float,
    ("float", "decimal"): _float_to_decimal,
    ("float", "boolean"): _number_to_boolean,
    ("float", "string"): _float_to_string,
    ("float", "timestamp"): _float_to_time,
    ("decimal", "whole"): _decimal_to_whole,
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "decimal"): _whole_to_decimal,
    ("decimal", "boolean"): _number_to_boolean,
    ("decimal", "string"): _decimal_to_string,
    ("boolean", "whole"): _boolean_to_number,
    ("boolean", "float"): _boolean_to_number,
    ("boolean", "decimal"): _boolean_to_number,
    ("boolean", "string"): _plain_to_string,
    ("string", "whole"): _string_to_whole,
    ("string", "float"): _string_to_float,
    ("string", "decimal"): _string_to_decimal,
    ("string", "boolean"): _string_to_boolean,
    ("string", "date"): _string_to_date,
    ("string", "timestamp"): _string_to_time,
    ("string", "timestamp_ntz"): _string_to_time,
    ("date", "string"): _date_to_string,
    ("date", "timestamp"): _date_to_time,
    ("date", "timestamp_ntz"): _date_to_time,
    ("timestamp", "string"): _time_to_string,
    ("timestamp", "date"): _time_to_date,
    ("timestamp", "timestamp_ntz"): _time_to_time,
    ("timestamp", "whole"): _time_to_number,
    ("timestamp", "float"): _time_to_number,
    ("timestamp_ntz", "string"): _time_to_string,
    ("timestamp_ntz", "date"): _time_to_date,
    ("timestamp_ntz", "timestamp"): _time_to_time,
}

_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, "whole"),
    (pa.types.is_floating, "float"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_string, "string"),
    (pa.types.is_date, "date"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, "timestamp"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, "timestamp_ntz"),
)


def _family(kind: pa.DataType) -> str:
    return next(name for matches, name in _FAMILIES if matches(kind))


def _cast(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    source = arguments[0]
    return CASTS[(_family(source.type), _family(call.kind))](source, call, call.options[0])


KERNELS: dict[str, Kernel] = {"cast": _cast}
