"""A query under construction: each method gives a new one, `df` the DataFrame, `to_sql` the text that it stands for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext.builders.computed import ComputedColumns, column_title, opened_frame
from sqlext.builders.expressions import (
    ColumnPart,
    Expr,
    PeriodLike,
    Value,
    amount_text,
    expression,
    several,
    windows_in,
)
from sqlext.builders.period_tables import KeyedPeriods, PeriodTableQuery
from sqlext.builders.text import (
    Rendered,
    SelectScope,
    Source,
    Writer,
    WrittenQuery,
    column_name,
    is_name,
    last_part,
    opened_table,
    quoted,
    table_name,
)
from sqlext.builders.windows import Bound, Window, window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    order_by: Expr | None = None
    method: str = ""

    @property
    def qualifier(self) -> str | None:
        """The name that its columns are called by."""
        if self.name is not None or not isinstance(self.source, str):
            return self.name
        return last_part(self.source)


@dataclass(frozen=True, eq=False)
class Query(WrittenQuery):
    """A SELECT. `Session.table` makes the first one. Methods are written in any order of joins and conditions; what
    comes after `select` or `agg` reads its result. Names, text and meaning are those of SQL."""

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

    def alias(self, name: str) -> Query:
        """The same rows under a name, by which joins and conditions call their columns."""
        name = quoted(name)
        if self.table is not None:
            return replace(self, relations=(replace(self.relations[0], name=name),))
        return Query(self.runner, (JoinedInput(self, name),))

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
        by_name: bool = False,
        name: str = "w",
    ) -> Query:
        """The window over these rows and those of `sources` that functions without a window of their own run over.

        Its parts are those of ``fx.window(...)``; it needs one of `rows_range` and `rows`, ``("1h", 0)`` for example.
        `by_name` finds the columns of the sources by name; what a source or these rows lack is NULL there.
        Raises AnalysisError for both frames or neither, or for `maxsize` without `rows_range`.
        """
        if (rows_range is None) == (rows is None) or (maxsize is not None and rows_range is None):
            help = 'give rows_range=("1h", 0), with maxsize if you like, or rows=(-9, 0)'
            raise AnalysisError("a window needs one frame, rows_range or rows", condition="window-frame", help=help)
        found = window(partition_by, order_by, name=name).union(*sources, by_name=by_name)
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
        query = query.where(*several(on))
        if merge is None:
            return query
        names = ", ".join(str(query._name(number)) for number in range(len(query.relations)))
        return query.hint(f"UMJOIN({names})" if merge else "NO_UMJOIN")

    def normalize(self, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
        """NORMALIZE: the longest periods that the periods of a key cover without a gap. Periods that overlap or touch
        become one. The columns of the result are the keys, the start and the end.

        period        ``("ts", "te")``, ``fx.period(...)``, or the name of a column that is a struct of two ends
        partition_by  the key, or several; one that is no column needs a name: ``"year(ts) AS y"``, ``.alias("y")``
        """
        return self._over_periods("NORMALIZE", "normalize", period, partition_by)

    def gaps(self, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
        """GAPS: what no period of a key covers, between its first start and its last end; as for `normalize`."""
        return self._over_periods("GAPS", "gaps", period, partition_by)

    def concurrent(self, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
        """CONCURRENT: the number of a key's periods over time, in the column `concurrent`; as for `normalize`."""
        return self._over_periods("CONCURRENT", "concurrent", period, partition_by)

    def difference(
        self,
        other: Source,
        *,
        period: PeriodLike,
        partition_by: Value | Sequence[Value] = (),
        other_period: PeriodLike | None = None,
        other_partition_by: Value | Sequence[Value] | None = None,
    ) -> Query:
        """NORMALIZE ... EXCEPT: what the periods of a key cover and those of `other` with this key do not, normalised.

        period, partition_by              as for `normalize`
        other_period, other_partition_by  those of `other`, where they are not the same; keys correspond by position
        """
        keys_from = "partition_by" if other_partition_by is None else "other_partition_by"
        period_from = "period" if other_period is None else "other_period"
        keys = partition_by if other_partition_by is None else other_partition_by
        removed = KeyedPeriods(
            other, several(keys), period if other_period is None else other_period, "other", keys_from, period_from
        )
        return self._over_periods("NORMALIZE", "difference", period, partition_by, removed)

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

    def distinct(self) -> Query:
        """Each row once."""
        return replace(self._wrapped() if self.order or self.most is not None else self, is_distinct=True)

    def order_by(self, *keys: Value) -> Query:
        """The rows in this order."""
        return replace(self if self.most is None else self._wrapped(), order=tuple(map(expression, keys)))

    def limit(self, count: int) -> Query:
        """The first rows."""
        return replace(self if self.most is None else self._wrapped(), most=count)

    def hint(self, text: str) -> Query:
        """A hint, as between ``/*+`` and ``*/``: ``.hint("SWEEP")``."""
        if "*/" in text:
            raise AnalysisError(
                "a hint cannot hold '*/'", condition="malformed-hint", help="give one hint, such as 'UMJOIN(a, b, c)'"
            )
        return replace(self, hints=(*self.hints, text))

    def emit_after(
        self, delay: str | datetime.timedelta, *, using: str | None = None, confidence: float | None = None
    ) -> Query:
        """Early answers of streams: each row also with estimates, `delay` after its time or its window's start.

        using       the estimator; by default the one of EMIT AFTER
        confidence  of the intervals, 0.95 by default
        """
        if self.items is None:
            raise AnalysisError(
                "emit_after needs a select list",
                condition="python-call",
                help="call it after .select(...) or .agg(...)",
            )
        text = f"EMIT AFTER DELAY {amount_text(delay)}"
        text += "" if using is None else f" COMPENSATE USING {quoted(using)}"
        return replace(self, emit=text + ("" if confidence is None else f" CONFIDENCE {confidence!r}"))

    def df(self) -> DataFrame:
        """The query's DataFrame: that of ``session.sql`` for its text. Errors name the argument that they are about."""
        return self._run(lambda rendered: self.runner.sql(rendered.sql, **rendered.frames))

    def plan(self) -> StagedPlan:
        """The query at every stage of planning; nothing is run."""
        return self._run(lambda rendered: self.runner.plan(rendered.sql, **rendered.frames))

    def analyze(self) -> StagedPlan:
        """The plan with what a run of the query measures of each node (`Session.analyze`)."""
        return self._run(lambda rendered: self.runner.analyze(rendered.sql, **rendered.frames))

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
        return self.items is not None or bool(self.order) or self.most is not None or self.is_distinct

    def _open(self) -> Query:
        return self._wrapped() if self._is_closed else self

    def _wrapped(self) -> Query:
        """A block that reads the result of this one, under the name of its only input: a name given with `alias`, or
        any as long as the columns are those of the input."""
        first = self.relations[0]
        name = first.qualifier if self.items is None else first.name
        name = name if len(self.relations) == 1 else None
        return Query(self.runner, (JoinedInput(self, name),))

    def _joined(self, right: Source, words: str, on: Conditions, method: str, order_by: Expr | None = None) -> Query:
        if words in (_KINDS["right"], _KINDS["full"]) and self.conditions:
            return self._wrapped()._joined(right, words, on, method, order_by)
        block = self._open()
        source, name = opened_table(right)
        added = JoinedInput(source, name, words, several(on), order_by, method)
        return replace(block, relations=(*block.relations, added))

    def _over_periods(
        self,
        word: str,
        method: str,
        period: PeriodLike,
        partition_by: Value | Sequence[Value],
        removed: KeyedPeriods | None = None,
    ) -> Query:
        periods = KeyedPeriods(self, several(partition_by), period)
        return query_over(self.runner, PeriodTableQuery(self.runner, word, method, periods, removed))

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
        windows = _named((*self.windows, *_windows_of(self._expressions())))
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
        computed = self._computed(self._expressions(), windows)
        if computed is None:
            return SelectScope({}, names, self.default_window)
        columns = {id(column): name for name, column in computed.columns.items()}
        return SelectScope(columns, names, self.default_window, computed.opened)

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
        """The expressions over the rows of FROM, but not those in conditions of joins and in windows."""
        return (*(self.items or ()), *(self.keys or ()), *self.conditions, *self.group_conditions, *self.order)

    def _computed(self, items: Sequence[Expr], windows: Sequence[tuple[Window, str]]) -> ComputedColumns | None:
        """The computed Columns of the block; None without any, and over a join."""
        if len(self.relations) > 1:
            return None
        names = {id(window): name for window, name in windows}
        found = ComputedColumns(
            self.runner, self.relations[0].source, items, [item for item, _ in windows], names, self.default_window
        )
        return found if found.columns else None


def query_over(runner: Runner, source: Source) -> Query:
    """A query of all rows of a source. Raises AnalysisError for text that is no name of a table."""
    if isinstance(source, str):
        table_name(source)
    return source if isinstance(source, Query) else Query(runner, (JoinedInput(source),))


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
        raise UnsupportedError(
            f"there is no join {how!r}", condition="python-call", help=f"how is one of {', '.join(_KINDS)}"
        )
    return _KINDS[kind]
