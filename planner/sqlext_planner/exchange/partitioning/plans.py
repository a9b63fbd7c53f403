"""The plan of a partitioner: where rows go, how many are moved, how much work each partition gets."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from sqlext_operators.exchange.placement import KeyPlace, Placement

from sqlext_planner.exchange.partitioning.loads import Loads, Units, slot_of
from sqlext_planner.exchange.partitioning.splitting import minimal_splits, spread, teams_of

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s
    from sqlext_operators.exchange.placement import Placement

    from sqlext_planner.exchange.partitioning.choice import Demand


#: Which rows every member of a team gets: those of all inputs, or those of the inputs that own nothing.
Copies = Literal["all", "others"]
#: How the numbers of pieces are found: `published` is Algorithm 1 of PPOIJ, `minimal` splits no more than needed.
Splitter = Literal["published", "minimal"]


@dataclass(frozen=True)
class PartitionerOptions:
    """Settings of the partitioners; the defaults are those of the papers.

    `theta`: a plan is balanced if no partition has more than theta times the average work. `even`: time ranges, whose
    copies are few, are cut finer than that while it pays, until no partition has more than so many times the average.
    `max_splitting`: the most partitions of a key, None for all there are. `splitter`: for HybridPartitioner and
    TimeRangePartitioner. The others
    are of Scale-OIJ's schedule: hash `slots`, `decay` of counts after a round (lambda), the least improvement `delta`
    that makes a team larger, and the least work `least_gain` that it takes from each member (the minimum score).

    Raises ValueError for values out of range.
    """

    theta: float = 1.2
    even: float = 1.05
    max_splitting: int | None = None
    splitter: Splitter = "minimal"
    slots: int = 1024
    decay: float = 0.9
    delta: float = 0.01
    least_gain: float = 0.1

    def __post_init__(self) -> None:
        if not self.theta >= 1:
            raise ValueError(f"theta is at least 1, not {self.theta:g}")
        if not self.even >= 1:
            raise ValueError(f"even is at least 1, not {self.even:g}")
        if self.max_splitting is not None and self.max_splitting < 1:
            raise ValueError(f"a key has at least one partition, not {self.max_splitting}")
        if self.splitter not in ("published", "minimal"):
            raise ValueError(f"the splitter is 'published' or 'minimal', not '{self.splitter}'")
        if self.slots.bit_count() != 1:
            raise ValueError(f"the number of hash slots is a power of two, not {self.slots}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"the decay of counts is above 0 and at most 1, not {self.decay:g}")
        if not (self.delta >= 0 and self.least_gain >= 0):
            raise ValueError("the least improvement and the least gain are not negative")


@dataclass(frozen=True, eq=False)
class Exchange:
    """What is planned: an exchange of `partitions` partitions. Several partitioners share what is derived from it.

    Raises ValueError for less than one partition, and for more pieces of a key than partitions.
    """

    loads: Loads
    demand: Demand
    partitions: int
    options: PartitionerOptions = PartitionerOptions()

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"there is at least one partition, not {self.partitions}")
        if self.most_pieces > self.partitions:
            raise ValueError(f"a key cannot have {self.most_pieces} of {self.partitions} partitions")

    @property
    def most_pieces(self) -> int:
        """The most partitions of a key."""
        return self.options.max_splitting or self.partitions

    @property
    def copies(self) -> Copies:
        """The rows that every member of a team needs."""
        return "all" if self.demand.owned_copies else "others"

    @cached_property
    def units(self) -> Units:
        """The known keys and the hash slots of all others."""
        return Units.of(self.loads, self.demand)

    @cached_property
    def work(self) -> Float64s:
        """float64[units], the work of each unit if it is in one partition."""
        return self.units.work(self.demand)


@dataclass(frozen=True)
class Split:
    """A known key in several partitions: its text, its hash, how many partitions, and its work in one partition."""

    name: str
    key: int
    pieces: int
    work: float


@dataclass(frozen=True, eq=False)
class PartitionPlan:
    """Where rows go, and what that costs.

    `placement` is None for the plain hash of the keys. `copies` are the inputs whose rows go to every member of a team
    (to the time ranges that can need them, if there are cuts). `moved` are the rows that the exchange moves, copies
    too, out of `rows` input rows: exact if the samples are. `splits` are the known keys in several partitions, most
    work first. `work` is float64[partitions], expected. `notes` are sentences.
    """

    partitioner: str
    placement: Placement | None
    copies: Copies
    moved: float
    rows: float
    splits: tuple[Split, ...]
    work: Float64s
    notes: tuple[str, ...] = ()

    @property
    def balance(self) -> float:
        """The largest partition's work over the average; 1 if there is no work."""
        average = float(self.work.mean())
        return float(self.work.max()) / average if average else 1.0


@dataclass(frozen=True)
class Refused:
    """Why a partitioner makes no plan, in a sentence without its first capital and its full stop."""

    partitioner: str
    reason: str


class Partitioner(Protocol):
    """Decides which partitions the rows of each key may be in."""

    @property
    def name(self) -> str:
        """The name in hints, settings and EXPLAIN."""

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        """A plan, or why there is none."""


Teams = Sequence[tuple[int, ...]]


def team_plan(name: str, exchange: Exchange, units: Units, teams: Teams, copies: Copies) -> PartitionPlan:
    """The plan of `teams`, one for each of the units, which may be fewer than those of the exchange."""
    import numpy as np

    members = np.array([len(team) for team in teams], np.int64)
    work = np.repeat(units.piece_work(exchange.demand, members, copies), members)
    places = [place for team in teams for place in team]
    moved = members * units.rows if copies == "all" else units.owned + members * units.others
    split = int((members[len(units.keys) :] > 1).sum())
    return PartitionPlan(
        partitioner=name,
        placement=placement_of(units, teams, exchange.partitions),
        copies=copies,
        moved=float(moved.sum()),
        rows=exchange.loads.rows,
        splits=splits_of(exchange, units, teams),
        work=work_of(places, work, exchange.partitions),
        notes=(f"{split} of {units.slots} hash slots have several partitions",) if 0 < split < units.slots else (),
    )


def split_plan(name: str, exchange: Exchange, most: Int64s, copies: Copies) -> PartitionPlan:
    """The fewest members, at most most[i], by shares of the work; placed by the work that each member really gets."""
    import numpy as np

    units = exchange.units
    splits = minimal_splits(exchange.work, exchange.partitions, exchange.options.theta, most)
    owners = np.repeat(np.arange(len(splits)), splits)
    works = np.repeat(units.piece_work(exchange.demand, splits, copies), splits)
    teams = teams_of(owners, spread(owners, works, exchange.partitions), len(splits))
    return team_plan(name, exchange, units, teams, copies)


def fewer_slots(exchange: Exchange) -> Units:
    """The units with a few slots for each partition: Algorithm 1 splits each of them, however small."""
    units = exchange.units
    return units.folded(min(units.slots, 1 << (4 * exchange.partitions - 1).bit_length()))


def work_of(places: Sequence[int], works: Float64s, partitions: int) -> Float64s:
    """float64[partitions] from the partition and the work of each piece."""
    import numpy as np

    return np.bincount(places, weights=works, minlength=partitions).astype(np.float64)


def placement_of(
    units: Units, teams: Teams, partitions: int, cuts: Mapping[int, tuple[int, ...]] | None = None
) -> Placement:
    """The teams as data for the workers; `cuts` by number of the key. A key with the team of its slot has no place of
    its own."""
    slots = tuple(teams[len(units.keys) :])
    homes = slot_of(units.keys, units.slots).tolist()
    keys = [
        KeyPlace(key, team, (cuts or {}).get(number))
        for number, (key, home, team) in enumerate(zip(units.keys.tolist(), homes, teams, strict=False))
        if team != slots[home] or (cuts and number in cuts)
    ]
    return Placement(partitions, slots, tuple(keys))


def splits_of(exchange: Exchange, units: Units, teams: Teams) -> tuple[Split, ...]:
    """The known keys in several partitions; where the units have no keys, a key has the team of its slot."""
    loads = exchange.loads
    numbers = range(len(loads.keys)) if len(units.keys) else slot_of(loads.keys, units.slots).tolist()
    found = [
        Split(loads.name(key), key, len(teams[number]), work)
        for key, number, work in zip(loads.keys.tolist(), numbers, exchange.work.tolist(), strict=False)
        if len(teams[number]) > 1
    ]
    return tuple(sorted(found, key=lambda split: -split.work))


TeamsByUnit = Mapping[int, tuple[int, ...]]


def present_plan(exchange: Exchange, placement: Placement, copies: Copies) -> PartitionPlan:
    """What a placement by keys and hash slots costs, as many as the exchange has or fewer."""
    own = {place.key: place.team for place in placement.keys}
    return _planned("now", exchange, placement, own, copies)


def steady_plan(plan: PartitionPlan, exchange: Exchange, placement: Placement) -> PartitionPlan:
    """A plan that splits the known keys as another one does, with the hash slots where a placement has them.

    A key keeps its partitions if it stays in as many, and one that is in a single partition is where its slot is. The
    others go to the least loaded partitions, largest first. Of a plan that splits nothing all known keys move.
    """
    import numpy as np

    units, partitions = exchange.units, exchange.partitions
    assert plan.placement is not None
    wanted = {place.key: len(place.team) for place in plan.placement.keys}
    whole = all(size == 1 for size in wanted.values())
    placed = {place.key: place.team for place in placement.keys}
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = units.keys.tolist()
    sizes = [wanted.get(key, 1) for key in keys]
    work = units.piece_work(exchange.demand, np.array([*sizes, *[1] * units.slots]), plan.copies)
    loads = np.zeros(partitions)
    share = units.slots // len(placement.slots)
    for slot, load in enumerate(work[len(keys) :].tolist()):
        team = placement.slots[slot // share]
        loads[list(team)] += load / len(team)
    teams: dict[int, tuple[int, ...]] = {}
    free = []
    for number, (key, home, size) in enumerate(zip(keys, homes, sizes, strict=True)):
        before = placed.get(key, placement.slots[home])
        if size == 1 and not whole:
            teams[key] = placement.slots[home]
        elif size > 1 and len(before) == size:
            teams[key] = before
        else:
            free.append((-float(work[number]), key, size))
            continue
        loads[list(teams[key])] += work[number]
    for load, key, size in sorted(free):
        chosen = heapq.nsmallest(size, range(partitions), key=lambda place: (loads[place], place))
        teams[key] = tuple(chosen)
        loads[chosen] -= load
    return _planned(plan.partitioner, exchange, placement, teams, plan.copies)


def _planned(name: str, exchange: Exchange, placement: Placement, teams: TeamsByUnit, copies: Copies) -> PartitionPlan:
    units = exchange.units
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = [teams.get(key, placement.slots[home]) for key, home in zip(units.keys.tolist(), homes, strict=True)]
    share = units.slots // len(placement.slots)
    slots = [placement.slots[slot // share] for slot in range(units.slots)]
    return team_plan(name, exchange, units, [*keys, *slots], copies)
