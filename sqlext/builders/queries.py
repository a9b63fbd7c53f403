"""A query under construction: each method gives a new one, `df` the DataFrame, `to_sql` the text that it stands for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext.builders.expressions import ColumnPart, Expr, Value, amount_text, columns_in, expression, windows_in
from sqlext.builders.text import (
    Block,
    Rendered,
    Source,
    Subquery,
    Writer,
    column_name,
    is_name,
    last_part,
    opened_table,
    quoted,
    table_name,
)
from sqlext.builders.windows import Bound, Window, window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from sqlext.run.pipeline import StagedPlan

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
#: Conditions of a join: SQL text, an expression, or several of them, which all have to hold. A name alone is a column
#: of both sides.
Conditions: TypeAlias = Value | Sequence[Value]

_Found = TypeVar("_Found")

_KINDS: Mapping[str, str] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "cross": "CROSS JOIN",
}


class Runner(Protocol):
    """What runs a statement: a Session."""

    @property
    def spark(self) -> SparkSession:
        """The underlying Spark session."""

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's own name
        """The DataFrame of a statement."""

    def plan(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as `sql`
        """The plan of a statement."""

    def table(self, source: Source) -> Query:
        """A query over a table, a DataFrame or a query."""


@dataclass(frozen=True, eq=False)
class Relation:
    """An input of FROM, joined to those before it by `words` (the first has none)."""

    source: Source
    name: str | None = None
    words: str = ""
    on: tuple[Expr, ...] = ()
    order_by: Expr | None = None
    method: str = ""

    @property
    def qualifier(self) -> str | None:
        """The name that its columns are called by."""
        if self.name is not None or not isinstance(self.source, str):
            return self.name
        return last_part(self.source)


@dataclass(frozen=True, eq=False)
class Query(Subquery):
    """A SELECT. `Session.table` makes the first one. Methods are written in any order of joins and conditions; what
    comes after `select` or `agg` reads its result. Names, text and meaning are those of SQL."""

    runner: Runner = field(repr=False)
    relations: tuple[Relation, ...]
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

    def alias(self, name: str) -> Query:
        """The same rows under a name, by which joins and conditions call their columns."""
        name = quoted(name)
        if self.table is not None:
            return replace(self, relations=(replace(self.relations[0], name=name),))
        return Query(self.runner, (Relation(self, name),))

    def where(self, *conditions: Value) -> Query:
        """Only the rows for which all conditions are true. After `select`, they are about its result."""
        block = self._open()
        return replace(block, conditions=(*block.conditions, *map(expression, conditions)))

    def window(self, name: str, window: Window) -> Query:
        """A window under a name, for functions in text: ``.select("sum(price) OVER w AS spent")``."""
        block = self._open()
        return replace(block, windows=(*block.windows, window.named(name)))

    def window_union(
        self,
        *sources: Source,
        partition_by: Value | Sequence[Value],
        order_by: Value | None = None,
        rows_range: tuple[Bound, Bound] | None = None,
        rows: tuple[Bound, Bound] | None = None,
        maxsize: int | None = None,
        exclude_current_row: bool = False,
        exclude_current_time: bool = False,
        instance_not_in_window: bool = False,
        name: str = "w",
    ) -> Query:
        """The window over these rows and those of `sources` that functions without a window of their own run over.

        Its parts are those of ``fx.window(...)``; it needs one of `rows_range` and `rows`, ``("1h", 0)`` for example.
        Raises AnalysisError for both or neither, or for `maxsize` without `rows_range`.
        """
        if (rows_range is None) == (rows is None) or (maxsize is not None and rows_range is None):
            help = 'give rows_range=("1h", 0), with maxsize if you like, or rows=(-9, 0)'
            raise AnalysisError("a window needs one frame, rows_range or rows", help=help)
        found = window(partition_by, order_by, name=name).union(*sources)
        found = found.rows_range(*rows_range, maxsize=maxsize) if rows_range is not None else found.rows(*(rows or ()))
        found = found.exclude_current_row() if exclude_current_row else found
        found = found.exclude_current_time() if exclude_current_time else found
        found = found.instance_not_in_window() if instance_not_in_window else found
        return replace(self.window(name, found), default_window=name)

    def last_join(self, right: Source, on: Conditions, order_by: Value | None = None) -> Query:
        """LAST JOIN: each row with the last row of `right` for which all conditions hold, or with NULLs.

        order_by  what makes a row the last one: the largest value, or with ``fx.desc(...)`` the smallest
        """
        return self._joined(right, "LAST JOIN", on, "last_join", None if order_by is None else expression(order_by))

    def interval_join(self, right: Source, on: Conditions, how: JoinKind = "inner") -> Query:
        """A join with a period predicate among its conditions: ``on=[fx.overlaps(p, q), "l.k = r.k"]``."""
        return self._joined(right, _kind(how), on, "interval_join")

    def join(self, right: Source, on: Conditions = (), how: JoinKind = "inner") -> Query:
        """An ordinary join."""
        return self._joined(right, _kind(how), on, "join")

    def multiway_join(self, *others: Source, on: Conditions, merge: bool | None = None) -> Query:
        """The inner join with all others at once: ``on=["a.k = b.k", "b.k = c.k"]``.

        merge  True asks for one operator for all of them (the hint UMJOIN), False for joins of two at a time
        """
        query = self
        for other in others:
            query = query._joined(other, ",", (), "multiway_join")
        query = query.where(*(on if isinstance(on, list | tuple) else [on]))
        if merge is None:
            return query
        names = ", ".join(str(query._name(number)) for number in range(len(query.relations)))
        return query.hint(f"UMJOIN({names})" if merge else "NO_UMJOIN")

    def group_by(self, *keys: Value) -> Query:
        """The keys of `agg`."""
        block = self._open()
        return replace(block, keys=tuple(map(expression, keys)))

    def agg(self, *items: Value, **named: Value) -> Query:
        """One row for each group: its keys, and these aggregates."""
        keys = () if self.keys is None else self.keys
        return replace(self._open(), items=(*keys, *_items(items, named)))

    def having(self, *conditions: Value) -> Query:
        """Only the groups for which all conditions are true."""
        return replace(self, group_conditions=(*self.group_conditions, *map(expression, conditions)))

    def select(self, *items: Value, **named: Value) -> Query:
        """These columns and expressions: ``.select("user_id", spent=fx.sum("price"))``."""
        return replace(self._open(), items=_items(items, named))

    def order_by(self, *keys: Value) -> Query:
        """The rows in this order."""
        return replace(self if self.most is None else self._wrapped(), order=tuple(map(expression, keys)))

    def limit(self, count: int) -> Query:
        """The first rows."""
        return replace(self if self.most is None else self._wrapped(), most=count)

    def hint(self, text: str) -> Query:
        """A hint, as between ``/*+`` and ``*/``: ``.hint("SWEEP")``."""
        if "*/" in text:
            raise AnalysisError("a hint cannot hold '*/'", help="give one hint, such as 'UMJOIN(a, b, c)'")
        return replace(self, hints=(*self.hints, text))

    def emit_after(
        self, delay: str | datetime.timedelta, *, using: str | None = None, confidence: float | None = None
    ) -> Query:
        """Early answers of streams: each row also with estimates, `delay` after its time or its window's start.

        using       the estimator; by default the one of EMIT AFTER
        confidence  of the intervals, 0.95 by default
        """
        if self.items is None:
            raise AnalysisError("emit_after needs a select list", help="call it after .select(...) or .agg(...)")
        text = f"EMIT AFTER DELAY {amount_text(delay)}"
        text += "" if using is None else f" COMPENSATE USING {quoted(using)}"
        return replace(self, emit=text + ("" if confidence is None else f" CONFIDENCE {confidence!r}"))

    def df(self) -> DataFrame:
        """The query's DataFrame: that of ``session.sql`` for its text. Errors name the argument that they are about."""
        return self._run(lambda rendered: self.runner.sql(rendered.sql, **rendered.frames))

    def plan(self) -> StagedPlan:
        """The query at every stage of planning; nothing is run."""
        return self._run(lambda rendered: self.runner.plan(rendered.sql, **rendered.frames))

    def explain(self, mode: Literal["physical", "extended", "analyze"] = "physical") -> str:
        """What EXPLAIN, EXPLAIN EXTENDED or EXPLAIN ANALYZE says of the query."""
        words = {"physical": "EXPLAIN ", "extended": "EXPLAIN EXTENDED ", "analyze": "EXPLAIN ANALYZE "}[mode]
        return self._run(lambda rendered: str(self.runner.sql(rendered.sql, **rendered.frames).collect()[0][0]), words)

    def to_sql(self) -> str:
        """The query's text. DataFrames in it are ``{df1}``, ``{df2}``, ...: those of `frames`."""
        return self._rendered().sql

    def frames(self) -> Mapping[str, DataFrame]:
        """The DataFrames in the text: ``session.sql(query.to_sql(), **query.frames())`` is ``query.df()``."""
        return self._rendered().frames

    def __repr__(self) -> str:
        return f"<Query: {self.to_sql()}>"

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
        return self.items is not None or bool(self.order) or self.most is not None

    def _open(self) -> Query:
        return self._wrapped() if self._is_closed else self

    def _wrapped(self) -> Query:
        """A block that reads the result of this one, under the name of its only input: a name given with `alias`, or
        any as long as the columns are those of the input."""
        first = self.relations[0]
        name = first.qualifier if self.items is None else first.name
        name = name if len(self.relations) == 1 else None
        return Query(self.runner, (Relation(self, name),))

    def _joined(self, right: Source, words: str, on: Conditions, method: str, order_by: Expr | None = None) -> Query:
        if words in (_KINDS["right"], _KINDS["full"]) and self.conditions:
            return self._wrapped()._joined(right, words, on, method, order_by)
        block = self._open()
        source, name = opened_table(right)
        given = tuple(on) if isinstance(on, list | tuple) else (on,)
        added = Relation(source, name, words, tuple(map(expression, given)), order_by, method)
        return replace(block, relations=(*block.relations, added))

    def _run(self, run: Callable[[Rendered], _Found], words: str = "") -> _Found:
        rendered = self._rendered(words)
        try:
            return run(rendered)
        except SqlExtError as error:
            argument = None if error.span is None else rendered.argument_at(error.span)
            if argument is not None:
                error.notes = (*error.notes, f"this text comes from {argument}")
            raise

    def _rendered(self, words: str = "") -> Rendered:
        writer = Writer()
        writer.write(words, self)
        return writer.rendered()

    def write(self, writer: Writer) -> None:
        """Append its text, without parentheses."""
        computed = self._computed()
        windows = _named((*self.windows, *_windows_of(self._expressions())))
        names = {id(window): name for window, name in windows}
        columns = {id(column): name for name, column in computed.items()}
        with writer.block(Block(columns, names, self.default_window, self._opened(computed))):
            writer.write("SELECT ", *(f"/*+ {hint} */ " for hint in self.hints))
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

    def _write_items(self, writer: Writer) -> None:
        for number, item in enumerate((Expr(("*",)),) if self.items is None else self.items):
            writer.write(", " if number else "")
            if writer.block_now.opened is not None and item.parts == ("*",):
                writer.write(", ".join(map(quoted, opened_frame(self.runner, self.relations[0].source).columns)))
                continue
            writer.write(item)
            name = item.name or self._column_title(item)
            writer.write("" if name is None else f" AS {quoted(name)}")

    def _column_title(self, item: Expr) -> str | None:
        """The name that PySpark gives to a computed Column as an item of its own; None for any other item."""
        part = item.parts[0]
        if len(item.parts) > 1 or not isinstance(part, ColumnPart) or column_name(part.column) is not None:
            return None
        return opened_frame(self.runner, self.relations[0].source).select(part.column).columns[0]

    def _write_relation(self, writer: Writer, number: int, relation: Relation) -> None:
        writer.write({"": "", ",": ", "}.get(relation.words, f" {relation.words} "))
        with writer.argument(f"the right side of {relation.method}" if relation.method else "table"):
            writer.source(relation.source)
        name = self._name(number)
        is_bare = isinstance(relation.source, str) and relation.name is None and writer.block_now.opened is None
        if name is not None and not is_bare:
            writer.write(f" AS {name}")
        order = () if relation.order_by is None else (relation.order_by,)
        _write_clause(writer, " ORDER BY ", order, "", f"order_by of {relation.method}")
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
        """The expressions over the rows of FROM, but not those in conditions of joins."""
        items = (*(self.items or ()), *(self.keys or ()), *self.conditions, *self.group_conditions, *self.order)
        windows = (*self.windows, *_windows_of(items))
        return (*items, *(item for window in windows for item in window.expressions))

    def _computed(self) -> dict[str, Column]:
        """The computed Columns of the block by the names that they get in its input; none over a join."""
        if len(self.relations) > 1:
            return {}
        columns = {id(column): column for column in columns_in(self._expressions()) if column_name(column) is None}
        return {f"_column{number}": column for number, column in enumerate(columns.values(), 1)}

    def _opened(self, computed: Mapping[str, Column]) -> Callable[[Source], DataFrame] | None:
        """What gives the rows of an input with the computed Columns; None where there are none."""
        if not computed:
            return None
        return lambda source: opened_frame(self.runner, source).withColumns(dict(computed))


def query_over(runner: Runner, source: Source) -> Query:
    """A query of all rows of a source. Raises AnalysisError for text that is no name of a table."""
    if isinstance(source, str):
        table_name(source)
    return source if isinstance(source, Query) else Query(runner, (Relation(source),))


def opened_frame(runner: Runner, source: Source) -> DataFrame:
    """The rows of a source as a DataFrame."""
    if isinstance(source, str):
        return runner.spark.table(source)
    return source.df() if isinstance(source, Subquery) else source


def _write_clause(writer: Writer, words: str, parts: Sequence[Expr], separator: str, argument: str) -> None:
    """Append a clause, if it has parts; of several conditions each in parentheses where it needs them."""
    if not parts:
        return
    writer.write(words)
    with writer.argument(argument):
        if separator == " AND " and len(parts) > 1:
            parts = [Expr(("(", part, ")")) if part.holds_or else part for part in parts]
        writer.list(tuple(parts), separator)


def _windows_of(items: Sequence[Expr]) -> list[Window]:
    return [item for item in windows_in(tuple(items)) if isinstance(item, Window)]


def _named(windows: Sequence[Window]) -> list[tuple[Window, str]]:
    """The windows, each once, with names of their own: those that share one get numbers behind it."""
    found: dict[int, tuple[Window, str]] = {}
    taken: set[str] = set()
    for item in windows:
        if id(item) in found:
            continue
        name, number = item.name, 1
        while name.lower() in taken:
            number += 1
            name = f"{item.name}{number}"
        taken.add(name.lower())
        found[id(item)] = item, name
    return list(found.values())


def _items(items: Sequence[Value], named: Mapping[str, Value]) -> tuple[Expr, ...]:
    return (*map(expression, items), *(expression(value).alias(name) for name, value in named.items()))


def _kind(how: str) -> str:
    """The words of a kind of join, which may be written as in PySpark. Raises UnsupportedError for another one."""
    kind = how.lower().replace("_", "").removesuffix("outer")
    kind = {"leftsemi": "semi", "leftanti": "anti", "": "full"}.get(kind, kind)
    if kind not in _KINDS:
        raise UnsupportedError(f"there is no join {how!r}", help=f"how is one of {', '.join(_KINDS)}")
    return _KINDS[kind]
