"""Which argument types window functions take, and the types of their results (docs/reference/windows.md, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

TypeRule = Callable[[str, Sequence[pa.DataType]], pa.DataType]

MAX_PRECISION = 38

_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.null(): "void",
    pa.month_day_nano_interval(): "interval year to month",
    pa.duration("us"): "interval day to second",
}


class FunctionTypeError(Exception):
    """A window function does not take an argument. `argument` is its index in `Call.args`, None for the whole call."""

    def __init__(self, message: str, help: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.argument = argument

    def __reduce__(self) -> tuple[type[FunctionTypeError], tuple[str, str, int | None]]:
        return FunctionTypeError, (self.message, self.help, self.argument)


def sql_name(dtype: pa.DataType) -> str:
    """The type's name in Spark SQL."""
    if pa.types.is_decimal(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_timestamp(dtype):
        return "timestamp" if dtype.tz is not None else "timestamp_ntz"
    for is_type, name in ((pa.types.is_struct, "struct"), (pa.types.is_map, "map"), (pa.types.is_list, "array")):
        if is_type(dtype):
            return name
    return _NAMES.get(dtype, str(dtype))


def is_number(dtype: pa.DataType) -> bool:
    """Signed integers, float and double."""
    return bool(pa.types.is_signed_integer(dtype) or dtype in (pa.float32(), pa.float64()))


def is_text(dtype: pa.DataType) -> bool:
    """Strings and binary, of either offset width."""
    return dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def is_bytes(dtype: pa.DataType) -> bool:
    """Binary, of either offset width."""
    return dtype in (pa.binary(), pa.large_binary())


def is_scalar(dtype: pa.DataType) -> bool:
    """Types with an equality and an order: all but nested ones and void."""
    return bool(
        is_number(dtype)
        or is_text(dtype)
        or pa.types.is_boolean(dtype)
        or pa.types.is_decimal128(dtype)
        or dtype == pa.date32()
        or pa.types.is_timestamp(dtype)
        or pa.types.is_duration(dtype)
        or pa.types.is_time64(dtype)
    )


#: Types that are ordered here, as in Spark, but not in OpenMLDB.
UNORDERED_IN_OPENMLDB = frozenset({pa.bool_()})


def bigint(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """bigint for any argument."""
    return pa.int64()


def countable(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """bigint; the argument must have an equality."""
    if not is_scalar(types[0]):
        raise refused(name, types[0], "count one of its fields, or cast it to a string")
    return pa.int64()


def matched(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """bigint; the last two arguments are compared, so they have one type, with an equality."""
    if types[-1] != types[-2] or not is_scalar(types[-1]):
        bad = next((dtype for dtype in types[-2:] if not is_scalar(dtype)), types[-1])
        raise refused(name, bad, "compare values of one type")
    return pa.int64()


def first_argument(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the first argument, whatever it is."""
    return types[0]


def neighbour(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the first argument, which a default has too."""
    if len(types) > 1 and types[1] != types[0]:
        message = f"the default of {name}() is {sql_name(types[1])}, and its value is {sql_name(types[0])}"
        raise FunctionTypeError(message, f"cast the default to {sql_name(types[0])}", 1)
    return types[0]


def check_filter(dtype: pa.DataType) -> None:
    """Raise FunctionTypeError for a condition of FILTER that is not boolean."""
    if not (pa.types.is_boolean(dtype) or pa.types.is_null(dtype)):
        message = f"the condition of FILTER must be boolean, not {sql_name(dtype)}"
        raise FunctionTypeError(message, "write a comparison, for example x > 0")


def summed(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """Spark's type of a sum: bigint for integers, double for float and double, decimal(min(38,p+10),s) for
    decimal(p,s), a day-time interval for day-time intervals."""
    dtype = types[0]
    if pa.types.is_decimal128(dtype):
        return pa.decimal128(min(MAX_PRECISION, dtype.precision + 10), dtype.scale)
    if pa.types.is_signed_integer(dtype):
        return pa.int64()
    if is_number(dtype):
        return pa.float64()
    if pa.types.is_duration(dtype):
        return dtype
    raise refused(name, dtype, "it takes numbers and day-time intervals; cast the argument, for example to double")


def summed_in_openmldb(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The input's type for integers, float, double and timestamp; decimals as in Spark."""
    dtype = types[0]
    if is_number(dtype) or pa.types.is_timestamp(dtype):
        return dtype
    if pa.types.is_decimal128(dtype):
        return summed(name, types)
    raise refused(name, dtype, "it takes numbers and timestamps; cast the argument, for example to double")


def averaged(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """Spark's type of a mean: as in OpenMLDB, and a day-time interval for day-time intervals."""
    if pa.types.is_duration(types[0]):
        return types[0]
    return averaged_in_openmldb(name, types)


def averaged_in_openmldb(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """double for integers, float and double; decimal(p,s) becomes decimal(min(38,p+4),min(38,s+4))."""
    dtype = types[0]
    if pa.types.is_decimal128(dtype):
        precision, scale = min(MAX_PRECISION, dtype.precision + 4), min(MAX_PRECISION, dtype.scale + 4)
        return pa.decimal128(precision, scale)
    if is_number(dtype):
        return pa.float64()
    raise refused(name, dtype, "it takes numbers; cast the argument, for example to double")


def measured(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """double; the argument must be an integer, float, double or decimal."""
    if not (is_number(types[0]) or pa.types.is_decimal128(types[0])):
        raise refused(name, types[0], "it takes numbers; cast the argument, for example to double")
    return pa.float64()


def spread(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """double; the argument must have an equality."""
    if not is_scalar(types[0]):
        raise refused(name, types[0], "its values cannot be compared; use one of its fields, or cast it to a string")
    return pa.float64()


def ordered(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The input's type; it must have an order."""
    if not is_scalar(types[0]):
        raise refused(name, types[0], "its values have no order; use one of its fields, or cast it to a string")
    return types[0]


def written(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """string; the first argument has an order, and a form as text (`window.texts.value_texts`)."""
    dtype = types[0]
    if not is_scalar(dtype) or pa.types.is_duration(dtype) or pa.types.is_time64(dtype) or is_bytes(dtype):
        raise refused(name, dtype, "it takes numbers, dates, timestamps and strings; cast the argument to one of these")
    return pa.string()


def split(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """list<string>; the argument is a string."""
    if types[0] not in (pa.string(), pa.large_string()):
        raise refused(name, types[0], "it takes strings; cast the argument to string")
    return pa.list_(pa.string())


def listed(dtype: pa.DataType) -> pa.DataType:
    """An array of values of the type, none of them NULL."""
    return pa.list_(pa.field("element", dtype, nullable=False))


def rows(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """list<struct<x1, ..., xn>> of the arguments."""
    return pa.list_(pa.struct([pa.field(f"x{i + 1}", dtype) for i, dtype in enumerate(types)]))


def refused(name: str, dtype: pa.DataType, help: str) -> FunctionTypeError:
    """The error for a first argument that a function does not take."""
    return FunctionTypeError(f"{name}() does not take {sql_name(dtype)}", help, 0)


def for_each(rule: TypeRule, name: str, types: Sequence[pa.DataType], first: int = 0) -> None:
    """Apply the rule for one argument to each from number `first` on."""
    for place, dtype in enumerate(types[first:], first):
        try:
            rule(name, [dtype])
        except FunctionTypeError as error:
            raise FunctionTypeError(error.message, error.help, place) from None
