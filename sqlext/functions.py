"""The extension's functions for builders and other Python code.

    from sqlext import Session, functions as fx

    views = Session(spark).table("views")
    spent = views.window_union("orders", partition_by="user_id", order_by="ts", rows_range=("1h", 0))
    spent.select("user_id", "ts", spent=fx.sum("price")).df()

Expressions are SQL text, Columns of PySpark, or what these functions give. Texts that are constants of a function
(delimiters) are Python's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlext.builders import period_functions, window_functions
from sqlext.builders.expressions import Expr, PeriodLike, Value, expression, period_call, period_of, template
from sqlext.builders.period_functions import *  # noqa: F403
from sqlext.builders.queries import Conditions, JoinKind, Query
from sqlext.builders.text import Source, WrittenQuery, literal_text
from sqlext.builders.window_functions import *  # noqa: F403
from sqlext.builders.windows import Bound, Window, window

__all__ = ["Expr", "Query", "Window", "allen_relation", "concurrent", "desc", "difference", "exists", "expr", "gaps"]
__all__ += ["interval_join", "last_join", "lit", "multiway_join", "normalize", "period", "window", "window_union"]
__all__ += ["asof_join"]
__all__ += window_functions.__all__
__all__ += period_functions.__all__


def expr(text: str, *values: Value | Query) -> Expr:
    """SQL text as an expression. Each ``{}`` in it stands for one of `values`: an expression, a Column, a query.

    Without values the text is taken as it is. Raises AnalysisError if there are more or fewer places than values.
    """
    return template(text, values)


def lit(value: object) -> Expr:
    """A Python value as an SQL literal; a str is a text.

    Raises UnsupportedError for a value that has none.
    """
    return Expr((literal_text(value),), is_atom=True)


def desc(key: Value) -> Expr:
    """The order from the largest to the smallest, for `order_by`."""
    return Expr((expression(key), " DESC"))


def exists(query: Query) -> Expr:
    """Whether the query has rows; ``~fx.exists(...)`` is NOT EXISTS."""
    return Expr(("EXISTS (", query, ")"), is_atom=True)


def period(start: Value, end: Value, *, closed: bool = False, open: bool = False, by: str | Sequence[str] = ()) -> Expr:
    """A period of time from `start` up to `end`.

    closed  `end` belongs to it (integers and dates)
    open    a NULL `end` means for ever, on streams an end that is not known yet
    by      with `open` on streams: the columns that tell the periods of a side apart
    """
    names = [by] if isinstance(by, str) else list(by)
    words = " OPEN" if open else ""
    words += f" BY {', '.join(names)}" if names else ""
    return Expr(
        (f"PERIOD {'CLOSED ' if closed else ''}(", expression(start), ", ", expression(end), words, ")"), is_atom=True
    )


def allen_relation(left: PeriodLike, right: PeriodLike) -> Expr:
    """The name of the relation of Allen's that holds, such as ``met_by``; ``none`` for an empty or reversed period."""
    return period_call("allen_relation", period_of(left), period_of(right))


def window_union(
    left: Source,
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
    """`Query.window_union` for a table, a DataFrame or a query."""
    return _query(left, *sources).window_union(
        *sources,
        partition_by=partition_by,
        order_by=order_by,
        rows_range=rows_range,
        rows=rows,
        maxsize=maxsize,
        exclude_current_row=exclude_current_row,
        exclude_current_time=exclude_current_time,
        instance_not_in_window=instance_not_in_window,
        by_name=by_name,
        name=name,
    )


def asof_join(left: Source, right: Source, match: Conditions, on: Conditions = (), how: JoinKind = "inner") -> Query:
    """`Query.asof_join` for a table, a DataFrame or a query."""
    return _query(left, right).asof_join(right, match, on, how)


def last_join(left: Source, right: Source, on: Conditions, order_by: Value | Sequence[Value] | None = None) -> Query:
    """`Query.last_join` for a table, a DataFrame or a query."""
    return _query(left, right).last_join(right, on, order_by)


def interval_join(left: Source, right: Source, on: Conditions, how: JoinKind = "inner") -> Query:
    """`Query.interval_join` for a table, a DataFrame or a query."""
    return _query(left, right).interval_join(right, on, how)


def multiway_join(*inputs: Source, on: Conditions, merge: bool | None = None) -> Query:
    """The inner join of all inputs. The planner finds out whether one operator for all of them is cheaper than joins of
    two at a time; `merge` says so (True, False) with a hint.

    on  conditions between the inputs: ``["a.k = b.k", "b.k = c.k"]``
    """
    return _query(*inputs).multiway_join(*inputs[1:], on=on, merge=merge)


def normalize(source: Source, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
    """`Query.normalize` for a table, a DataFrame or a query."""
    return _query(source).normalize(period=period, partition_by=partition_by)


def gaps(source: Source, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
    """`Query.gaps` for a table, a DataFrame or a query."""
    return _query(source).gaps(period=period, partition_by=partition_by)


def concurrent(source: Source, *, period: PeriodLike, partition_by: Value | Sequence[Value] = ()) -> Query:
    """`Query.concurrent` for a table, a DataFrame or a query."""
    return _query(source).concurrent(period=period, partition_by=partition_by)


def difference(
    source: Source,
    other: Source,
    *,
    period: PeriodLike,
    partition_by: Value | Sequence[Value] = (),
    other_period: PeriodLike | None = None,
    other_partition_by: Value | Sequence[Value] | None = None,
) -> Query:
    """`Query.difference` for tables, DataFrames or queries."""
    return _query(source, other).difference(
        other,
        period=period,
        partition_by=partition_by,
        other_period=other_period,
        other_partition_by=other_partition_by,
    )


def _query(*sources: Source) -> Query:
    """A query over the first source, on the session of one of them, else on the Spark session of a DataFrame, else on
    the one that is running."""
    from sqlext.session import Session

    first = sources[0]
    if isinstance(first, Query):
        return first
    for source in sources:
        if isinstance(source, Query):
            return source.runner.table(first)
    frames = [source for source in sources if not isinstance(source, str | WrittenQuery)]
    return Session(frames[0].sparkSession if frames else None).table(first)
