"""What the tasks of a statement report under EXPLAIN ANALYZE, put together by the operators of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from sqlext_operators.exchange.profile import StepFigures

    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.workers import BatchFunction

#: `scatter`: the sending half of an exchange, for one input; `run`: the operator behind it; `alone`: the operator,
#: without an exchange.
StepKind = Literal["scatter", "run", "alone"]
#: (step, Spark's stage, the partition in it): the attempts of a task have one key. A step that Spark runs in two stages
#: (a result that is read twice) has done its work twice, and counts twice.
TaskKey = tuple[int, int, int]

#: The parts in the order of the work. Taking batches from Spark is decoding behind an exchange, else reading.
PARTS = ("read", "scatter", "decode", "sort", "evaluate", "output", "spill")


@dataclass(frozen=True)
class Step:
    """What tasks do for a node of the plan, None for the work of no node; the inputs of an exchange are scattered in
    their order."""

    number: int
    node: PhysicalPlan | None
    kind: StepKind


class Measures(Protocol):
    """Takes the reports of a statement's tasks."""

    def step(self, node: PhysicalPlan | None, kind: StepKind) -> Step:
        """A new step."""

    def reporting(self, step: Step, function: BatchFunction) -> BatchFunction:
        """The function, which also reports what it does; its own step is the one that waits for Spark."""


@dataclass
class NodeFigures:
    """What the tasks of one operator did, added up; seconds and bytes.

    rows_in and rows_out have a number for each scattered input and each run; `held` are the rows that every task has,
    `parts` the seconds by part of PARTS, `calls` those of "evaluate" by (result, evaluator), `elsewhere` the seconds in
    which tasks waited for Spark. The lists are the busy seconds of each task that scatters, or runs the operator.
    """

    node: PhysicalPlan | None
    rows_in: tuple[int, ...] = ()
    rows_out: tuple[int, ...] = ()
    held: int = 0
    moved_rows: int = 0
    moved_bytes: int = 0
    spilled_bytes: int = 0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    calls: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    elsewhere: float = 0.0
    scattering: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)

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
        self.held = max(self.held, figures.counts.get("held", 0))
        self.moved_rows += figures.counts.get("moved", 0)
        self.moved_bytes += figures.counts.get("moved bytes", 0)
        self.spilled_bytes += figures.counts.get("spilled bytes", 0)


def node_figures(steps: Sequence[Step], reports: Mapping[TaskKey, StepFigures]) -> list[NodeFigures]:
    """The figures of each node that has steps, in the order of its first one."""
    by_step: dict[int, list[StepFigures]] = defaultdict(list)
    for (number, _, _), figures in sorted(reports.items()):
        by_step[number].append(figures)
    found: dict[int, NodeFigures] = {}
    for step in steps:
        node = found.setdefault(id(step.node), NodeFigures(step.node))
        of_tasks = by_step[step.number]
        for figures in of_tasks:
            node.add(step.kind, figures)
        node.rows_in += tuple(_rows_in(of_tasks))
        if step.kind != "scatter":
            node.rows_out += (sum(figures.counts.get("out", 0) for figures in of_tasks),)
    return list(found.values())


def _rows_in(of_tasks: Iterable[StepFigures]) -> Iterator[int]:
    """The rows of each input that a step reads itself."""
    counts: dict[str, int] = defaultdict(int)
    for figures in of_tasks:
        for name, number in figures.counts.items():
            if name.split()[0] == "in":
                counts[name] += number
    yield from (counts[name] for name in sorted(counts))
