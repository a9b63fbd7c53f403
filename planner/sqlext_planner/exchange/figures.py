"""What the tasks of a statement report under EXPLAIN ANALYZE, put together by the operators of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlext_operators.exchange.profile import StepFigures

    from sqlext_planner.exchange.measures import StatementMeasures
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.plans import SparkOperator

#: `scatter`: the sending half of an exchange, for one input; `run`: the operator behind it; `alone`: the operator,
#: without an exchange.
StepKind = Literal["scatter", "run", "alone"]
#: (step, Spark's stage, the partition in it): the attempts of a task have one key. A step that Spark runs in two stages
#: (a result that is read twice) has done its work twice, and counts twice.
TaskKey = tuple[int, int, int]

#: The parts in the order of the work. Taking batches from Spark is decoding behind an exchange, else reading.
PARTS = ("read", "scatter", "decode", "sort", "evaluate", "output", "spill")


@dataclass(frozen=True)
class TaskStep:
    """What tasks do for a node of the plan, None for the work of no node; the inputs of an exchange are scattered in
    their order."""

    number: int
    node: PhysicalPlan | None
    kind: StepKind


@dataclass
class Measuring:
    """Who takes what a statement's tasks report of their time; only EXPLAIN ANALYZE has one."""

    measures: StatementMeasures | None = None


@dataclass
class NodeFigures:
    """What was measured of one node; seconds and bytes.

    `rows` are those of the node's result, None where nothing tells: what our tasks, Spark's operators or the nodes
    around it have counted (`node_rows.py`).

    Of our tasks, added up: `rows_in` and `rows_out` have a number for each input that they read and each run of the
    operator; `inputs` are the numbers of these inputs among the node's children. `read` are the rows in the files of
    each input that tasks read themselves, before any filter. `held_rows` are the inputs, by their numbers, of which
    every task has all rows. `parts` are the seconds by part of PARTS, `calls` those of "evaluate" by (result,
    evaluator), `elsewhere` the seconds in which tasks waited for Spark. `scattering` and `running` are the busy seconds
    of each task that scatters, or runs the operator, `received` the rows that came to each of the latter.

    `spark` are Spark's own operators that did the node's work; `rows_in` of such a node are the rows of its children,
    empty where one is not known.
    """

    node: PhysicalPlan | None
    rows: int | None = None
    rows_in: tuple[int, ...] = ()
    rows_out: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    read: dict[int, int] = field(default_factory=dict)
    held_rows: dict[int, int] = field(default_factory=dict)
    moved_rows: int = 0
    moved_bytes: int = 0
    spilled_bytes: int = 0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    calls: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    elsewhere: float = 0.0
    scattering: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    spark: tuple[SparkOperator, ...] = ()

    @property
    def by_tasks(self) -> bool:
        """Whether tasks of ours worked for the node."""
        return bool(self.scattering or self.running)

    @property
    def held(self) -> int:
        """The rows that every task has."""
        return sum(self.held_rows.values())

    @property
    def all_rows_in(self) -> tuple[int, ...]:
        """The rows of each input in the order of the children, those that every task holds among them."""
        if not self.inputs:
            return self.rows_in
        if set(self.inputs) & set(self.held_rows):
            return (*self.rows_in, *self.held_rows.values())
        counts = dict(zip(self.inputs, self.rows_in, strict=True)) | self.held_rows
        return tuple(count for _, count in sorted(counts.items()))

    @property
    def all_moved_rows(self) -> int:
        """The rows that went through exchanges, ours and Spark's."""
        return self.moved_rows + sum(item.moved_rows for item in self.spark)

    @property
    def all_moved_bytes(self) -> int:
        """Their bytes; Spark does not tell those of a broadcast."""
        return self.moved_bytes + sum(item.moved_bytes for item in self.spark)

    @property
    def all_spilled_bytes(self) -> int | None:
        """The bytes that went to disk, None where nobody counts them."""
        if not self.running and not self.spark:
            return None
        return self.spilled_bytes + sum(item.spilled_bytes for item in self.spark)

    @property
    def seconds(self) -> float | None:
        """The busy seconds of all tasks; for Spark's work those that its operators measured. None: neither."""
        own = [*self.scattering, *self.running]
        own += [item.seconds for item in self.spark if item.seconds is not None]
        return sum(own) if own else None

    @property
    def skew(self) -> float | None:
        """The busy seconds of the busiest task compared with the average of its kind; None for less than two tasks."""
        return max(
            (found for tasks in (self.scattering, self.running) if (found := skew(tasks)) is not None), default=None
        )

    @property
    def row_skew(self) -> float | None:
        """The same of the rows that came to the tasks that run the operator."""
        return skew(self.received)

    def add(self, kind: StepKind, figures: StepFigures) -> None:
        """Add what a task reports of a step."""
        busy = 0.0
        for name, seconds in figures.seconds.items():
            if name[0] == "elsewhere":
                self.elsewhere += seconds
                continue
            busy += seconds
            if name[0] == "receive":
                self.parts["decode" if kind == "run" else "read"] += seconds
            else:
                self.parts[name[0]] += seconds
            if len(name) > 1:
                self.calls[(name[1], name[2])] += seconds
        (self.scattering if kind == "scatter" else self.running).append(busy)
        for count, number in figures.counts.items():
            if count.startswith("held "):
                place = int(count.split()[1])
                self.held_rows[place] = max(self.held_rows.get(place, 0), number)
        if kind == "run":
            self.received.append(figures.counts.get("received", 0))
        self.moved_rows += figures.counts.get("moved", 0)
        self.moved_bytes += figures.counts.get("moved bytes", 0)
        self.spilled_bytes += figures.counts.get("spilled bytes", 0)


def node_figures(steps: Sequence[TaskStep], reports: Mapping[TaskKey, StepFigures]) -> list[NodeFigures]:
    """The figures of each node that has steps, in the order of its first one."""
    by_step: dict[int, list[StepFigures]] = defaultdict(list)
    for (number, _, _), figures in sorted(reports.items()):
        by_step[number].append(figures)
    by_node: dict[int, NodeFigures] = {}
    for step in steps:
        node = by_node.setdefault(id(step.node), NodeFigures(step.node))
        of_tasks = by_step[step.number]
        for figures in of_tasks:
            node.add(step.kind, figures)
        first = len(node.inputs)
        counts = _rows_in(of_tasks)
        if step.kind == "scatter" and not counts:
            counts = {0: 0}  # no task: an input without rows
        node.rows_in += tuple(counts.values())
        node.inputs += tuple(first + place if step.kind == "scatter" else place for place in counts)
        read = [figures.counts["read"] for figures in of_tasks if "read" in figures.counts]
        if step.kind == "scatter" and read:
            node.read[first] = sum(read)
        if step.kind != "scatter":
            node.rows_out += (sum(figures.counts.get("out", 0) for figures in of_tasks),)
    return list(by_node.values())


def _rows_in(of_tasks: Iterable[StepFigures]) -> dict[int, int]:
    """The rows of each input that a step reads itself, by the input's number (0 where a step has one)."""
    counts: dict[int, int] = defaultdict(int)
    for figures in of_tasks:
        for name, number in figures.counts.items():
            kind, _, place = name.partition(" ")
            if kind == "in":
                counts[int(place or 0)] += number
    return dict(sorted(counts.items()))


def skew(tasks: Sequence[float]) -> float | None:
    """The largest compared with the average; None for less than two tasks, or tasks that did nothing."""
    total = sum(tasks)
    return max(tasks) * len(tasks) / total if len(tasks) > 1 and total else None
