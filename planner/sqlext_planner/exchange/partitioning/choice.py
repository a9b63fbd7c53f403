"""Which partitioner an exchange gets: the plan whose slowest core is done first, by an estimate; and what EXPLAIN says
of each (`Candidate.line`, `_line`). What it says on streams is in stream_placing.py."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.loads import Loads, Sampled, SampledInput, sampled
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import (
    Copies,
    Exchange,
    Partitioner,
    PartitionerOptions,
    PartitionPlan,
    Refused,
)
from sqlext_planner.relational.physical_plan import PhysicalPlan, Rival
from sqlext_planner.relational.plan_patterns import base_table

if TYPE_CHECKING:
    from sqlext_operators.exchange.placement import Placement

    from sqlext_planner.relational.joins import PartitionerHint


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
            return self.reason
        top = ", ".join(f"{split.name} x{split.pieces}" for split in self.plan.splits[:_TOP_KEYS])
        more = len(self.plan.splits) - _TOP_KEYS
        keys = f"; split: {top}" + (f" and {more} more" if more > 0 else "") if top else ""
        notes = "".join(f"; {note}" for note in self.plan.notes)
        return (
            f"moves {self.plan.moved:.0f} of {self.plan.rows:.0f} rows, "
            f"max/avg work {self.plan.balance:.2f}, {self.seconds:.3g} s{keys}{notes}"
        )


@dataclass(frozen=True, eq=False)
class PartitioningChoice:
    """The plan to use, and all that were considered, the plain hash first."""

    plan: PartitionPlan
    candidates: tuple[Candidate, ...]

    @property
    def name(self) -> str:
        """That of the partitioner that made the plan."""
        return next(item.name for item in self.candidates if item.plan is self.plan)


def choose(
    loads: Loads, demand: Demand, partitions: int, cores: int, partitioners: Mapping[str, Partitioner] = PARTITIONERS
) -> PartitioningChoice:
    """The cheapest plan of all partitioners, of which the first is the plain hash; it, if none saves a tenth of its
    time.

    Raises ValueError for less than one core or partition.
    """
    if cores < 1:
        raise ValueError(f"there is at least one core, not {cores}")
    exchange = Exchange(loads, demand, partitions, PartitionerOptions())
    candidates = []
    for name, partitioner in partitioners.items():
        plan = partitioner(exchange)
        if isinstance(plan, Refused):
            candidates.append(Candidate(name, None, reason=plan.reason))
        else:
            candidates.append(Candidate(name, plan, critical_seconds(plan, cores)))
    plans = [(item.seconds, item.plan) for item in candidates if item.plan is not None]
    plain, best = plans[0], min(plans, key=lambda pair: pair[0])
    saves = best[0] < (1 - LEAST_GAIN) * plain[0]
    return PartitioningChoice((best if saves else plain)[1], tuple(candidates))


def critical_seconds(plan: PartitionPlan, cores: int) -> float:
    """Estimated seconds of the slowest core: moving rows is shared evenly, partitions start in the order of their work
    wherever a core is free."""
    busy = [0.0] * cores
    for work in sorted(plan.work.tolist(), reverse=True):
        heapq.heapreplace(busy, busy[0] + work)
    return SHIP_SECONDS * plan.moved / cores + WORK_SECONDS * max(busy)


#: The partitioner without statistics; and whatever is best.
HASH, AUTO = "hash", "auto"
#: Fewer rows are not sampled: their exchange takes about a second, whatever the keys.
_LEAST_ROWS = 1_000_000


@dataclass(frozen=True)
class Partitioning:
    """How an exchange spreads its rows: as the partitioner `name` planned it, by a placement over `partitions`
    partitions, where `copies` go to all members of a team, or by the hash of the keys (None). Expected are so many rows
    `moved`, and that the work of the largest partition is `balance` times the average. `lines` are EXPLAIN's, by what
    they are about; `rivals` are the partitioners that were compared."""

    name: str
    partitions: int
    placement: Placement | None = field(repr=False)
    copies: Copies
    moved: float
    balance: float
    lines: dict[str, str] = field(compare=False, repr=False)
    rivals: tuple[Rival, ...] = field(default=(), compare=False, repr=False)

    @property
    def planned(self) -> int | None:
        """The number of partitions that the placement is for; None for the hash, which serves any number."""
        return None if self.placement is None else self.partitions


@dataclass(frozen=True)
class PartitionedExec(PhysicalPlan):
    """An operator behind an exchange that spreads its rows by `partitioning`, None: by the hash of the keys."""

    partitioning: Partitioning | None = field(default=None, compare=False, kw_only=True, repr=False)

    def choices(self) -> dict[str, tuple[Rival, ...]]:
        return super().choices() | ({} if self.partitioning is None else {"partitioner": self.partitioning.rivals})

    def details(self) -> dict[str, Any]:
        return super().details() | ({} if self.partitioning is None else self.partitioning.lines)


def asked_partitioner(config: Config, hint: PartitionerHint | None) -> str:
    """The partitioner that the hint asks for, or else the setting."""
    return config.partitioner if hint is None else hint.name


def choose_partitioning(
    inputs: Sequence[SampledInput],
    demand: Demand,
    catalog: Catalog | None,
    config: Config,
    hint: PartitionerHint | None,
    per_core: int = 0,
) -> Partitioning | None:
    """How an exchange of these inputs spreads its rows; the first input owns. None: by the hash of the keys, without
    statistics. Raises UnsupportedError for a hint that the statement does not allow, whatever the number of rows; a
    setting gives way."""
    wanted = WantedPartitioning.of(inputs, catalog, config, hint, per_core)
    return None if wanted is None else wanted.chosen(sampled(inputs, wanted.rows, wanted.catalog), demand)


@dataclass(frozen=True)
class WantedPartitioning:
    """An exchange that is worth a sample of its inputs, which have so many `rows`, and gets so many partitions; the
    partitioner that the hint or the setting asks for, if one does."""

    rows: tuple[float, ...]
    partitions: int
    asked: str | None
    hint: PartitionerHint | None
    catalog: Catalog

    @classmethod
    def of(
        cls,
        inputs: Sequence[SampledInput],
        catalog: Catalog | None,
        config: Config,
        hint: PartitionerHint | None,
        per_core: int = 0,
    ) -> WantedPartitioning | None:
        """None for one partition, and without a hint or setting for few rows, and where nothing is known about them.

        The inputs' bytes decide how many partitions there are, at least `per_core` a core, and at least two where a
        hint asks for a partitioner.
        """
        from sqlext_planner.exchange.driver import partitions_for
        from sqlext_planner.exchange.wire import plan_row_bytes

        name = asked_partitioner(config, hint)
        asked = None if name == AUTO else name
        known = input_rows(inputs, catalog) if catalog is not None else [None] * len(inputs)
        rows = [0.0 if count is None else count for count in known]
        if catalog is None or (asked is None and (None in known or sum(rows) < _LEAST_ROWS)):
            return None
        cores = catalog.cores()
        size = sum(count * plan_row_bytes(item.plan) for count, item in zip(rows, inputs, strict=True))
        partitions = config.partitions or max(partitions_for(int(size), cores, config), per_core * cores)
        if hint is not None:
            partitions = max(partitions, 2)
        return None if partitions < 2 else cls(tuple(rows), partitions, asked, hint, catalog)

    def chosen(
        self,
        samples: Sampled,
        demand: Demand,
        partitioners: Mapping[str, Partitioner] = PARTITIONERS,
        unknown: str = HASH,
    ) -> Partitioning:
        """The cheapest of the partitioners, or the one that is asked for; `unknown` if the samples have gaps.

        Raises UnsupportedError for a hint that the statement does not allow.
        """
        choice = choose(samples.loads, demand, self.partitions, self.catalog.cores(), partitioners)
        if self.asked is None and samples.gaps:
            chosen = _as_asked(choice, unknown, self.hint)
            lines = {"partitioner": f"{unknown}: {samples.gaps[0]}"}
        else:
            chosen = choice if self.asked is None else _as_asked(choice, self.asked, self.hint)
            lines = {f"partitioner {item.name}": _line(item, chosen, samples.gaps) for item in choice.candidates}
        plan = chosen.plan
        rivals = tuple(item.rival(plan) for item in chosen.candidates)
        sized = (plan.moved, plan.balance)
        return Partitioning(chosen.name, self.partitions, plan.placement, plan.copies, *sized, lines, rivals)


def _as_asked(choice: PartitioningChoice, asked: str, hint: PartitionerHint | None) -> PartitioningChoice:
    item = next(item for item in choice.candidates if item.name == asked)
    if item.plan is not None:
        return PartitioningChoice(item.plan, choice.candidates)
    if hint is None:
        plain = next(item.plan for item in choice.candidates if item.plan is not None)
        return PartitioningChoice(plain, choice.candidates)
    raise UnsupportedError(
        f"the hint {hint} cannot be followed: {item.reason}",
        condition="hint-not-followed",
        span=hint.span,
        help="leave the hint out, or name another partitioner; EXPLAIN shows what each of them would cost",
    ).about_hint()


def _line(item: Candidate, choice: PartitioningChoice, gaps: Sequence[str]) -> str:
    chosen = " (chosen)" if item.plan is choice.plan else ""
    unknown = f"; not known: {'; '.join(gaps)}" if gaps and chosen else ""
    return f"{item.line()}{chosen}{unknown}"


#: What a joined row costs that is handed to Spark, relative to a row that the exchange moves and codes
#: (umjoin/strategies.py).
PAIR_COST = 0.1


@dataclass(frozen=True)
class Demand:
    """What owned rows (those of input 0: FROM of a window, left side of a join) need, and what they cost.

    `reach` is (back, ahead): an owned row of time o can need another input's rows of times in [o - back, o + ahead],
    both ends closed; one of the two may be negative. None: rows of any time, and `unbounded` says why.
    `owned_copies`: owned rows are needed by others of their key too, as candidates that are not output.
    The work of a partition is `row_cost` times the rows that it gets, copies too, plus `pair_cost` times its pairs: the
    combinations of an owned row with one row of each other input in its reach. The default counts rows.
    `whole` says why the rows of a key must stay together, if they must.

    Raises ValueError for a reach that holds nothing or is not int64, and for negative costs.
    """

    reach: tuple[int, int] | None = None
    owned_copies: bool = False
    row_cost: float = 1.0
    pair_cost: float = 0.0
    unbounded: str = "a row can need rows of any time"
    whole: str | None = None

    def __post_init__(self) -> None:
        if self.reach is not None and not -(1 << 63) < min(self.reach) <= max(self.reach) < 1 << 63:
            raise ValueError("the ends of a reach are int64")
        if self.reach is not None and sum(self.reach) < 0:
            raise ValueError(f"a reach of {self.reach[0]} back and {self.reach[1]} ahead holds nothing")
        if min(self.row_cost, self.pair_cost) < 0:
            raise ValueError("costs are not negative")


def input_rows(inputs: Sequence[SampledInput], catalog: Catalog) -> list[float | None]:
    """About how many rows each input has, None where nothing is known."""
    found: list[float | None] = []
    for item in inputs:
        base = base_table(item.plan)
        statistics = None if base is None else catalog.key_statistics(base.scan.table, [])
        found.append(None if base is None or statistics is None else statistics.rows * base.kept)
    return found
