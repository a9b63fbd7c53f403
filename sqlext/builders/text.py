"""The SQL text of a builder while it is written: which argument each piece came from, and which DataFrames it reads."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.relational.physical_plan import quoted as in_backticks

from sqlext.run.parameters import literal, plain

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_not_usable = partial(UnsupportedError, condition="python-call")

#: What a literal is made of. (A str is SQL text, never a literal.)
Literal = bool | int | float | Decimal | datetime.date | datetime.timedelta | None

_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")


class SqlPart(Protocol):
    """A piece of SQL that knows how to write itself."""

    def write(self, writer: Writer) -> None:
        """Append the text to the writer's."""


class WrittenQuery(ABC):
    """A query, as expressions and other queries read it."""

    @abstractmethod
    def write(self, writer: Writer) -> None:
        """Append its text, without parentheses."""

    def write_input(self, writer: Writer) -> None:
        """Append what stands for it in FROM."""
        writer.write("(", self, ")")

    @abstractmethod
    def df(self) -> DataFrame:
        """Its DataFrame."""

    @property
    @abstractmethod
    def table(self) -> tuple[Source, str | None] | None:
        """What a query that is nothing but a table reads, and its name there; None for any other query."""


#: What rows a query or a window reads: the name of a table, a DataFrame, or a query.
Source: TypeAlias = Union[str, "DataFrame", WrittenQuery]


@dataclass(frozen=True)
class Rendered:
    """A statement's text for ``session.sql(text, **frames)``."""

    sql: str
    frames: Mapping[str, DataFrame]
    places: tuple[tuple[Span, str], ...]

    def argument_at(self, span: Span) -> str | None:
        """The argument that the text at a place came from; None for text of the builder's own."""
        return next((name for place, name in self.places if place.start <= span.start < place.end), None)


@dataclass(frozen=True)
class SelectScope:
    """What holds within one SELECT.

    columns         the names under which computed Columns are found in its input, by their ids
    windows         the names of its windows, by their ids
    default_window  the window of functions without one
    opened          gives an input of FROM, or of a window's UNION, with the computed Columns; None if there are none
    """

    columns: Mapping[int, str] = field(default_factory=dict)
    windows: Mapping[int, str] = field(default_factory=dict)
    default_window: str | None = None
    opened: Callable[[Source, SqlPart | None], DataFrame] | None = None


@dataclass
class Writer:
    """Collects the text of a statement, piece by piece. `block_now` is the SELECT that is being written."""

    block_now: SelectScope = field(default_factory=SelectScope)
    _pieces: list[tuple[str, str | None]] = field(default_factory=list)
    _frames: dict[str, DataFrame] = field(default_factory=dict)
    _argument: str | None = None

    def write(self, *parts: str | SqlPart) -> None:
        """Append SQL text and parts."""
        for part in parts:
            if isinstance(part, str):
                self._pieces.append((part, self._argument))
            else:
                part.write(self)

    def list(self, parts: Sequence[str | SqlPart], separator: str = ", ") -> None:
        """Append parts with a separator between them."""
        for number, part in enumerate(parts):
            if number:
                self.write(separator)
            self.write(part)

    def column(self, column: Column) -> None:
        """Append the name of a Column: its own, or that under which it has been computed.

        Raises UnsupportedError for a computed one where it cannot be computed beforehand.
        """
        name = self.block_now.columns.get(id(column)) or column_name(column)
        if name is None:
            raise _not_usable(
                f"{self._argument or 'this argument'}: {column} is computed, and only plain columns can be used here",
                help="write it as text, such as 'price * 2', or compute it first with DataFrame.withColumn",
            )
        self.write(name)

    def source(self, source: Source, window: SqlPart | None = None) -> None:
        """Append what FROM and the UNION of a window read: a name, a reference to a DataFrame, or a query.

        Raises AnalysisError for text that is no name of a table.
        """
        source, _ = opened_table(source)
        if self.block_now.opened is not None:
            self._frame(self.block_now.opened(source, window))
        elif isinstance(source, str):
            self.write(table_name(source))
        elif isinstance(source, WrittenQuery):
            if window is None:
                source.write_input(self)
            else:
                self.write("(", source, ")")
        else:
            self._frame(source)

    def _frame(self, frame: DataFrame) -> None:
        name = next((name for name, known in self._frames.items() if known is frame), None)
        if name is None:
            name = f"df{len(self._frames) + 1}"
            self._frames[name] = frame
        self._pieces.append((f"\0{name}\0", self._argument))

    @contextmanager
    def argument(self, name: str) -> Iterator[None]:
        """What is written inside came from this argument."""
        before, self._argument = self._argument, name
        try:
            yield
        finally:
            self._argument = before

    @contextmanager
    def block(self, block: SelectScope) -> Iterator[None]:
        """What is written inside is a SELECT of its own."""
        before, self.block_now = self.block_now, block
        try:
            yield
        finally:
            self.block_now = before

    def rendered(self) -> Rendered:
        """The whole text."""
        texts: list[str] = []
        places = []
        length = 0
        for text, argument in self._pieces:
            if self._frames:  # the text is a format string then
                text = text.replace("{", "{{").replace("}", "}}")
            text = re.sub("\0(.*?)\0", r"{\1}", text)
            if argument is not None:
                places.append((Span(length, length + len(text)), argument))
            texts.append(text)
            length += len(text)
        return Rendered("".join(texts), self._frames, tuple(places))


def opened_table(source: Source) -> tuple[Source, str | None]:
    """What a query that is nothing but a table reads, and its name there; anything else as it is."""
    found = source.table if isinstance(source, WrittenQuery) else None
    return (source, None) if found is None else found


def column_name(column: Column) -> str | None:
    """The name of a plain column, as SQL writes it; None for a computed one."""
    from sqlext_planner.spark.columns import name_of

    return name_of(column)


def literal_text(value: object) -> str:
    """A Python value as SQL. Raises UnsupportedError for one that has no literal."""
    try:
        return literal(value)
    except TypeError as error:
        raise _not_usable(str(error), help="give a number, a date, a time or an interval, or SQL text") from None


def python_value(value: Any) -> Any:
    """A scalar of numpy or pandas as a Python value; anything else as it is. Raises UnsupportedError for one that is no
    value of Spark, and where NaT and NA mean nothing."""
    try:
        found = plain(value)
        if found is None and value is not None:
            raise TypeError(f"{value!s} is no amount")
    except TypeError as error:
        raise _not_usable(str(error), help="give a number or a timedelta") from None
    return found


def table_name(text: str) -> str:
    """The text, if it is the name of a table, such as ``orders``, ``shop.orders`` or ```my orders```.

    Raises AnalysisError for any other text.
    """
    if _NAME.fullmatch(text) is None:
        raise AnalysisError(
            f"{text!r} is not the name of a table",
            condition="python-call",
            help="quote unusual names with backticks, and give another name to a table with .alias('o')",
        )
    return text


def last_part(name: str) -> str:
    """The last part of a table's name, by which its columns are called."""
    parts: list[str] = re.findall(_PART, name)
    return parts[-1] if parts else name


def is_name(text: str) -> bool:
    """Whether a text is a name without dots."""
    return re.fullmatch(_PART, text) is not None


def quoted(name: str) -> str:
    """A name as SQL writes it, in backticks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else in_backticks(name)
