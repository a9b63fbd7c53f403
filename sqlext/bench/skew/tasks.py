"""Suite `skew-tasks`: how evenly each partitioner spreads the window of suite `skew` over 2 to 64 partitions.

Nothing here runs on so many cores. Each partitioner plans from the sample that a query would take, the product's
routers send every row, and what each partition gets is counted. The seconds of its task are simulated: so many rows,
results and pairs at the costs that were measured in the same run with the product's operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from sqlext_planner.config import PARTITIONERS
from sqlext_planner.window.tasks import key_cuts, key_places

from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.options import WHO, Options, Told, Workplace, check, numbers, option, untold
from sqlext.bench.harness.suite import Answer, Case, Contestant, Suite
from sqlext.bench.skew.contestants import OURS, OURS_SQL, Files
from sqlext.bench.skew.cost import TaskCost
from sqlext.bench.skew.counts import KeyedTimes, PartitionCounts, over_average
from sqlext.bench.skew.plans import keyed_times, measured_tasks, planned_tasks
from sqlext.bench.skew.suite import shapes_option, skew_case, skew_files
from sqlext.bench.skew.task_checks import CHECKS, FORMULA

if TYPE_CHECKING:
    from sqlext_planner.exchange.partitioning.chosen import Partitioning

CONTESTANTS = {
    OURS: "the partitioner that the planner chooses for as many cores as partitions",
    **{name: f"the partitioner {name}" for name in PARTITIONERS},
}
#: The keys with the most rows whose numbers of partitions are reported.
TOP_KEYS = 3


def _partitions(text: str, flag: str) -> list[int]:
    found = numbers(text, flag)
    if min(found) < 2:
        raise typer.BadParameter("numbers of partitions start at 2", param_hint=flag)
    return found


@dataclass(frozen=True)
class SkewTasksOptions(Options):
    """The command line options."""

    rows: int = option(1_000_000, "Rows of each of the two tables.", min=1, scaled=True)
    shapes: Sequence[tuple[int, float, int]] = shapes_option()
    partitions: Sequence[int] = option(
        (2, 4, 8, 16, 32, 64), "Partitions of the exchange, several with commas.", read=_partitions
    )
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)

    LIMITS = None


def skew_tasks_suite(options: SkewTasksOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written and its costs are measured at once (`report` gets each step).

    Raises AnalysisError for an unknown contestant.
    """
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    report("the tables")
    shapes = [skew_case(0, *shape) for shape in options.shapes]
    files = {case.name: skew_files(place.root, options.rows, case) for case in shapes}
    report("costs of the operator")
    tasks = measured_tasks(place.root)
    cost = TaskCost.fitted(tasks)
    counts = TaskCounts(files, cost)
    return Suite(
        name="skew-tasks",
        title=f"Simulated critical path: window over 2 x {options.rows:,} rows with self-similar keys",
        parameters={
            "rows": options.rows,
            "partitions": list(options.partitions),
            "cost": asdict(cost),
            "measured tasks": [asdict(task) for task in tasks],
        },
        cases=tuple(_at(case, partitions) for case in shapes for partitions in options.partitions),
        contestants=tuple(SimulatedTasks(name, counts) for name in options.contestants),
        ours=OURS,
        x_label="partitions",
        close=place.close,
        checks=CHECKS,
        facts={OURS: OURS_SQL},
        simulated=f"the slowest task by its counted rows, results and pairs, at the costs of this run's {len(tasks)} "
        f"measured tasks: {cost}, which miss these by up to {cost.error:.0%}",
        charted="Mrows/s",
    )


def _at(case: Case, partitions: int) -> Case:
    parameters = {**case.parameters, "partitions": partitions}
    return Case(f"{case.name}, N={partitions}", float(partitions), parameters, panel=case.name)


@dataclass(frozen=True, eq=False)
class Simulation:
    """What was counted of a plan for so many input rows, and the simulated seconds of each of its tasks."""

    rows: int
    plan: Partitioning | None
    counts: PartitionCounts
    seconds: np.ndarray[Any, np.dtype[np.float64]]
    formula: int
    top: tuple[int, ...]

    @property
    def critical(self) -> float:
        """Simulated seconds of the slowest task."""
        return float(self.seconds.max())

    @property
    def moved(self) -> int:
        """Rows that were sent, counted."""
        return int(self.counts.received.sum())


class TaskCounts:
    """Counts of each case and partitioner, made once."""

    def __init__(self, files: Files, cost: TaskCost) -> None:
        self._files = files
        self._cost = cost
        self._found: dict[tuple[str, str], Simulation] = {}
        self._read: tuple[str, list[pa.Table], KeyedTimes] | None = None

    def simulated(self, case: Case, name: str) -> Simulation:
        """The counts of a partitioner, or of the one that is chosen (`ours`)."""
        if (case.name, name) not in self._found:
            self._found[case.name, name] = self._simulated(case, name)
        return self._found[case.name, name]

    def alone(self, case: Case) -> float:
        """Simulated seconds of one task for everything."""
        first, last = self._tables(case)[1].windows
        return float(self._cost.seconds(self._tables(case)[1].rows, len(first), (last - first).sum()))

    def _simulated(self, case: Case, name: str) -> Simulation:
        tables, keyed = self._tables(case)
        partitions = int(case.parameters["partitions"])
        node, tasks = planned_tasks(self._folder(case), tables, int(case.parameters["seconds"]), name, partitions)
        counts = PartitionCounts.of(keyed, (tasks.sent(0), tasks.sent(1)), partitions)
        keys = pa.array(np.arange(1, len(keyed.key_rows(0)) + 1))
        teams, cuts = key_places(node, keys), key_cuts(node, keys)
        plan = node.partitioning
        if any(cuts):
            formula = keyed.moved_by_cuts(cuts)
        else:
            formula = keyed.moved(teams, "others" if plan is None else plan.copies)
        seconds = self._cost.seconds(counts.received, counts.owned, counts.pairs)
        return Simulation(keyed.rows, plan, counts, seconds, formula, tuple(teams[:TOP_KEYS].tolist()))

    def _folder(self, case: Case) -> Path:
        return self._files[case.panel or ""][0].parent

    def _tables(self, case: Case) -> tuple[list[pa.Table], KeyedTimes]:
        """The tables of the case; only those of the last one are kept."""
        if self._read is None or self._read[0] != case.panel:
            tables = [pq.read_table(path) for path in self._files[case.panel or ""]]
            self._read = (case.panel or "", tables, keyed_times(tables, int(case.parameters["seconds"])))
        return self._read[1:]


@dataclass
class SimulatedTasks(Contestant):
    """A partitioner. Its seconds are simulated: those of its slowest task."""

    name: str
    tasks: TaskCounts
    _case: Case | None = None

    def prepare(self, case: Case) -> None:
        """Nothing: counts are kept."""
        self._case = case

    def run(self, case: Case) -> float:
        """Simulated seconds."""
        return self.tasks.simulated(case, self.name).critical

    def answer(self, case: Case) -> Answer:
        """The results, and the pairs in their windows: all partitioners find the same."""
        counts = self.tasks.simulated(case, self.name).counts
        return Answer(int(counts.owned.sum()), {"pairs": int(counts.pairs.sum())})

    def details(self) -> Mapping[str, float]:
        """What was counted, what was expected, and what follows."""
        case = self._case
        assert case is not None
        found = self.tasks.simulated(case, self.name)
        plan = found.plan
        return {
            "moved": found.moved,
            **{f"S{place}": size for place, size in enumerate(found.top, 1)},
            "work max/avg": over_average(found.counts.received),
            **({} if plan is None else {"expected": plan.balance}),
            "pairs max/avg": over_average(found.counts.pairs),
            "Mrows/s": found.rows / found.critical / 1e6,
            "x hash": self.tasks.simulated(case, "hash").critical / found.critical,
            "x N=1": self.tasks.alone(case) / found.critical,
        }

    def series(self) -> Mapping[str, Sequence[float]]:
        """What each partition got, and its simulated seconds; the rows to be moved by the closed formula, and by the
        plan, which knows a sample."""
        assert self._case is not None
        found = self.tasks.simulated(self._case, self.name)
        counts = {name: getattr(found.counts, name).tolist() for name in ("received", "owned", "pairs")}
        planned = [] if found.plan is None else [found.plan.moved]
        moved = {FORMULA: [found.formula], "moved by the plan": planned}
        return {**counts, "simulated seconds": found.seconds.tolist(), **moved}
