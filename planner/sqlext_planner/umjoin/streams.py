"""Multi-way joins over streams at planning time: which part our operator computes, what bounds its rows in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlext_operators.umjoin.stream_bounds import StreamTimes, TimeBound

from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import PlannedDelays, planned_delays
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction, conjuncts, reads_only
from sqlext_planner.periods.types import distance
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, relation_name
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.streams import event_times, other_stream_rows, stream_spans
from sqlext_planner.umjoin.execute.cascade import cascade
from sqlext_planner.umjoin.execute.execution import Routing
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.execute.stream_execution import (
    ColumnBound,
    UMJoinStreamExec,
    apart,
    member_columns,
    time_column,
)
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin, equality

if TYPE_CHECKING:
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing

_TIMES = ("timestamp", "timestamp_ntz")
_ORDERED = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class StreamParts:
    """A multi-way join over streams: `core` joins the streams, `bounds` are the terms that compare their times.

    Spark joins the tables with its result, each micro-batch with what they hold then: `tables` are the numbers of these
    inputs, `condition` and `matches` what is left to check there.
    """

    core: UMJoin
    bounds: tuple[ColumnBound, ...]
    tables: tuple[int, ...]
    condition: Expression | None
    matches: tuple[Expression | None, ...]


@dataclass(frozen=True)
class _Above:
    """What `cascade` needs to know of the joins above the operator; its first input is the operator's result."""

    kinds: tuple[MemberKind, ...]
    condition: Expression | None
    matches: tuple[Expression | None, ...]
    output: tuple[Field, ...]
    count: Column | None = None


def refusal(node: UMJoin) -> SqlExtError | None:
    """Why a join that a hint asks for cannot be computed over its streams; None if it can, or if Spark computes it."""
    if node.asked is None:
        return None
    found = stream_parts(node)
    if not isinstance(found, str):
        return None
    return UnsupportedError(
        f"the hint {node.asked} cannot be followed: {found}",
        condition="hint-not-followed",
        span=node.asked.span,
        help="leave the hint out: Spark's binary joins compute the same rows, as far as they can on streams",
    )


def stream_parts(node: UMJoin) -> StreamParts | str:
    """The parts of a join over streams, or why our operator cannot compute them."""
    streams = [i for i, child in enumerate(node.inputs) if child.is_streaming]
    if len(streams) < 2:
        return "only one of its inputs is a stream, which Spark joins with tables as it comes"
    if not any(node.kinds[i] == "inner" for i in streams):
        return "none of its inner inputs is a stream"
    types = {column: kind for child in node.inputs for column, kind in child.dtypes.items()}
    known = frozenset(c for i in streams if node.kinds[i] == "inner" for c in node.inputs[i].output_columns)
    inside = [term for term in conjuncts(node.condition) if reads_only(term, known)]
    outside = [term for term in conjuncts(node.condition) if not reads_only(term, known)]
    owner = {column: i for i, child in enumerate(node.inputs) for column in child.output_columns}
    bounds = [bound for term in inside for bound in _bounds(term, types) if _apart(bound, owner)]
    matches: list[Expression | None] = []
    for i in streams:
        rest = []
        own = frozenset(node.inputs[i].output_columns)
        for term in conjuncts(node.matches[i]):
            if not reads_only(term, known | own):
                return f"the {node.kinds[i].upper()} JOIN of {relation_name(node.inputs[i])} reads columns of a table"
            found = [bound for bound in _bounds(term, types) if _apart(bound, owner)]
            bounds += found
            if not found or equality(term) is not None:
                rest.append(term)
        matches.append(conjunction(rest))
    tables = tuple(i for i in range(len(node.inputs)) if i not in streams)
    kinds = tuple(node.kinds[i] for i in streams)
    above = outside if tables else []
    condition = conjunction(inside if tables else [*inside, *outside])
    core = UMJoin(tuple(node.inputs[i] for i in streams), kinds, condition, tuple(matches), span=node.span)
    read = {c for term in [*above, *(node.matches[i] for i in tables)] if term is not None for c in term.references}
    wanted = read | {item.column for item in node.output}
    payload = tuple(item.column for item in core.joined if item.column in wanted)
    core = UMJoin(core.inputs, kinds, condition, tuple(matches), payload=payload or None, span=node.span)
    obstacle = ineligible(core) or next(_obstacles(core, bounds), None)
    if obstacle is not None:
        return obstacle
    return StreamParts(core, tuple(bounds), tables, conjunction(above), tuple(node.matches[i] for i in tables))


def _obstacles(core: UMJoin, bounds: Sequence[ColumnBound]) -> Iterator[str]:
    split = UMJoinSplit.of(core)
    for i in split.members:
        yield (
            f"{relation_name(core.inputs[i])} is not joined on equal columns alone, of inputs that are joined on these "
            f"too, besides conditions between times"
        )
    times = stream_times(core, bounds)
    yield from (_endless(core, i) for i in times.waited if times.anchor(i) is None)
    yield from (apart(relation_name(core.inputs[i])) for i in times.apart(split.layout.classes))


def _endless(core: UMJoin, i: int) -> str:
    name = relation_name(core.inputs[i])
    return (
        f"nothing says until when rows of {name} may match, so no row without a match is ever known; add a condition "
        f"like {name}.ts <= other.ts + INTERVAL 1 HOUR to its ON"
    )


def stream_times(core: UMJoin, bounds: Sequence[ColumnBound]) -> StreamTimes:
    """The bounds between the inputs, if all columns in them have watermarks."""
    owner = {column: i for i, child in enumerate(core.inputs) for column in child.output_columns}
    found = [TimeBound(owner[bound.earlier], owner[bound.later], bound.most) for bound in bounds]
    named = {owner[column]: column.spark_name for bound in bounds for column in (bound.earlier, bound.later)}
    return StreamTimes(core.kinds, tuple(named.get(i) for i in range(len(core.inputs))), tuple(found))


def _apart(bound: ColumnBound, owner: Mapping[Column, int]) -> bool:
    return owner[bound.earlier] != owner[bound.later]


def _bounds(term: Expression, types: Mapping[Column, str | None]) -> list[ColumnBound]:
    """What a comparison of two times says about them; none for any other term."""
    if not isinstance(term, Compare):
        return []
    if (pair := equality(term)) is not None:
        timed = all(types.get(column) in _TIMES for column in pair) and types[pair[0]] == types[pair[1]]
        return [ColumnBound(*pair, 0), ColumnBound(*pair[::-1], 0)] if timed else []
    if term.op not in _ORDERED:
        return []
    low, high = (term.left, term.right) if term.op in ("<", "<=") else (term.right, term.left)
    first, second = distance(low, types), distance(high, types)
    if first is None or second is None or types[first[0]] != types[second[0]]:
        return []
    # low[0] + at least low[1] <= high[0] + at most high[2]
    most = second[2] - first[1] - (1 if "=" not in term.op else 0)
    slack = (second[2] - second[1] + first[2] - first[1]) // 2
    return [ColumnBound(earlier=second[0], later=first[0], most=most, slack=slack, span=term.span)]


def other_rows(node: UMJoin, parts: StreamParts, root: LogicalPlan | None) -> str | None:
    """Why a statement that Spark can run would not be the same with our operator: its rows, when they come, or what may
    read them. None if nothing but its figures is another."""
    core = parts.core
    difference = other_stream_rows(node, core.inputs, root)
    if difference is not None:
        return difference
    times = frozenset(column for child in core.inputs for column in event_times(child))
    known = [bound for bound in parts.bounds if {bound.earlier, bound.later} <= times]
    if stream_times(core, parts.bounds).deciding:
        return "its rows would wait until the watermark has passed all matches of LEFT and ANTI JOIN"
    lonely = next(iter(stream_times(core, known).apart(UMJoinSplit.of(core).layout.classes)), None)
    return None if lonely is None else apart(relation_name(core.inputs[lonely]))


#: A row that Spark's joins keep costs as much time as so many of the operator's. Measured: 2.5 with a shared key and a
#: state of 0.1M rows, 6 with 1M; 3.8 to 4.8 without a shared key, 1.5 to 6 copies of each row, 1M rows.
_SPARK_ROW = 4.0


@dataclass(frozen=True)
class KeptInputs:
    """What the operator and Spark's joins, two at a time, keep: `inputs` of the join, each on the average in `copies`
    of the `tasks` of the operator, and in Spark the results of all joins but the last. Spark `refuses` a join whose
    input has two event times."""

    inputs: int
    copies: float
    tasks: int
    refuses: bool

    @property
    def pays(self) -> bool:
        """Whether the operator has less work with what it keeps, or Spark joins nothing."""
        return self.refuses or self.inputs * self.copies <= _SPARK_ROW * (self.inputs + self._results)

    @property
    def _results(self) -> int:
        return self.inputs - 2

    def __str__(self) -> str:
        copied = "once"
        if self.copies > 1:
            copied = f"{self.copies:.3g} times each in {self.tasks} tasks, since they share no key"
        theirs = f" and the results of {self._results} join{'s' if self._results > 1 else ''}" if self._results else ""
        if self.refuses:
            theirs += ", and refuse them: the result of a join has two event times"
        if self.copies > 1 and not self.refuses:
            theirs += f", and a row costs them {_SPARK_ROW:g} times as much"
        return f"the operator keeps its {self.inputs} inputs {copied}, Spark's joins keep them once{theirs}"


def kept_inputs(parts: StreamParts, tasks: int) -> KeptInputs:
    """What a join over streams keeps, by the operator in so many tasks and by Spark."""
    layout = UMJoinSplit.of(parts.core).layout
    inputs = len(parts.core.inputs)
    copies = 1.0
    if not layout.shared:
        from sqlext_planner.umjoin.execute.exchanged import choose_shares, moved

        shares = choose_shares([1.0] * inputs, layout.classes, layout.count, tasks)
        copies = moved([1.0] * inputs, layout.classes, shares) / inputs
    return KeptInputs(inputs, copies, tasks, any(_has_two_times(parts.core, end) for end in range(2, inputs)))


def _has_two_times(core: UMJoin, end: int) -> bool:
    """Whether the join of the first `end` inputs passes on more than one event time."""
    joined = frozenset(column for child in core.inputs[:end] for column in child.output_columns)
    read = {column for term in conjuncts(core.condition) if not term.references <= joined for column in term.references}
    times = {column for child in core.inputs[:end] for column in event_times(child)}
    return len(times & (read | set(core.payload or ()))) > 1


def stream_plan(
    node: UMJoin, parts: StreamParts, inputs: Sequence[PhysicalPlan], why: str, placing: StreamPlacing | None
) -> PhysicalPlan:
    """The physical plan; `inputs` are the plans of the node's inputs, `placing` says how keys have places."""
    core = parts.core
    split = UMJoinSplit.of(core)
    routing: Routing = "shared key" if split.layout.shared else "hypercube"
    spans = stream_spans(core.inputs)
    streams = [plan for i, plan in enumerate(inputs) if i not in parts.tables]
    late = delays(parts, streams)
    more: dict[str, Any] = {"asked": node.asked is not None, "delays": late, "placing": placing}
    make = partial(UMJoinStreamExec, bounds=parts.bounds, stream_spans=spans, **more)
    plan = operator_plan(core, streams, routing, facts={"why": f"{why}; {retention(parts)}"}, make=make)
    if not parts.tables:
        return plan
    kinds: list[MemberKind] = ["inner", *(node.kinds[i] for i in parts.tables)]
    above = _Above(tuple(kinds), parts.condition, (None, *parts.matches), node.output)
    return cascade(above, [plan, *(inputs[i] for i in parts.tables)])


def delays(parts: StreamParts, inputs: Sequence[PhysicalPlan]) -> PlannedDelays:
    """How late rows come; `inputs` are the plans of the streams."""
    core, bounds = parts.core, parts.bounds
    members = member_columns([plan.output_columns for plan in inputs], core.kinds)
    named = {column for bound in bounds for column in (bound.earlier, bound.later)}
    times, late = [], []
    for plan in inputs:
        known = planned_delays(plan)
        time = time_column(known or {c: 0 for c in plan.output_columns if c in named}, bounds, members)
        times.append(time)
        late.append(known.get(time, 0) if time is not None else 0)
    used = [bound for bound in bounds if {bound.earlier, bound.later} <= set(times)]
    place = {time: i for i, time in enumerate(times) if time is not None}
    names = tuple(None if time is None else time.spark_name for time in times)
    found = [TimeBound(place[bound.earlier], place[bound.later], bound.most) for bound in used]
    kept = StreamTimes(core.kinds, names, tuple(found)).retention
    results = {
        time: max(wait, 0) for time, wait in zip(times, kept, strict=True) if time is not None and wait is not None
    }
    return PlannedDelays(max(late, default=0), results)


def retention(parts: StreamParts) -> str:
    """When a row comes out, and what is kept for how long, for EXPLAIN."""
    core = parts.core
    times = stream_times(core, parts.bounds)
    if times.deciding:
        names = ", ".join(relation_name(core.inputs[i]) for i in times.deciding)
        sentences = [f"a row is emitted when the watermark has passed all matches in {names}"]
    else:
        sentences = ["a row is emitted when the last row that it needs has come"]
    held: dict[int | None, list[str]] = {}
    for child, wait in zip(core.inputs, times.retention, strict=True):
        held.setdefault(wait, []).append(relation_name(child))
    for wait, own in held.items():
        end = "ever: no condition bounds their time" if wait is None else f"{wait / 1e6:g}s + the watermark's delay"
        sentences.append(f"rows of {', '.join(own)} are kept for {end}")
    return "; ".join(sentences)
