"""Rows as they come in the bodies of requests, JSON or Arrow, and answers as they leave.

In JSON a timestamp is ISO text (without a zone: in the deployment's) or milliseconds since 1970, a date is ISO text, a
decimal is text or a number, bytes are base64, NaN and infinities are text, whole numbers are exact. Whatever does not
fit its column exactly is refused with the column's name.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds
from sqlext_planner.conditions import Condition
from sqlext_planner.errors import AnalysisError

from sqlext.serving.values import unknown_column

#: What one request may hold: a body of few bytes can name many rows.
MOST_ROWS = 100_000

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
#: The microseconds of the years 1 to 9999.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,6})?", re.ASCII)
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LARGEST_FLOAT = 3.4028235677973366e38
_SHOWN = 60


class RequestError(AnalysisError):
    """A request that cannot be answered: what is wrong, where in its body, and what to do."""

    def __init__(
        self,
        message: str,
        *,
        condition: Condition = "request-body",
        help: str | None = None,
        place: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, condition=condition, help=help)
        self.place = place


class _WrongValueError(Exception):
    """What a value should be instead."""


def parsed_json(body: bytes) -> Any:
    """The value of a JSON text; numbers with a fraction or an exponent are Decimals. Raises RequestError."""
    help = "send a JSON object in UTF-8"
    try:
        return json.loads(
            body.decode(), parse_float=_number, parse_constant=_no_constant, object_pairs_hook=_object_of_names
        )
    except json.JSONDecodeError as error:
        where = {"line": error.lineno, "column": error.colno}
        raise RequestError(f"the body is not JSON: {error.msg}", help=help, place=where) from None
    except UnicodeDecodeError as error:
        raise RequestError("the body is not UTF-8 text", help=help, place={"byte": error.start}) from None
    except RecursionError:
        raise RequestError("the body is nested too deeply", help="send rows of plain columns") from None
    except (ValueError, DecimalException):
        raise RequestError("the body has a number with too many digits", help="send it as text, or round it") from None


def _number(text: str) -> Decimal:
    return Decimal(text)


def _no_constant(word: str) -> Any:
    raise RequestError(f"{word} is not JSON", help=f'write it as text: "{word}"')


def _object_of_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise RequestError(f"an object has the name '{_cut(twice)}' twice", help="leave one of them out")
    return result


def checked_rows(rows: Any, what: str) -> list[Any]:
    """The rows of a body: one object, or a list. Raises RequestError."""
    listed = rows if isinstance(rows, list) else [rows]
    if not isinstance(rows, (dict, list)):
        raise RequestError(f"{what} is no row", help="a row is an object of columns; several are a list of objects")
    if len(listed) > MOST_ROWS:
        raise RequestError(
            f"{what} has {len(listed):,} rows, and {MOST_ROWS:,} are the most", help="send fewer at once"
        )
    return listed


def batch_of_objects(
    rows: Sequence[Any], schema: pa.Schema, table: str, zone: tzinfo, *, skip_unknown: bool = False
) -> pa.RecordBatch:
    """Rows as objects of JSON; columns that a row lacks are NULL. Raises RequestError."""
    known = {name.lower(): name for name in schema.names}
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in schema.names}
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RequestError(f"row {place} is no object", help="a row is an object of columns", place={"row": place})
        if len({name.lower() for name in row}) != len(row):
            raise RequestError(f"row {place} has a column twice", help="names ignore case", place={"row": place})
        for name, value in row.items():
            column = name if name in columns else known.get(name.lower())
            if column is not None:
                columns[column][place] = value
            elif not skip_unknown:
                error = unknown_column(_cut(name), schema, table)
                place_of = {"row": place, "column": _cut(name)}
                raise RequestError(error.message, condition="unknown-column", help=error.help, place=place_of)
    return _batch(list(columns.values()), schema, zone)


def batch_of_lists(rows: Sequence[Any], schema: pa.Schema, zone: tzinfo) -> pa.RecordBatch:
    """Rows as lists of JSON, in the order of the columns. Raises RequestError."""
    for place, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(schema):
            help = f"a row is a list of {len(schema)} values: {', '.join(schema.names)}"
            raise RequestError(f"row {place} has not one value for each column", help=help, place={"row": place})
    return _batch([[row[column] for row in rows] for column in range(len(schema))], schema, zone)


def _batch(columns: Sequence[list[Any]], schema: pa.Schema, zone: tzinfo) -> pa.RecordBatch:
    arrays = [_array(values, field, zone) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: list[Any], field: pa.Field, zone: tzinfo) -> pa.Array:
    read = _reader(field.type, zone)
    place = 0
    try:
        converted = list(values)
        for place, value in enumerate(values):
            if value is not None:
                converted[place] = read(value)
        return pa.array(converted, field.type)
    except _WrongValueError as error:
        shown = _cut(json.dumps(values[place], default=str))
        raise RequestError(
            f"{shown} is no value of the column '{field.name}'",
            condition="row-value",
            help=str(error),
            place={"row": place, "column": field.name},
        ) from None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


Reader = Callable[[Any], Any]


@cache
def _reader(kind: pa.DataType, zone: tzinfo) -> Reader:
    """From a value of JSON to what `pa.array` takes; it raises _WrongValueError."""
    if kinds.is_integer(kind):
        return partial(_whole, bits=kind.bit_width)
    if kinds.is_floating(kind):
        return partial(_float, most=_LARGEST_FLOAT if kind.bit_width == 32 else math.inf)
    if kinds.is_decimal(kind):
        return partial(_decimal, kind=kind)
    if kinds.is_timestamp(kind):
        return partial(_timestamp, zone=None if kind.tz is None else zone)
    if kinds.is_list(kind):
        return partial(_list, read=_reader(kind.value_type, zone))
    if kinds.is_struct(kind):
        return partial(_struct, readers={field.name: _reader(field.type, zone) for field in kind})
    if kinds.is_map(kind):
        return partial(_map, read_key=_reader(kind.key_type, zone), read=_reader(kind.item_type, zone))
    for matches, read in ((kinds.is_boolean, _boolean), (kinds.is_date, _date), (_is_text, _text), (_is_bytes, _bytes)):
        if matches(kind):
            return read
    return partial(_refuse, kind=kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind))


def _refuse(value: Any, kind: pa.DataType) -> Any:
    raise _WrongValueError(f"a value of type {kind} cannot come as JSON: send Arrow")


def _whole(value: Any, bits: int) -> int:
    if isinstance(value, Decimal) and value.adjusted() < 20 and value == value.to_integral_value():
        value = int(value)  # 1.0 and 1e3 are whole
    if type(value) is not int:
        raise _WrongValueError("send a whole number")
    most = 1 << (bits - 1)
    if not -most <= value < most:
        raise _WrongValueError(f"the column holds numbers from {-most} to {most - 1}")
    return value


def _float(value: Any, most: float) -> float:
    if type(value) is str and value in _FLOATS:
        return _FLOATS[value]
    if type(value) is not int and not isinstance(value, Decimal):
        raise _WrongValueError('send a number, "NaN", "Infinity" or "-Infinity"')
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) or abs(number) >= most:
        raise _WrongValueError("the number is beyond the column's range")
    return number


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    if type(value) is int or (type(value) is str and _NUMBER.fullmatch(value)):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise _WrongValueError("send a number, as such or as text")
    if value and value.adjusted() >= kind.precision - kind.scale:
        raise _WrongValueError(f"the column holds {kind.precision - kind.scale} digits before the point")
    exact = Context(prec=80, traps=[Inexact, InvalidOperation])
    try:
        return value.quantize(Decimal(1).scaleb(-kind.scale), context=exact)
    except DecimalException:
        raise _WrongValueError(f"the column holds {kind.scale} digits behind the point") from None


def _timestamp(value: Any, zone: tzinfo | None) -> int:
    """Microseconds since 1970; of a TIMESTAMP_NTZ (no zone) those of the clock."""
    if type(value) is str:
        micros = _instant(value, zone)
    elif zone is not None and type(value) in (int, Decimal) and abs(value) < 1 << 53:
        micros = int(value * 1000)
    else:
        raise _WrongValueError("send an ISO text such as 2024-05-01T12:00:00" + (", or milliseconds" if zone else ""))
    if not _FIRST <= micros <= _LAST:
        raise _WrongValueError("the time is not in the years 1 to 9999")
    return micros


def _instant(text: str, zone: tzinfo | None) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise _WrongValueError(f"send an ISO text such as 2024-05-01T12:00:00 ({_cut(str(error))})") from None
    offset = time.utcoffset()
    if zone is None and offset is not None:
        raise _WrongValueError("the column is TIMESTAMP_NTZ: leave the zone out")
    if zone is not None and offset is None:
        offset = time.replace(tzinfo=zone).utcoffset()
    return (time.replace(tzinfo=None) - _EPOCH - (offset or timedelta())) // _MICROSECOND


def _date(value: Any) -> date:
    match = _DATE.fullmatch(value) if type(value) is str else None
    try:
        if match is not None:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise _WrongValueError("send a date such as 2024-05-01")


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise _WrongValueError("send true or false")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _WrongValueError("send text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _WrongValueError("the text has half of a surrogate pair") from None
    return value


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _WrongValueError("send base64") from None


def _list(value: Any, read: Reader) -> list[Any]:
    if type(value) is not list:
        raise _WrongValueError("send a list")
    return [None if item is None else read(item) for item in value]


def _struct(value: Any, readers: Mapping[str, Reader]) -> dict[str, Any]:
    if type(value) is not dict or not value.keys() <= readers.keys():
        raise _WrongValueError(f"send an object with {', '.join(readers)}")
    return {name: None if item is None else readers[name](item) for name, item in value.items()}


def _map(value: Any, read_key: Reader, read: Reader) -> list[tuple[Any, Any]]:
    pairs = list(value.items()) if type(value) is dict else value
    if type(pairs) is not list or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise _WrongValueError("send an object, or a list of pairs [key, value]")
    if any(key is None for key, _ in pairs):
        raise _WrongValueError("a key is no null")
    return [(read_key(key), None if item is None else read(item)) for key, item in pairs]


def json_columns(batch: pa.RecordBatch | pa.Table, zone: tzinfo, *, millis: bool = False) -> list[list[Any]]:
    """The values of each column as `json.dumps` takes them; timestamps as numbers of milliseconds if `millis`."""
    return [_json_values(column, _writer(column.type, zone, millis)) for column in batch.columns]


def _json_values(column: pa.ChunkedArray | pa.Array, write: Reader | None) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
        return values if write is None else [None if value is None else write(value) for value in values]
    except (OverflowError, ValueError):  # a time that Python has not
        texts: list[Any] = column.cast(pa.string()).to_pylist()
        return texts


@cache
def _writer(kind: pa.DataType, zone: tzinfo, millis: bool) -> Reader | None:
    """From a value of `to_pylist` to one of JSON; None: they are the same."""
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or _is_text(kind):
        return None
    if kinds.is_floating(kind):
        return _json_float
    if kinds.is_timestamp(kind) and millis:
        return _json_millis
    if kinds.is_timestamp(kind) and kind.tz is not None:
        return lambda value: value.astimezone(zone).isoformat()
    if kinds.is_timestamp(kind) or kinds.is_date(kind) or kinds.is_time(kind):
        return lambda value: value.isoformat()
    if _is_bytes(kind):
        return lambda value: base64.b64encode(value).decode()
    if kinds.is_list(kind):
        return lambda value: _json_list(value, _writer(kind.value_type, zone, millis))
    if kinds.is_struct(kind):
        return lambda value: {
            field.name: _json_one(value[field.name], _writer(field.type, zone, millis)) for field in kind
        }
    if kinds.is_map(kind):
        return lambda value: _json_map(value, kind, zone, millis)
    return str  # decimals, intervals


def _json_one(value: Any, write: Reader | None) -> Any:
    return value if value is None or write is None else write(value)


def _json_list(values: Sequence[Any], write: Reader | None) -> list[Any]:
    return [_json_one(value, write) for value in values]


def _json_map(value: Any, kind: pa.DataType, zone: tzinfo, millis: bool) -> Any:
    keys = _json_list([key for key, _ in value], _writer(kind.key_type, zone, millis))
    items = _json_list([item for _, item in value], _writer(kind.item_type, zone, millis))
    if _is_text(kind.key_type) and len(set(keys)) == len(keys):
        return dict(zip(keys, items, strict=True))
    return [list(pair) for pair in zip(keys, items, strict=True)]


def _json_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _json_millis(value: datetime) -> int:
    return (value.replace(tzinfo=None) - _EPOCH) // timedelta(milliseconds=1)


def dumped(value: Any) -> bytes:
    """JSON text. A lone half of a surrogate pair in a message stays an escape."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
