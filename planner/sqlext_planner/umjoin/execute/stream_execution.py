"""The physical multi-way join over streams: one exchange into a stateful operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.exchange.driver import Shipment
from sqlext_planner.exchange.stream_driver import (
    Chain,
    StreamInput,
    bucket_count,
    identity,
    run_stream,
    watermark_error,
)
from sqlext_planner.exchange.wire import arrow_schema
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.spark.streams import FIXED_ZONE
from sqlext_planner.umjoin.execute.execution import UMJoinExec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.scatter import Router
    from sqlext_operators.umjoin.spec import MultiwayJoinSpec
    from sqlext_operators.umjoin.stream_bounds import StreamTimes

    from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs


@dataclass(frozen=True)
class ColumnBound:
    """A condition between two times: `later` is at most `most` microseconds after `earlier`.

    `slack` is how much of that is there because a day of a time zone need not have 24 hours. Without it the bound says
    what the condition says in a zone whose days all have 24."""

    earlier: Column
    later: Column
    most: int
    slack: int = 0
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.later} <= {self.earlier} + {self.most / 1e6:g}s"


@dataclass(frozen=True)
class UMJoinStreamExec(StreamExec, UMJoinExec):
    """Joins streams as a UMJoinExec joins tables, where the `bounds` hold too.

    A row comes out once, in append mode: when the last row that it needs has come, or, with left or anti inputs, when
    the watermark says that nothing more can match.
    """

    bounds: tuple[ColumnBound, ...] = field(default=(), kw_only=True)
    asked: bool = field(default=False, compare=False, kw_only=True, repr=False)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises UnsupportedError for types or times that the operator cannot compare, AnalysisError for watermarks
        that do not suit, ConfigurationError if Spark's settings do not suit a stream's state; errors are about the hint
        if one has `asked` for the operator."""
        try:
            return self._joined(context)
        except SqlExtError as error:
            raise error.about_hint() if self.asked else error from None

    def _joined(self, context: ExecutionContext) -> DataFrame:
        from sqlext_operators.umjoin.stream import MultiwayStreamSpec

        from sqlext_planner.umjoin.execute.exchanged import TypedInputs

        frames = [execute_cached(child, context) for child in self.inputs]
        streams = self._streams(frames)
        columns = self._time_columns(streams)
        place = next((span for span in self.stream_spans if span is not None), None)
        chain = Chain.of(streams, [None if column is None else column.spark_name for column in columns])
        typed = TypedInputs.of(self, frames, [() if column is None else (column,) for column in columns])
        if typed is None:
            raise UnsupportedError(
                "a multi-way join over streams has keys of types that compare differently, or columns that Spark "
                "cannot pass through Python",
                condition="unsupported-type",
                span=place,
                help="cast the keys to one type in subqueries, or leave the hint out",
            )
        zone = str(context.spark.conf.get("spark.sql.session.timeZone"))
        times = self._times(columns, streams, zone)
        self._check_joined(typed.spec, times)
        schemas = tuple(arrow_schema(frame.schema) for frame in typed.frames)
        late_fails = context.config.stream_late == "fail"
        placed = self._placed(typed.spec, times)
        owned = None if placed is None else placed.owned
        batch_rows = context.config.output_batch_rows
        stream = MultiwayStreamSpec(typed.spec, times, schemas, late_fails, batch_rows, owned)
        routers = _routers(typed.spec, self.routing, bucket_count(context))
        shipments = [
            Shipment(tag, frame, item.keys, router)
            for tag, (frame, item, router) in enumerate(zip(typed.frames, typed.spec.inputs, routers, strict=True))
        ]
        parts = {
            "operator": "multi-way join",
            "join": repr(typed.spec),
            "keys": "; ".join(self._definitions()),
            "times": repr(times),
            "routing": self.routing,
            "time zone": zone,
        }
        described = identity(parts, typed.frames, typed.result)
        late = _result_times(columns, times)
        found = run_stream(shipments, stream, typed.result, context, described, chain, late, placed)
        return found if tuple(found.columns) == self.frame_columns else found.toDF(*self.frame_columns)

    def _check_joined(self, spec: MultiwayJoinSpec, times: StreamTimes) -> None:
        """Raises UnsupportedError for inner inputs that conditions join whose columns turn out to have no watermark."""
        lonely = times.apart([item.classes for item in spec.inputs])
        if lonely:
            raise UnsupportedError(
                apart(relation_name(self.inputs[lonely[0]])),
                condition="stream-unbounded",
                span=self.stream_spans[lonely[0]],
                help="give the columns of these conditions watermarks, or leave the hint out",
            )

    def _placed(self, spec: MultiwayJoinSpec, times: StreamTimes) -> PlacedInputs | None:
        """How the keys have places, now that all event times are known. Raises UnsupportedError at the hint."""
        from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs
        from sqlext_planner.umjoin.execute.exchanged import shared_keys

        names = [relation_name(child) for child in self.inputs]
        placing = None if self.placing is None else self.placing.allowed(endless(times, names))
        if placing is None:
            return None
        keys = tuple(shared_keys(spec))
        null_safe = (False,) * len(keys[0])
        return PlacedInputs(placing, keys, times.columns, owned_input(self.kinds), null_safe, drops=True)

    def _time_columns(self, streams: Sequence[StreamInput]) -> list[Column | None]:
        """The event time of each input that the plan reads."""
        members = member_columns([child.output_columns for child in self.inputs], self.kinds)
        pairs = zip(self.inputs, streams, strict=True)
        return [time_column(stream.delays_of(child.output_columns), self.bounds, members) for child, stream in pairs]

    def _definitions(self) -> Iterator[str]:
        """What the keys of each input are computed from: the columns have the same names and types if that changes."""
        for child, classes in zip(self.inputs, self.layout.columns, strict=True):
            yield ", ".join(_definition(child, column) for held in classes for column in held)

    def _streams(self, frames: Sequence[DataFrame]) -> list[StreamInput]:
        """The inputs. Raises AnalysisError for one whose rows cannot be told from late ones."""
        streams = []
        for frame, span in zip(frames, self.stream_spans, strict=True):
            stream = StreamInput.of(frame)
            error = stream.error()
            if error is not None:
                raise watermark_error("an input of a multi-way join", error, span)
            streams.append(stream)
        return streams

    def _times(self, columns: Sequence[Column | None], streams: Sequence[StreamInput], zone: str) -> StreamTimes:
        from sqlext_operators.umjoin.stream_bounds import StreamTimes, TimeBound

        place = {column: i for i, column in enumerate(columns) if column is not None}
        bounds = []
        owner = {column: i for i, child in enumerate(self.inputs) for column in child.output_columns}
        for bound in self.bounds:
            pair = (bound.earlier, bound.later)
            missing = next((column for column in pair if column not in place), None)
            of_match = any(self.kinds[owner[column]] != "inner" for column in pair)
            if missing is None:
                exact = not bound.slack or FIXED_ZONE.fullmatch(zone) is not None
                if of_match and not exact:  # the operator alone checks it
                    raise UnsupportedError(
                        f"a left, semi or anti join counts days, and a day of {zone} need not have 24 hours",
                        condition="stream-not-supported",
                        span=bound.span,
                        help="use an interval below one day, TIMESTAMP_NTZ columns, or spark.sql.session.timeZone=UTC",
                    )
                most = bound.most - bound.slack if exact else bound.most
                bounds.append(TimeBound(place[bound.earlier], place[bound.later], most))
            elif of_match:
                why = "has no watermark"
                help = f"give that stream a watermark on {missing.name}: withWatermark, or WATERMARK ... DELAY OF"
                if streams[owner[missing]].origin.operators:
                    why, help = streams[owner[missing]].result_error(missing.spark_name)
                raise UnsupportedError(
                    f"the match of a left, semi or anti input compares {missing}, which {why}",
                    condition="stream-unbounded",
                    span=missing.span or self.stream_spans[owner[missing]],
                    help=help,
                )
        names = tuple(None if column is None else column.spark_name for column in columns)
        times = StreamTimes(self.kinds, names, tuple(bounds))
        for member in times.waited:
            assert times.anchor(member) is not None, "bounds of matches are all known"
        return times


def apart(name: str) -> str:
    """Why an inner input that nothing joins with the other inner ones cannot be ours."""
    return (
        f"{name} is joined with the other inner inputs neither on equal columns nor on times with watermarks that are "
        f"bounded on both sides, like {name}.ts BETWEEN other.ts AND other.ts + INTERVAL 1 HOUR"
    )


def owned_input(kinds: Sequence[str]) -> int:
    """The input whose rows are owned where keys have places: the first inner one. Each joined row has one of its rows,
    and if bounds lead from one inner input to all others and back, they do so from each."""
    return kinds.index("inner")


def endless(times: StreamTimes, names: Sequence[str]) -> str | None:
    """Why keys keep their places where rows of some input match rows of others for ever; None if there is no such
    input. `names` are those of the inputs."""
    owned = owned_input(times.kinds)
    for i, name in enumerate(names):
        pairs = ((name, names[owned], times.after(owned, i)), (names[owned], name, times.after(i, owned)))
        for later, earlier, most in pairs:
            if most is None:
                return (
                    f"no condition says how long after a row of {earlier} one of {later} may match it, "
                    "so that a bucket that gets a key later lacks rows"
                )
    return None


def member_columns(columns: Sequence[Sequence[Column]], kinds: Sequence[str]) -> frozenset[Column]:
    """The columns of inputs that are not inner."""
    return frozenset(column for own, kind in zip(columns, kinds, strict=True) if kind != "inner" for column in own)


def time_column(
    delays: Mapping[Column, int], bounds: Sequence[ColumnBound], members: frozenset[Column]
) -> Column | None:
    """The event time of an input among the columns with a known delay: the one that most conditions name, above all
    those over the columns of left, semi and anti inputs (`members`), and then the one with the least delay."""

    def rank(column: Column) -> tuple[int, int, int]:
        found = [{item.earlier, item.later} for item in bounds if column in (item.earlier, item.later)]
        return -sum(bool(pair & members) for pair in found), -len(found), delays[column]

    return min(delays, key=rank, default=None)


def _result_times(columns: Sequence[Column | None], times: StreamTimes) -> dict[str, int | str]:
    """The event times of the results: a row of an input comes out for as long as it is kept."""
    found: dict[str, int | str] = {}
    for column, kept in zip(columns, times.retention, strict=True):
        if column is not None:
            why = f"no condition of its join says until when rows find matches by {column}"
            found[column.spark_name] = why if kept is None else max(kept, 0)
    return found


def _definition(plan: PhysicalPlan, column: Column) -> str:
    """The expression that computes a column of a plan, as far as Projects show it."""
    match plan:
        case SparkExec(Project(items), (child,)):
            expression = next(item.expression for item in items if item.column == column)
            return _definition(child, expression) if isinstance(expression, Column) else str(expression)
        case SparkExec(Filter(), (child,)):
            return _definition(child, column)
        case SparkExec(SubqueryAlias(), (child,)):
            return _definition(child, child.output_columns[plan.output_columns.index(column)])
    return str(column)


def _routers(spec: MultiwayJoinSpec, routing: str, buckets: int) -> list[Router]:
    from sqlext_operators.exchange.scatter import MatchRouter
    from sqlext_operators.umjoin.shares_routing import SharesRouter

    from sqlext_planner.umjoin.execute.exchanged import choose_shares, shared_keys

    if routing == "shared key":
        return [MatchRouter(names, (False,) * len(names), keep=False) for names in shared_keys(spec)]
    # nothing is known of how many rows the streams will bring
    shares = choose_shares([1.0] * len(spec.inputs), [item.classes for item in spec.inputs], spec.classes, buckets)
    return [SharesRouter.of(item, shares) for item in spec.inputs]
