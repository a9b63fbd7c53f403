"""Which partitioner an exchange gets: the plan whose slowest core is done first, by an estimate."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.loads import Loads
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import Exchange, Options, Partitioner, PartitionPlan, Refused
from sqlext_planner.relational.physical_plan import Rival

#: Seconds that a core needs to move a row, and those for a unit of work (a row in its partition). Suite `skew`,
#: 2 x 5 million rows, a key of 58 %, two cores: statements of 10, 19 and 25 million moved rows took
#: 3.6, 5.7 and 7.0 s, their tasks 0.34, 0.27 and 0.25 us a row, and all the rest 0.38, 0.33 and 0.31 us.
SHIP_SECONDS = 0.33e-6
WORK_SECONDS = 0.3e-6
#: A plan that saves less than this part of the plain hash's time is not worth its statistics' errors.
LEAST_GAIN = 0.1
#: Keys that a line of EXPLAIN names.
_TOP_KEYS = 3


@dataclass(frozen=True, eq=False)
class Candidate:
    """The plan of a partitioner and its estimated seconds; None with the reason if it was refused."""

    name: str
    plan: PartitionPlan | None
    seconds: float = 0.0
    reason: str = ""

    def rival(self, chosen: PartitionPlan) -> Rival:
        """The candidate beside the others, of which `chosen` is taken."""
        if self.plan is None:
            return Rival(self.name, note=self.reason)
        told = f"moves {self.plan.moved:,.0f} rows, the largest partition has {self.plan.balance:.2f} times the average"
        return Rival(self.name, f"{self.seconds:.3g} s", told, self.plan is chosen)

    def line(self) -> str:
        """What EXPLAIN prints of it: moved and input rows, S(k) of the top keys, expected work, seconds."""
        if self.plan is None:
            return f"{self.name}: {self.reason}"
        top = ", ".join(f"{split.name} x{split.pieces}" for split in self.plan.splits[:_TOP_KEYS])
        more = len(self.plan.splits) - _TOP_KEYS
        keys = f"; split: {top}" + (f" and {more} more" if more > 0 else "") if top else ""
        notes = "".join(f"; {note}" for note in self.plan.notes)
        return (
            f"{self.name}: moves {self.plan.moved:.0f} of {self.plan.rows:.0f} rows, "
            f"max/avg work {self.plan.balance:.2f}, {self.seconds:.3g} s{keys}{notes}"
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The plan to use, and all that were considered, the plain hash first."""

    plan: PartitionPlan
    candidates: tuple[Candidate, ...]

    def lines(self) -> list[str]:
        """One line for each candidate; the chosen one is marked."""
        return [("* " if item.plan is self.plan else "  ") + item.line() for item in self.candidates]


def choose(
    loads: Loads,
    demand: Demand,
    partitions: int,
    cores: int,
    options: Options | None = None,
    partitioners: Mapping[str, Partitioner] = PARTITIONERS,
) -> Choice:
    """The cheapest plan of all partitioners, of which the first is the plain hash; it, if none saves a tenth of its
    time.

    Raises ValueError for less than one core or partition, and for options that do not fit the partitions.
    """
    if cores < 1:
        raise ValueError(f"there is at least one core, not {cores}")
    exchange = Exchange(loads, demand, partitions, options or Options())
    found = []
    for name, partitioner in partitioners.items():
        plan = partitioner.plan(exchange)
        if isinstance(plan, Refused):
            found.append(Candidate(name, None, reason=plan.reason))
        else:
            found.append(Candidate(name, plan, critical_seconds(plan, cores)))
    plans = [(item.seconds, item.plan) for item in found if item.plan is not None]
    plain, best = plans[0], min(plans, key=lambda pair: pair[0])
    saves = best[0] < (1 - LEAST_GAIN) * plain[0]
    return Choice((best if saves else plain)[1], tuple(found))


def critical_seconds(plan: PartitionPlan, cores: int) -> float:
    """Estimated seconds of the slowest core: moving rows is shared evenly, partitions start in the order of their work
    wherever a core is free."""
    busy = [0.0] * cores
    for work in sorted(plan.work.tolist(), reverse=True):
        heapq.heapreplace(busy, busy[0] + work)
    return SHIP_SECONDS * plan.moved / cores + WORK_SECONDS * max(busy)
