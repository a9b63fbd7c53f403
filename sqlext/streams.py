"""What statements over streams have done: the figures of the queries that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sqlext.explain.stream_plan import StreamPlan

#: The figures of a micro-batch that are added up over micro-batches; the others are those of the last one.
_ADDED = (
    *("rows_in", "rows_out", "late_rows", "timeless_rows", "future_rows", "copied_rows"),
    *("read_bytes", "written_bytes", "found_chunks"),
)
_SHOWN = ("rows_in", "rows_out", "late_rows", "timeless_rows", "state_rows", "state_bytes", "state_chunks")


def figures_of(progress: Any) -> dict[str, int]:
    """The figures of a micro-batch from its StreamingQueryProgress, those of all our operators in the query added up.
    In a chain of operators, `rows_in` are the rows of streams and `rows_out` those that leave the chain.

    Rows: `rows_in`, `rows_out`, `late_rows` (below the watermark), `timeless_rows` (without a time), `copied_rows` (for
    keys with several places), and with `sqlext.stream.future` `future_rows` (too far in the future). State:
    `state_rows`, `state_bytes`, `state_chunks`; `read_bytes` and `written_bytes` from and to the state store,
    `found_chunks` that were at hand. Time: `state_ms`, `operator_ms`, of all tasks together. Empty for a query without
    our operators.
    """
    from sqlext_planner.spark.streams import (
        ALL_BUCKETS,
        BUCKETS,
        FUTURE_ROWS,
        MOST_ROWS,
        MOST_WORK,
        future_rows,
        observed_figures,
        operators_below,
    )

    ours = observed_figures(progress)
    below = operators_below(ours)
    totals: dict[str, int] = {}
    for name, numbers in ours.items():
        for key, value in numbers.items():
            given_on = key == "rows_out" and name in below
            if key not in (MOST_ROWS, BUCKETS, MOST_WORK, ALL_BUCKETS):
                totals[key] = totals.get(key, 0) + (0 if given_on else value)
    future = future_rows(progress)
    return totals if future is None else {**totals, FUTURE_ROWS: future}


@dataclass(frozen=True)
class OperatorFigures:
    """How the keys of an operator are spread: how often they got other places (since the query began with its
    checkpoint), the `copied_rows` for that in the micro-batches that Spark remembers, and in the last one with rows how
    much the bucket with the most work (rows read, copies and results) had of the average, 1: all the same."""

    name: str
    changes: int
    copied_rows: int
    balance: float | None

    def __str__(self) -> str:
        balance = "" if self.balance is None else f", the fullest bucket has {self.balance:.2f} times the average work"
        times = "once" if self.changes == 1 else f"{self.changes} times"
        return f"keys of {self.name} moved {times}, {self.copied_rows:,} rows copied{balance}"


@dataclass(frozen=True)
class StreamFigures:
    """A running query: `batches` micro-batches of those that Spark remembers (the last 100), their figures, the
    watermark of the last one, and how each of its operators spreads keys."""

    name: str
    batches: int
    watermark: str | None
    figures: Mapping[str, int] = field(default_factory=dict)
    operators: tuple[OperatorFigures, ...] = ()

    def __str__(self) -> str:
        keys = [*_SHOWN, *(key for key in ("future_rows",) if key in self.figures)]
        shown = ", ".join(f"{key.replace('_', ' ')} {self.figures.get(key, 0):,}" for key in keys)
        moved = "".join(f"; {item}" for item in self.operators if item.changes)
        return f"{self.name}: {self.batches} micro-batches, watermark {self.watermark or 'none yet'}, {shown}{moved}"


class Streams:
    """The running queries with operators of ours; printing it shows a line for each."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __iter__(self) -> Iterator[StreamFigures]:
        for query in self._spark.streams.active:
            found = query_figures(query)
            if found is not None:
                yield found

    def explain(self, query: StreamingQuery) -> StreamPlan:
        """The physical plan of a query of this process, running or ended, with what each operator did and what state
        it keeps; print it. Raises ConfigurationError for a query without operators of ours."""
        from sqlext.explain.stream_plan import stream_plan

        return stream_plan(query)

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no statement over streams runs"


def query_figures(query: StreamingQuery) -> StreamFigures | None:
    """The figures of one query, running or ended; None for a query without our operators."""
    done = [(progress, figures_of(progress)) for progress in query.recentProgress]
    ours = [(progress, figures) for progress, figures in done if figures]
    if not ours:
        return None
    total = dict(ours[-1][1])
    for key in (key for key in _ADDED if key in total):
        total[key] = sum(figures.get(key, 0) for _, figures in ours)
    watermark = (ours[-1][0].eventTime or {}).get("watermark")
    operators = operator_figures([progress for progress, _ in ours])
    return StreamFigures(query.name or str(query.id), len(ours), watermark, total, operators)


def operator_figures(done: Sequence[Any]) -> tuple[OperatorFigures, ...]:
    """Of each operator in some micro-batches (StreamingQueryProgress), by what they have observed."""
    from sqlext_planner.exchange.stream_listeners import changes_in
    from sqlext_planner.spark.streams import observed_figures

    by_name: dict[str, list[dict[str, int]]] = {}
    changes: dict[str, int] = {}
    for progress in done:
        for name, numbers in observed_figures(progress).items():
            by_name.setdefault(name, []).append(numbers)
    for progress in reversed(done):
        for name in by_name.keys() - changes.keys():
            number = changes_in((progress.observedMetrics or {}).get(name))
            if number is not None:
                changes[name] = number
    return tuple(_operator(name, batches, changes.get(name, 0)) for name, batches in by_name.items())


def _operator(name: str, batches: Sequence[Mapping[str, int]], changes: int) -> OperatorFigures:
    from sqlext_planner.spark.streams import ALL_BUCKETS, MOST_WORK

    from sqlext.explain.stream_plan import operator_name

    balance = None
    last = next((numbers for numbers in reversed(batches) if numbers.get(MOST_WORK)), None)
    if last is not None:
        work = sum(last[key] for key in ("rows_in", "copied_rows", "rows_out"))
        balance = last[MOST_WORK] * last[ALL_BUCKETS] / work
    return OperatorFigures(operator_name(name), changes, sum(numbers["copied_rows"] for numbers in batches), balance)
