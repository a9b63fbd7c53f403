"""The plan of a partitioner: where rows go, how many are moved, how much work each partition gets.

How many pieces each key has, and which partitions they are in: longest processing time first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from sqlext_operators.exchange.placement import KeyPlace, Placement

from sqlext_planner.exchange.partitioning.loads import Loads, Units, slot_of

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s

    from sqlext_planner.exchange.partitioning.choice import Demand


#: Which rows every member of a team gets: those of all inputs, or those of the inputs that own nothing.
Copies = Literal["all", "others"]


@dataclass(frozen=True)
class PartitionerOptions:
    """Settings of the partitioners; the defaults are those of the papers.

    `theta`: a plan is balanced if no partition has more than theta times the average work. `even`: time ranges, whose
    copies are few, are cut finer than that while it pays, until no partition has more than so many times the average.
    `slots`: the hash slots of Scale-OIJ's schedule, a power of two.
    """

    theta: float = 1.2
    even: float = 1.05
    slots: int = 1024


@dataclass(frozen=True, eq=False)
class Exchange:
    """What is planned: an exchange of `partitions` partitions. Several partitioners share what is derived from it.

    Raises ValueError for less than one partition.
    """

    loads: Loads
    demand: Demand
    partitions: int
    options: PartitionerOptions = PartitionerOptions()

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"there is at least one partition, not {self.partitions}")

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

    reason: str


#: Decides which partitions the rows of each key may be in: a plan, or why there is none.
Partitioner = Callable[[Exchange], PartitionPlan | Refused]
Teams = Sequence[tuple[int, ...]]


def team_plan(exchange: Exchange, units: Units, teams: Teams, copies: Copies) -> PartitionPlan:
    """The plan of `teams`, one for each of the units, which may be fewer than those of the exchange."""
    import numpy as np

    members = np.array([len(team) for team in teams], np.int64)
    work = np.repeat(units.piece_work(exchange.demand, members, copies), members)
    places = [place for team in teams for place in team]
    moved = members * units.rows if copies == "all" else units.owned + members * units.others
    split = int((members[len(units.keys) :] > 1).sum())
    return PartitionPlan(
        placement=placement_of(units, teams, exchange.partitions),
        copies=copies,
        moved=float(moved.sum()),
        rows=exchange.loads.rows,
        splits=splits_of(exchange, units, teams),
        work=work_of(places, work, exchange.partitions),
        notes=(f"{split} of {units.slots} hash slots have several partitions",) if 0 < split < units.slots else (),
    )


def split_plan(exchange: Exchange, most: Int64s, copies: Copies) -> PartitionPlan:
    """The fewest members, at most most[i], by shares of the work; placed by the work that each member really gets."""
    import numpy as np

    units = exchange.units
    splits = minimal_splits(exchange.work, exchange.partitions, exchange.options.theta, most)
    owners = np.repeat(np.arange(len(splits)), splits)
    works = np.repeat(units.piece_work(exchange.demand, splits, copies), splits)
    teams = teams_of(owners, spread(owners, works, exchange.partitions), len(splits))
    return team_plan(exchange, units, teams, copies)


def work_of(places: Sequence[int], works: Float64s, partitions: int) -> Float64s:
    """float64[partitions] from the partition and the work of each piece."""
    import numpy as np

    return np.bincount(places, weights=works, minlength=partitions).astype(np.float64)


def placement_of(
    units: Units, teams: Teams, partitions: int, cuts: Mapping[int, tuple[int, ...]] | None = None
) -> Placement:
    """The teams as data for the workers; `cuts` by number of the key. A key with its slot's team has no place."""
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
    return _planned(exchange, placement, own, copies)


def steady_plan(plan: PartitionPlan, exchange: Exchange, placement: Placement) -> PartitionPlan:
    """A plan that splits the known keys as another one does, with the hash slots where a placement has them. Of a plan
    that splits nothing all known keys move; else as `sized_plan`."""
    assert plan.placement is not None
    wanted = {place.key: len(place.team) for place in plan.placement.keys}
    sizes = [wanted.get(key, 1) for key in exchange.units.keys.tolist()]
    whole = all(size == 1 for size in wanted.values())
    return sized_plan(exchange, placement, sizes, plan.copies, whole=whole)


def sized_plan(
    exchange: Exchange, placement: Placement, sizes: Sequence[int], copies: Copies, *, whole: bool = False
) -> PartitionPlan:
    """A plan with each known key in so many partitions, by number, and the hash slots where a placement has them.

    A key keeps its partitions if it stays in as many, and one that is in a single partition is where its slot is, but
    with `whole`. The others go to the least loaded partitions, largest first.
    """
    import numpy as np

    units, partitions = exchange.units, exchange.partitions
    placed = {place.key: place.team for place in placement.keys}
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = units.keys.tolist()
    work = units.piece_work(exchange.demand, np.array([*sizes, *[1] * units.slots]), copies)
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
    return _planned(exchange, placement, teams, copies)


def _planned(exchange: Exchange, placement: Placement, teams: TeamsByUnit, copies: Copies) -> PartitionPlan:
    units = exchange.units
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = [teams.get(key, placement.slots[home]) for key, home in zip(units.keys.tolist(), homes, strict=True)]
    share = units.slots // len(placement.slots)
    slots = [placement.slots[slot // share] for slot in range(units.slots)]
    return team_plan(exchange, units, [*keys, *slots], copies)


#: More splits for a balanced plan than this times the partitions are not tried. At a theta of 1.2 fewer are needed: 137
#: for 64 partitions was the most among 250 random, Zipfian and even shares. At a theta of 1, with 64 partitions and
#: 1,000 keys, all partitioners together take 1 s.
MOST_TRIES = 3
#: Sums of pieces are not exact.
SLACK = 1 + 1e-12


def spread(owners: Int64s, works: Float64s, partitions: int) -> list[int]:
    """The partition of each piece: pieces in the order of their work, largest first, each to the least loaded partition
    that has no piece of its owner (longest processing time first, Graham 1969).

    `owners` are int64[n], ascending, at most `partitions` times the same; `works` are float64[n]. Owners without work,
    which are hash slots without a sampled row, are dealt out in turn. 5,000 pieces take 3 ms.
    """
    places = _spread(owners, works, partitions, math.inf)
    assert places is not None
    return places


def balanced(owners: Int64s, works: Float64s, partitions: int, limit: float) -> bool:
    """Whether `spread` leaves no partition empty and none with more work than `limit`."""
    import numpy as np

    if np.count_nonzero(works) < partitions or works.max() > limit:
        return False
    return _spread(owners, works, partitions, limit) is not None


def _spread(owners: Int64s, works: Float64s, partitions: int, limit: float) -> list[int] | None:
    """As `spread`; None as soon as a partition has more work than `limit`."""
    import numpy as np

    alone = np.bincount(owners)[owners] == 1
    idle = alone & (works == 0)
    places: list[int] = np.where(idle, np.cumsum(idle) % partitions, -1).tolist()
    order = np.argsort(-works, kind="stable")
    order = order[~idle[order]]
    pieces = zip(order.tolist(), owners[order].tolist(), works[order].tolist(), alone[order].tolist(), strict=True)
    heap = [(0.0, place) for place in range(partitions)]
    taken: dict[int, set[int]] = {}
    for piece, owner, work, is_alone in pieces:
        if is_alone:
            load, place = heap[0]
            heapq.heapreplace(heap, (load + work, place))
        else:
            load, place = _pop_free(heap, taken.setdefault(owner, set()))
            heapq.heappush(heap, (load + work, place))
        if load + work > limit:
            return None
        places[piece] = place
    return places


def _pop_free(heap: list[tuple[float, int]], taken: set[int]) -> tuple[float, int]:
    """Take the least loaded partition that is not in `taken` off the heap, and put it there."""
    passed = []
    while heap[0][1] in taken:
        passed.append(heapq.heappop(heap))
    found = heapq.heappop(heap)
    for entry in passed:
        heapq.heappush(heap, entry)
    taken.add(found[1])
    return found


def teams_of(owners: Int64s, places: list[int], units: int) -> list[tuple[int, ...]]:
    """The partitions of each unit's pieces, in the pieces' order."""
    import numpy as np

    ends = np.cumsum(np.bincount(owners, minlength=units)).tolist()
    starts = [0, *ends]
    return [tuple(places[start:end]) for start, end in zip(starts, ends, strict=False)]


def minimal_splits(shares: Float64s, partitions: int, theta: float, most: Int64s) -> Int64s:
    """int64[n], into how many equal pieces each unit is split so that no partition is empty or above `theta` times the
    average: while there is one, the unit with the largest pieces gets one more, up to most[i].

    `shares` are float64[n] in any unit. As long as a piece alone is above the limit nothing has to be tried, and if its
    unit may not be split further it ends there: splitting others would help nobody.
    """
    import numpy as np

    limit = theta * float(shares.sum()) / partitions * SLACK
    if not limit:
        return np.ones(len(shares), np.int64)
    splits: Int64s = np.clip(np.ceil(shares / limit), 1, most).astype(np.int64)
    splits += (shares / splits > limit) & (splits < most)
    if (shares / splits > limit).any():
        return splits
    heap = [(-shares[unit] / splits[unit], int(unit)) for unit in np.flatnonzero((shares > 0) & (splits < most))]
    heapq.heapify(heap)
    for _ in range(MOST_TRIES * partitions):
        owners = np.repeat(np.arange(len(shares)), splits)
        if not heap or balanced(owners, np.repeat(shares / splits, splits), partitions, limit):
            break
        _, unit = heapq.heappop(heap)
        splits[unit] += 1
        if splits[unit] < most[unit]:
            heapq.heappush(heap, (-shares[unit] / splits[unit], unit))
    return splits
