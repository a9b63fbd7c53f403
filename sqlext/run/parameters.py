"""Values put into a statement's text: parameter markers (`:name`, `?`) and `{name}` references.

Every statement is bound for planning; one that passes through reaches Spark as the user wrote it. The bound text
remembers where each value came from, so that errors point at the user's text.

Scalars of numpy and pandas as Python values, in the types that `pyspark.sql.functions.lit` gives them.

pandas need not be there: its scalars are told by their types' names.
"""

from __future__ import annotations

import datetime
import math
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from sqlext_planner.errors import AnalysisError, Span, SqlExtError, UnsupportedError

from sqlext.syntax.sql_settings import DEFAULT, SqlSettings, string_literal

_MARKERS = r"""
    (?P<skip> r'[^']*' | '(?:[^'\\]|\\.|'')*' | {double_quoted} | `(?:[^`]|``)*`
            | --[^\n]* | /\*.*?\*/ )
  | (?P<positional> \?(?!::) )
  | (?<![\w\)\]:'"`]) : (?P<name> [A-Za-z_]\w* )     # not the path of `variant:field`, not `::`
    """
_STRING, _NAME = (
    re.compile(_MARKERS.format(double_quoted=text), re.VERBOSE | re.DOTALL | re.IGNORECASE)
    for text in (r'r"[^"]*" | "(?:[^"\\]|\\.|"")*"', '"(?:[^"]|"")*"')
)


@dataclass(frozen=True)
class MovedSpan:
    """The span `original` of the user's text became the span `bound` of the new one."""

    original: Span
    bound: Span


@dataclass(frozen=True)
class BoundText:
    """A statement's text with values in place of markers, and the way back to the user's text."""

    sql: str
    edits: tuple[MovedSpan, ...] = ()
    unbound: tuple[SqlExtError, ...] = ()

    def original(self, span: Span) -> Span:
        """The place in the user's text for a place in the bound text; a value's place is that of its marker."""
        return Span(self._offset(span.start, end=False), self._offset(span.end, end=True))

    def _offset(self, offset: int, *, end: bool) -> int:
        shift = 0
        for edit in self.edits:
            if offset < edit.bound.start or (end and offset == edit.bound.start):
                break
            if offset < edit.bound.end or (end and offset == edit.bound.end):
                return edit.original.end if end else edit.original.start
            shift = edit.original.end - edit.bound.end
        return offset + shift


def bind_arguments(
    sql: str, args: Mapping[str, Any] | Sequence[Any] | None, settings: SqlSettings = DEFAULT
) -> BoundText:
    """`sql` with the markers that `args` names (a mapping) or numbers (a sequence) replaced by SQL literals, as Spark
    reads them under `settings`.

    Markers without a value, or with one that has no literal, stay as they are; `unbound` holds the error for each,
    to be raised if the statement turns out to need it.
    """
    edits: list[tuple[Span, str]] = []
    unbound: list[SqlExtError] = []
    position = 0
    for match in (_NAME if settings.double_quoted_names else _STRING).finditer(sql):
        if match["skip"] is not None:
            continue
        span = Span(*match.span())
        key: Any = match["name"] if match["name"] is not None else position
        position += match["positional"] is not None
        if not _has(args, key):
            unbound.append(_no_value(match.group(), span))
            continue
        try:
            edits.append((span, literal(args[key], settings)))  # type: ignore[index]
        except Exception as error:  # a value of another library may fail in its own way
            unbound.append(_no_literal(match.group(), span, str(error)))
    bound = _apply(sql, edits)
    return BoundText(bound.sql, bound.edits, tuple(unbound))


def replace_spans(sql: str, spans: Sequence[Span], convert: Callable[[str], str]) -> BoundText:
    """`sql` with the text at each of `spans`, which are in text order, replaced by what `convert` returns for it."""
    return _apply(sql, [(span, convert(sql[span.start : span.end])) for span in spans])


def format_references(sql: str, values: Mapping[str, Any], convert: Callable[[Any], Any]) -> BoundText:
    """`sql` with `{name}` replaced as Python's str.format does, each value first turned into SQL by `convert`.

    Raises AnalysisError for a name that has no value.
    """
    formatter = string.Formatter()
    edits: list[tuple[Span, str]] = []
    for span in _fields(sql):
        if sql[span.start : span.end] in ("{{", "}}"):
            edits.append((span, sql[span.start]))
            continue
        _, name, spec, conversion = next(iter(formatter.parse(sql[span.start : span.end])))
        try:
            value, _ = formatter.get_field(name or "", (), values)
        except (KeyError, AttributeError, IndexError) as error:
            known = ", ".join(sorted(values))
            message = f"no value was given for {{{name}}}"
            raise AnalysisError(
                message, condition="parameter-value", span=span, help=f"known names: {known}"
            ) from error
        converted = formatter.convert_field(convert(value), conversion)
        edits.append((span, formatter.format_field(converted, formatter.vformat(spec or "", (), values))))
    return _apply(sql, edits)


@contextmanager
def errors_show(sql: str, bound: BoundText | None = None) -> Iterator[None]:
    """User errors raised inside show `sql`; a place in `bound.sql` becomes the place in `sql` that it came from."""
    try:
        yield
    except SqlExtError as error:
        if error.lines:  # found by a task: it knows its place in the user's text
            raise
        if bound is not None and error.span is not None:
            error.span = bound.original(error.span)
        error.sql = sql
        raise


def literal(value: Any, settings: SqlSettings = DEFAULT) -> str:
    """A Python value as a Spark SQL literal of the type that `pyspark.sql.functions.lit` gives it.

    Scalars of numpy and pandas are values too. Raises TypeError for a value that has no literal.
    """
    number = number_literal(value)
    if number is not None:
        return number
    value = plain(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _integer(value)
        case float():
            return _double(value)
        case str():
            return string_literal(value, settings)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case Decimal():
            return _decimal(value)
        case datetime.datetime():
            instant = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return f"TIMESTAMP '{instant.isoformat(sep=' ', timespec='microseconds')}+00:00'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.timedelta():
            return _interval(value)
        case list() | tuple():
            return f"array({', '.join(literal(item, settings) for item in value)})"
        case dict():
            return f"map({', '.join(literal(part, settings) for item in value.items() for part in item)})"
    raise TypeError(f"a value of type {type(value).__name__} has no SQL literal")


def _integer(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        return f"CAST('{value}' AS DECIMAL({len(str(abs(value)))}, 0))"
    text = str(value) if -(2**31) <= value < 2**31 else f"{value}L"
    return text if value >= 0 else f"({text})"


def _double(value: float) -> str:
    if not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    return f"{value!r}D" if value >= 0 else f"({value!r}D)"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise TypeError(f"the decimal {value} has no SQL literal")
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _interval(value: datetime.timedelta) -> str:
    microseconds = value // datetime.timedelta(microseconds=1)
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    return f"INTERVAL '{'-' if microseconds < 0 else ''}{days} {clock}' DAY TO SECOND"


def _no_value(marker: str, span: Span) -> SqlExtError:
    help = "give its value in `args`: a dict for :name markers, a list for ? markers"
    return AnalysisError(f"the parameter {marker} has no value", condition="parameter-value", span=span, help=help)


def _no_literal(marker: str, span: Span, reason: str) -> SqlExtError:
    help = "give a number, string, boolean, decimal, date, datetime, timedelta, bytes, list, dict or None"
    return UnsupportedError(f"the parameter {marker}: {reason}", condition="parameter-value", span=span, help=help)


def _has(args: Mapping[str, Any] | Sequence[Any] | None, key: str | int) -> bool:
    if isinstance(args, Mapping):
        return key in args
    return args is not None and isinstance(key, int) and key < len(args)


def _fields(sql: str) -> Iterator[Span]:
    """The replacement fields of a format string, and its doubled braces."""
    place = 0
    while (brace := re.compile(r"\{\{|\}\}|\{|\}").search(sql, place)) is not None:
        place = brace.end()
        if len(brace.group()) == 1:
            depth = 1 if brace.group() == "{" else -1
            while depth > 0 and place < len(sql):
                depth += {"{": 1, "}": -1}.get(sql[place], 0)
                place += 1
            if depth != 0:
                span = Span(brace.start(), brace.start() + 1)
                help = "write {{ or }} for a brace that belongs to the text"
                raise AnalysisError(
                    "the text contains {references}, and also a single brace",
                    condition="parameter-value",
                    span=span,
                    help=help,
                )
        yield Span(brace.start(), place)


def _apply(sql: str, edits: list[tuple[Span, str]]) -> BoundText:
    pieces: list[str] = []
    done: list[MovedSpan] = []
    place = length = 0
    for span, text in edits:
        pieces += [sql[place : span.start], text]
        length += span.start - place
        done.append(MovedSpan(span, Span(length, length + len(text))))
        length += len(text)
        place = span.end
    return BoundText("".join([*pieces, sql[place:]]), tuple(done))


#: Suffixes of number literals by Spark's types; an int has none.
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_INTEGERS = {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}
#: Units of `numpy.datetime64` that are whole days.
_DATES = ("Y", "M", "W", "D")


def plain(value: Any) -> Any:
    """A scalar of numpy or pandas as a Python value, None for NaT and NA; a 1-dimensional array as the list of its
    scalars; anything else as it is.

    Raises TypeError for a time finer than a microsecond, which no value of Spark is, and for numbers that Spark lacks.
    """
    kind = type(value)
    if _is_of_pandas(value):
        return _of_pandas(value, kind.__name__)
    if isinstance(value, np.ndarray) and value.ndim < 2:
        return plain(value[()]) if value.ndim == 0 else list(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _time(value)
    if isinstance(value, (np.longdouble, np.complexfloating)) and not isinstance(value, float):
        raise TypeError(f"a value of type {kind.__name__} has no SQL literal")
    return value.item() if isinstance(value, np.generic) else value


def is_foreign(value: Any) -> bool:
    """Whether a value is a scalar of numpy or pandas that is no text."""
    return (isinstance(value, np.generic) and not isinstance(value, str)) or (
        _is_of_pandas(value) and type(value).__name__ in _PANDAS
    )


def number_literal(value: Any) -> str | None:
    """A number of numpy as a literal of the Spark type of its width, an unsigned one of the next wider type; None for
    any other value."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, (np.float32, np.float16)):
        number = np.float32(value)
        text = f"{number!s}F" if math.isfinite(number) else f"CAST('{number!s}' AS FLOAT)"
    elif isinstance(value, np.integer) and not isinstance(value, (np.timedelta64, np.uint64)):
        width = value.dtype.itemsize * (2 if isinstance(value, np.unsignedinteger) else 1)
        text = f"{int(value)}{_SUFFIXES[_INTEGERS[width]]}"
    else:
        return None
    return f"({text})" if text.startswith("-") else text


_PANDAS = ("NaTType", "NAType", "Timestamp", "Timedelta")


def _is_of_pandas(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas"


def _of_pandas(value: Any, name: str) -> Any:
    if name in ("NaTType", "NAType"):
        return None
    if name == "Timestamp":
        _refuse_nanoseconds(value, value.nanosecond)
        return value.to_pydatetime()
    if name == "Timedelta":
        _refuse_nanoseconds(value, value.nanoseconds)
        return value.to_pytimedelta()
    return value


def _time(value: np.datetime64 | np.timedelta64) -> Any:
    """A date, a datetime without zone, or a timedelta."""
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if unit == "generic":
        raise TypeError("a numpy.timedelta64 without a unit has no SQL literal")
    date = isinstance(value, np.datetime64) and unit in _DATES
    if isinstance(value, np.timedelta64) and unit in ("Y", "M"):
        raise TypeError("a numpy.timedelta64 in months or years has no fixed length")
    kind = "datetime64" if isinstance(value, np.datetime64) else "timedelta64"
    fine = value.astype(f"{kind}[{'D' if date else 'us'}]")
    _refuse_nanoseconds(value, fine.astype(value.dtype) != value)
    found = fine.item()
    if isinstance(found, int):
        raise TypeError(f"{value!s} is beyond the years that Python has")
    return found


def _refuse_nanoseconds(value: object, found: Any) -> None:
    if found:
        raise TypeError(f"{value!s} is finer than a microsecond, which no time of Spark is; round it first")
