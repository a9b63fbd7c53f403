"""A query under construction: each method gives a new one, `df` the DataFrame, `to_sql` the text that it stands for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext.builders.expressions import Expr, PeriodLike, Value, amount_text, expression, several
from sqlext.builders.select import JoinedInput, KeyedPeriods, PeriodTableQuery, Runner, Select
from sqlext.builders.text import Rendered, Source, Writer, opened_table, quoted, table_name
from sqlext.builders.windows import Bound, Window, window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


@dataclass(frozen=True, eq=False)
class Query(Select):
    """A SELECT. `Session.table` makes the first one. Methods are written in any order of joins and conditions; what
    comes after `select` or `agg` reads its result. Names, text and meaning are those of SQL."""

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

    def last_join(self, right: Source, on: Conditions, order_by: Value | Sequence[Value] | None = None) -> Query:
        """LAST JOIN: each row with the last row of `right` for which all conditions hold, or with NULLs.

        order_by  what makes a row the last one: the largest value, or with ``fx.desc(...)`` the smallest; of several
                  keys the next one says where the first is equal
        """
        return self._joined(right, "LAST JOIN", on, "last_join", order_by=several(() if order_by is None else order_by))

    def asof_join(self, right: Source, match: Conditions, on: Conditions = (), how: JoinKind = "inner") -> Query:
        """ASOF JOIN: each row with the nearest row of `right` for which all conditions hold.

        match  the comparison of two times, ``"v.ts >= o.ts"``; others of the same times bound how far away a row may be
        how    ``inner``, or ``left``, which keeps rows without a match, with NULLs
        """
        words = {"JOIN": "ASOF JOIN", "LEFT JOIN": "ASOF LEFT JOIN"}.get(_kind(how))
        if words is None:
            help = "how is 'inner', or 'left' to keep rows without a match"
            raise UnsupportedError(f"there is no ASOF JOIN of kind {how!r}", condition="python-call", help=help)
        return self._joined(right, words, on, "asof_join", match=several(match))

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

    def _open(self) -> Query:
        return self._wrapped() if self._is_closed else self

    def _wrapped(self) -> Query:
        """A block that reads the result of this one, under the name of its only input: a name given with `alias`, or
        any as long as the columns are those of the input."""
        first = self.relations[0]
        name = first.qualifier if self.items is None else first.name
        name = name if len(self.relations) == 1 else None
        return Query(self.runner, (JoinedInput(self, name),))

    def _joined(self, right: Source, words: str, on: Conditions, method: str, **clauses: tuple[Expr, ...]) -> Query:
        if words in (_KINDS["right"], _KINDS["full"]) and self.conditions:
            return self._wrapped()._joined(right, words, on, method, **clauses)
        block = self._open()
        source, name = opened_table(right)
        added = JoinedInput(source, name, words, several(on), method=method, **clauses)
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


def query_over(runner: Runner, source: Source) -> Query:
    """A query of all rows of a source. Raises AnalysisError for text that is no name of a table."""
    if isinstance(source, str):
        table_name(source)
    return source if isinstance(source, Query) else Query(runner, (JoinedInput(source),))


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
