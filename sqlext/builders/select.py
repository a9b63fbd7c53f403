"""A SELECT as data, and its text. Operations over periods in its FROM: what `Query.normalize`, `gaps`, `concurrent` and
`difference` read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sqlext.builders.computed import ComputedColumns, column_title, opened_frame
from sqlext.builders.expressions import ColumnPart, Expr, PeriodLike, period_of, windows_in
from sqlext.builders.text import (
    SelectScope,
    Source,
    Writer,
    WrittenQuery,
    column_name,
    is_name,
    last_part,
    opened_table,
    quoted,
)
from sqlext.builders.windows import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqlext.builders.queries import Query
    from sqlext.run.pipeline import StagedPlan


class Runner(Protocol):
    """What runs a statement: a Session."""

    @property
    def spark(self) -> SparkSession:
        """The underlying Spark session."""

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's own name
        """The DataFrame of a statement."""

    def plan(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as `sql`
        """The plan of a statement."""

    def analyze(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as `sql`
        """The plan of a statement, with what a run of it measures."""

    def table(self, source: Source) -> Query:
        """A query over a table, a DataFrame or a query."""


@dataclass(frozen=True, eq=False)
class JoinedInput:
    """An input of FROM, joined to those before it by `words` (the first has none)."""

    source: Source
    name: str | None = None
    words: str = ""
    on: tuple[Expr, ...] = ()
    order_by: tuple[Expr, ...] = ()
    match: tuple[Expr, ...] = ()
    method: str = ""

    @property
    def qualifier(self) -> str | None:
        """The name that its columns are called by."""
        if self.name is not None or not isinstance(self.source, str):
            return self.name
        return last_part(self.source)


@dataclass(frozen=True, eq=False)
class Select(WrittenQuery):
    """A SELECT, clause by clause; None is a clause that is not there."""

    runner: Runner = field(repr=False)
    relations: tuple[JoinedInput, ...]
    conditions: tuple[Expr, ...] = ()
    windows: tuple[Window, ...] = ()
    default_window: str | None = None
    items: tuple[Expr, ...] | None = None
    keys: tuple[Expr, ...] | None = None
    group_conditions: tuple[Expr, ...] = ()
    order: tuple[Expr, ...] = ()
    most: int | None = None
    hints: tuple[str, ...] = ()
    emit: str | None = None
    is_distinct: bool = False

    @property
    def table(self) -> tuple[Source, str | None] | None:
        """What a query that is nothing but a table reads, and its name there; None for any other query."""
        clauses = (self.conditions, self.windows, self.keys, self.group_conditions, self.hints)
        if len(self.relations) > 1 or any(clauses) or self._is_closed:
            return None
        return self.relations[0].source, self.relations[0].name

    @property
    def _is_closed(self) -> bool:
        """What is added now reads the result of this block."""
        return self.items is not None or bool(self.order) or self.most is not None or self.is_distinct

    def write(self, writer: Writer) -> None:
        """Append its text, without parentheses."""
        used = [item for item in windows_in(self._expressions()) if isinstance(item, Window)]
        windows = _named((*self.windows, *used))
        with writer.block(self._block(windows)):
            writer.write("SELECT ", *(f"/*+ {hint} */ " for hint in self.hints), "DISTINCT " * self.is_distinct)
            with writer.argument("select" if self.keys is None else "agg"):
                self._write_items(writer)
            writer.write(" FROM ")
            for number, relation in enumerate(self.relations):
                self._write_relation(writer, number, relation)
            for words, parts, separator, method in (
                (" WHERE ", self.conditions, " AND ", "where"),
                (" GROUP BY ", self.keys or (), ", ", "group_by"),
                (" HAVING ", self.group_conditions, " AND ", "having"),
            ):
                _write_clause(writer, words, parts, separator, method)
            for number, (window, name) in enumerate(windows):
                writer.write(", " if number else " WINDOW ", quoted(name), " AS ", window)
            _write_clause(writer, " ORDER BY ", self.order, ", ", "order_by")
            writer.write(*([] if self.most is None else [f" LIMIT {self.most}"]))
            with writer.argument("emit_after"):
                writer.write(*([] if self.emit is None else [f" {self.emit}"]))

    def _block(self, windows: Sequence[tuple[Window, str]]) -> SelectScope:
        names = {id(window): name for window, name in windows}
        source, default = self.relations[0].source, self.default_window
        made = [window for window, _ in windows]
        computed = ComputedColumns(self.runner, source, self._expressions(), made, names, default)
        if len(self.relations) > 1 or not computed.columns:  # over a join nothing can be computed beforehand
            return SelectScope({}, names, default)
        columns = {id(column): name for name, column in computed.columns.items()}
        return SelectScope(columns, names, default, computed.opened)

    def _write_items(self, writer: Writer) -> None:
        for number, item in enumerate((Expr(("*",)),) if self.items is None else self.items):
            writer.write(", " if number else "")
            if writer.block_now.opened is not None and item.parts == ("*",):
                writer.write(", ".join(map(quoted, opened_frame(self.runner, self.relations[0].source).columns)))
                continue
            writer.write(item)
            name = item.name or column_title(self.runner, self.relations[0].source, item)
            writer.write("" if name is None else f" AS {quoted(name)}")

    def _write_relation(self, writer: Writer, number: int, relation: JoinedInput) -> None:
        writer.write({"": "", ",": ", "}.get(relation.words, f" {relation.words} "))
        with writer.argument(f"the right side of {relation.method}" if relation.method else "table"):
            writer.source(relation.source)
        name = self._name(number)
        is_bare = isinstance(relation.source, str) and relation.name is None and writer.block_now.opened is None
        if name is not None and not is_bare:
            writer.write(f" AS {name}")
        _write_clause(writer, " ORDER BY ", relation.order_by, ", ", f"order_by of {relation.method}")
        _write_clause(writer, " MATCH_CONDITION (", relation.match, " AND ", f"match of {relation.method}")
        writer.write(")" if relation.match else "")
        conditions = tuple(self._on(number, item) for item in relation.on)
        _write_clause(writer, " ON ", conditions, " AND ", f"on of {relation.method}")

    def _name(self, number: int) -> str | None:
        """The name by which columns of an input are called; inputs of a join have one in any case."""
        name = self.relations[number].qualifier
        return f"_t{number + 1}" if name is None and len(self.relations) > 1 else name

    def _on(self, number: int, item: Expr) -> Expr:
        """A condition of a join; a name alone is a column of the first input and of this one."""
        column = item.parts[0] if len(item.parts) == 1 else None
        name = column if isinstance(column, str) else None
        if isinstance(column, ColumnPart):
            name = column_name(column.column)
        if name is None or not is_name(name):
            return item
        return Expr((f"{self._name(0)}.{name} = {self._name(number)}.{name}",))

    def _expressions(self) -> tuple[Expr, ...]:
        """The expressions over the rows of FROM, but not those in conditions of joins and in windows."""
        return (*(self.items or ()), *(self.keys or ()), *self.conditions, *self.group_conditions, *self.order)


def _write_clause(writer: Writer, words: str, parts: Sequence[Expr], separator: str, argument: str) -> None:
    """Append a clause, if it has parts; of several conditions each in parentheses where it needs them."""
    if not parts:
        return
    writer.write(words)
    with writer.argument(argument):
        if separator == " AND " and len(parts) > 1:
            parts = [Expr(("(", part, ")")) if part.holds_or else part for part in parts]
        writer.list(tuple(parts), separator)


def _named(windows: Sequence[Window]) -> list[tuple[Window, str]]:
    """The windows, each once, with names of their own: those that share one get numbers behind it."""
    by_id: dict[int, tuple[Window, str]] = {}
    taken: set[str] = set()
    for item in windows:
        if id(item) in by_id:
            continue
        name, number = item.name, 1
        while name.lower() in taken:
            number += 1
            name = f"{item.name}{number}"
        taken.add(name.lower())
        by_id[id(item)] = item, name
    return list(by_id.values())


_WRITTEN = re.compile(r"\s*PERIOD\s*(CLOSED\s*)?\(", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class KeyedPeriods:
    """An input: its rows, their key and their period, and the arguments that these came from."""

    source: Source
    keys: tuple[Expr, ...]
    period: PeriodLike
    source_from: str = "the input"
    keys_from: str = "partition_by"
    period_from: str = "period"

    def write(self, writer: Writer, runner: Runner, method: str) -> None:
        """Append ``source PARTITION BY keys PERIOD (start, end)``. Computed Columns are made in the source."""
        period = _clause(period_of(self.period))
        source, name = opened_table(self.source)
        computed = ComputedColumns(runner, source, (*self.keys, period), ())
        # In parentheses it is no column, whose name the result would get.
        columns = {id(column): f"({made})" for made, column in computed.columns.items()}
        with writer.block(SelectScope(columns, opened=computed.opened if columns else None)):
            with writer.argument(f"{self.source_from} of {method}"):
                writer.source(source)
            writer.write("" if name is None else f" AS {name}")
            for number, key in enumerate(self.keys):
                writer.write(", " if number else " PARTITION BY ")
                with writer.argument(f"{self.keys_from} of {method}"):
                    writer.write(key)
                title = key.name or column_title(runner, source, key)
                writer.write("" if title is None else f" AS {quoted(title)}")
            writer.write(" ")
            with writer.argument(f"{self.period_from} of {method}"):
                writer.write(period)


@dataclass(frozen=True, eq=False)
class PeriodTableQuery(WrittenQuery):
    """An operation over the periods of one input, or of one without those of another, as SQL's `word` has it."""

    runner: Runner = field(repr=False)
    word: str
    method: str
    periods: KeyedPeriods
    removed: KeyedPeriods | None = None

    def write(self, writer: Writer) -> None:
        writer.write("SELECT * FROM ")
        self.write_input(writer)

    def write_input(self, writer: Writer) -> None:
        writer.write(f"{self.word}(")
        self.periods.write(writer, self.runner, self.method)
        if self.removed is not None:
            writer.write(" EXCEPT ")
            self.removed.write(writer, self.runner, self.method)
        writer.write(")")

    def df(self) -> DataFrame:
        return self.runner.table(self).df()

    @property
    def table(self) -> None:
        return None


def _clause(period: Expr) -> Expr:
    """The period behind the word PERIOD: a struct as its one operand."""
    first = period.parts[0]
    if isinstance(first, str) and _WRITTEN.match(first):
        return period
    return Expr(("PERIOD(", period, ")"))
