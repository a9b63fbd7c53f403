"""Conversion between Spark's simple type strings and Arrow types, without Spark.

``decimal(10,2)`` <-> decimal128(10, 2), ``array<struct<a:int,b:map<string,double>>>`` <-> nested Arrow types. The
Arrow types are those that Spark itself sends to Python: timestamps in microseconds, with a zone for `timestamp` and
without for `timestamp_ntz`; day-time intervals as microsecond durations; `time(6)` in nanoseconds. Also the types in
which the operators compare values of two sides as Spark does.
"""

from __future__ import annotations

import re
from itertools import accumulate

import pyarrow as pa

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, common_decimal, widest
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.expressions.typed import cast

#: Types that may order rows: integers and points in time.
ORDER_TYPES = ("tinyint", "smallint", "int", "bigint", "timestamp", "timestamp_ntz")
#: Types that may order the rows of a window.
WINDOW_ORDER_TYPES = (*ORDER_TYPES, "date")

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}

#: Other spellings that DDL and catalogs use.
_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "bool": "boolean",
    "text": "string",
    "timestamp_ltz": "timestamp",
    "null": "void",
    "dec": "decimal",
    "numeric": "decimal",
}

_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_SIZED = re.compile(r"(decimal|char|varchar|time) ?\(([^()]*)\)")


def normalize(dtype: str) -> str:
    """The canonical simple string: lower case, no blanks around punctuation, no synonyms.

    ``DECIMAL (10, 2)`` -> ``decimal(10,2)``; names of struct fields keep their case.
    Raises UnsupportedError for text that is not a Spark type.
    """
    return dtype if dtype in _SIMPLE else _TypeReader(dtype).whole()[0]


def to_arrow(dtype: str) -> pa.DataType:
    """The Arrow type of a Spark simple type string. Raises UnsupportedError for a type that Arrow cannot carry."""
    arrow = _TypeReader(dtype).whole()[1]
    if arrow is None:
        raise UnsupportedError(
            f"values of type {dtype} cannot be passed to an operator",
            condition="unsupported-type",
            help="cast the column",
        )
    return arrow


def struct_fields(dtype: str) -> list[tuple[str, str]]:
    """Names and types of a struct's fields: ``struct<a:int,b:date>`` gives [("a", "int"), ("b", "date")].

    Raises UnsupportedError for text that is not a struct type.
    """
    return _TypeReader(dtype).struct_fields()


def map_types(dtype: str) -> tuple[str, str]:
    """The types of a map's keys and values: ``map<string,int>`` gives ("string", "int").

    Raises UnsupportedError for text that is not a map type.
    """
    return _TypeReader(dtype).map_types()


def from_arrow(arrow: pa.DataType) -> str:
    """The Spark simple type string of an Arrow type, as Spark's Parquet and Arrow readers see it.

    Raises UnsupportedError for a type without a Spark counterpart.
    """
    kinds = pa.types
    if kinds.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if kinds.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if kinds.is_timestamp(arrow):
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    if kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow):
        return f"array<{from_arrow(arrow.value_type)}>"
    if kinds.is_map(arrow):
        return f"map<{from_arrow(arrow.key_type)},{from_arrow(arrow.item_type)}>"
    if kinds.is_struct(arrow):
        return "struct<" + ",".join(f"{field.name}:{from_arrow(field.type)}" for field in arrow) + ">"
    for matches, name in _FROM_ARROW:
        if matches(arrow):
            return name
    raise UnsupportedError(f"Arrow type {arrow} has no Spark type", condition="unsupported-type")


_FROM_ARROW = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (lambda t: pa.types.is_int16(t) or pa.types.is_uint8(t), "smallint"),
    (lambda t: pa.types.is_int32(t) or pa.types.is_uint16(t), "int"),
    (lambda t: pa.types.is_int64(t) or pa.types.is_uint32(t), "bigint"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (lambda t: pa.types.is_float16(t) or pa.types.is_float32(t), "float"),
    (pa.types.is_float64, "double"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or str(t) == "string_view", "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t), "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_time, "time(6)"),
    (pa.types.is_null, "void"),
)


#: The deepest nesting that a recursive reader handles safely; Spark's own reader gives up at about the same depth.
_MOST_NESTED = 100
_STEP = {"<": 1, ">": -1}


class _TypeReader:
    """A recursive-descent reader of type strings: each method returns (simple string, Arrow type or None)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        if (
            text.count("<") > _MOST_NESTED
            and max(accumulate(_STEP[sign] for sign in re.findall("[<>]", text))) > _MOST_NESTED
        ):
            raise UnsupportedError(
                f"a type may nest at most {_MOST_NESTED} deep, and '{text[:40]}...' nests deeper",
                condition="unsupported-type",
                help="flatten the column",
            )

    def whole(self) -> tuple[str, pa.DataType | None]:
        result = self._type()
        self._blanks()
        if self._at != len(self._text):
            raise self._error()
        return result

    def _type(self) -> tuple[str, pa.DataType | None]:
        self._blanks()
        word = self._take(r"[A-Za-z_]+").lower()
        if self._try("<"):
            return self._nested(word)
        rest = self._take(r"[^<>,():]*(\([^()]*\))?")
        return self._atomic(f"{word} {rest}".replace(" (", "(").strip())

    def _nested(self, word: str) -> tuple[str, pa.DataType | None]:
        if word == "struct":
            return self._struct()
        if word not in ("array", "map"):
            raise self._error()
        parts = [self._type()]
        if word == "map":
            self._expect(",")
            parts.append(self._type())
        self._expect(">")
        text = f"{word}<{','.join(part[0] for part in parts)}>"
        arrows = [part[1] for part in parts]
        if any(arrow is None for arrow in arrows):
            return text, None
        return text, pa.list_(pa.field("element", arrows[0])) if word == "array" else pa.map_(*arrows)

    def struct_fields(self) -> list[tuple[str, str]]:
        if self._take(r"[A-Za-z_]*").lower() != "struct" or not self._try("<"):
            raise self._error()
        names, parts = self._fields()
        return [(_unquoted(name), part[0]) for name, part in zip(names, parts, strict=True)]

    def map_types(self) -> tuple[str, str]:
        if self._take(r"[A-Za-z_]*").lower() != "map" or not self._try("<"):
            raise self._error()
        key = self._type()[0]
        self._expect(",")
        return key, self._type()[0]

    def _fields(self) -> tuple[list[str], list[tuple[str, pa.DataType | None]]]:
        names: list[str] = []
        parts: list[tuple[str, pa.DataType | None]] = []
        while not self._try(">"):
            if names:
                self._expect(",")
            self._blanks()
            names.append(self._take(r"`(?:[^`]|``)*`|[^:<>,]+").strip())
            self._expect(":")
            parts.append(self._type())
        return names, parts

    def _struct(self) -> tuple[str, pa.DataType | None]:
        names, parts = self._fields()
        text = "struct<" + ",".join(f"{name}:{part[0]}" for name, part in zip(names, parts, strict=True)) + ">"
        if any(arrow is None for _, arrow in parts):
            return text, None
        return text, pa.struct([pa.field(_unquoted(n), part[1]) for n, part in zip(names, parts, strict=True)])

    def _atomic(self, text: str) -> tuple[str, pa.DataType | None]:
        if text.lower().startswith("string collate "):
            return f"string collate {text.split()[-1]}", pa.string()
        word = " ".join(text.split()).lower()
        head = re.split(r"[ (]", word, maxsplit=1)[0]
        word = _SYNONYMS.get(head, head) + word[len(head) :]
        if word in _SIMPLE:
            return word, _SIMPLE[word]
        if _DAY_TIME.fullmatch(word):
            return word, pa.duration("us")
        if re.fullmatch(r"interval( (year|month)( to month)?)?|variant", word):
            return word, None
        return self._sized("decimal(10,0)" if word == "decimal" else word)

    def _sized(self, word: str) -> tuple[str, pa.DataType | None]:
        match = _SIZED.fullmatch(word)
        if match is None:
            raise self._error()
        kind, arguments = match[1], [part.strip() for part in match[2].split(",")]
        if not all(re.fullmatch("[0-9]{1,10}", argument) for argument in arguments) or len(arguments) > (
            2 if kind == "decimal" else 1
        ):
            raise self._error()
        if kind == "decimal":
            precision, scale = int(arguments[0]), int(arguments[1]) if len(arguments) == 2 else 0
            if not 1 <= precision <= 38 or scale > precision:
                raise self._error()
            return f"decimal({precision},{scale})", pa.decimal128(precision, scale)
        return f"{kind}({arguments[0]})", pa.time64("ns") if kind == "time" else pa.string()

    def _blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _take(self, pattern: str) -> str:
        match = re.compile(pattern).match(self._text, self._at)
        if match is None:
            raise self._error()
        self._at = match.end()
        return match[0]

    def _try(self, token: str) -> bool:
        self._blanks()
        if self._text.startswith(token, self._at):
            self._at += len(token)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._try(token):
            raise self._error()

    def _error(self) -> UnsupportedError:
        return UnsupportedError(
            f"'{self._text}' is not a Spark type",
            condition="unknown-type",
            help="write it as in DDL, for example bigint, decimal(10,2), array<string>, struct<a:int>",
        )


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name


_SINGLE = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp|timestamp_ntz"
    r"|time\(\d\)|interval (year|month|day|hour|minute|second)( to (month|hour|minute|second))?"
)


def common_type(left: str, right: str) -> str | None:
    """The type in which Spark compares values of two types, if both become it without losing anything.

    None where the operators cannot compare them, or where Spark's conversion loses something (a number and a text): the
    comparison is then left to Spark.
    """
    for one, other in ((left, right), (right, left)):
        if one == "void" and _SINGLE.fullmatch(other):
            return other
        if one == "date" and other in ("timestamp", "timestamp_ntz"):
            return other
    if left == right:
        return left if _SINGLE.fullmatch(left) else None
    if left in INTEGERS and right in INTEGERS:
        return widest([left, right])
    if left in FLOATS and right in FLOATS:
        return "double"
    return common_decimal(left, right)


def union_type(left: str, right: str, *, ansi: bool) -> str | None:
    """The type of a column of Spark's UNION from those in its two inputs, under its ANSI mode or without it.

    None where Spark has none, where it would read numbers or times out of texts, where a decimal would lose digits, and
    for two maps or structs that differ.
    """
    pair = {left, right}
    if left == right or "void" in pair:
        return left if right == "void" else right
    if left.startswith("array<") and right.startswith("array<"):
        element = union_type(left[len("array<") : -1], right[len("array<") : -1], ansi=ansi)
        return None if element is None else f"array<{element}>"
    if pair == {"timestamp", "timestamp_ntz"}:
        return "timestamp"
    number = next((other for one, other in ((left, right), (right, left)) if one in FLOATS), None)
    if number in INTEGERS:
        return "float" if "float" in pair and not ansi else "double"
    if number is not None and number.startswith("decimal("):
        return "double"
    return common_type(left, right)


def family(name: str) -> str:
    """Types of one family need no cast for the operators: integers of any width, floats of any width."""
    return "integer" if name in INTEGERS else "float" if name in FLOATS else name


def as_type(expression: Expression, own: str, wanted: str) -> Expression:
    """The expression in another type; unchanged where the operators take it as it is."""
    if family(own) == family(wanted):
        return expression
    return cast(expression, wanted)
