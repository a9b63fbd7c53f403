"""The partitioners by name: by key, by time range, fragment-replicate, dynamic, hybrid, broadcast.

The plan of time ranges: keys with too much work are cut until no partition has too much, halo rows included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.loads import pairs_of_owned
from sqlext_planner.exchange.partitioning.plans import (
    MOST_TRIES,
    SLACK,
    Exchange,
    Partitioner,
    PartitionPlan,
    Refused,
    balanced,
    minimal_splits,
    placement_of,
    split_plan,
    splits_of,
    spread,
    team_plan,
    teams_of,
    work_of,
)

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s

    from sqlext_planner.exchange.partitioning.choice import Demand


@dataclass(frozen=True, eq=False)
class Ranges:
    """Time ranges of a key: `cuts` as in `placement.KeyPlace`, float64[len(cuts) + 1] rows that each range gets, copies
    too, and the same of work."""

    cuts: tuple[int, ...]
    rows: Float64s
    work: Float64s


class KeyTimes:
    """The sampled times of one key, ready to be cut.

    `times` are ascending int64 of each input, input 0 owns, `weights` the rows for which a sampled row stands.
    `demand` has a reach.
    """

    def __init__(self, times: tuple[Int64s, ...], weights: tuple[float, ...], demand: Demand) -> None:
        import numpy as np

        assert demand.reach is not None
        self._times, self._weights, self._demand = times, weights, demand
        self._back, self._ahead = demand.reach
        pairs = np.zeros(len(times[0]))
        if demand.pair_cost:
            pairs = pairs_of_owned(times, weights, demand.reach) * weights[0]
        self._pairs = np.concatenate([[0.0], np.cumsum(pairs)])
        work = [np.full(len(own), demand.row_cost * weight) for own, weight in zip(times, weights, strict=True)]
        work[0] += demand.pair_cost * pairs
        every = np.concatenate(times)
        order = np.argsort(every, kind="stable")
        every, done = every[order], np.concatenate([[0.0], np.cumsum(np.concatenate(work)[order])])
        first = np.flatnonzero(np.diff(every)) + 1
        self._total = float(done[-1])
        #: Where a cut can be: every time but the first, with the work of the rows before it.
        self._cuts, self._before = every[first], done[first]
        #: The most ranges that these times can be cut into.
        self.most_pieces = len(self._cuts) + 1

    def cut(self, pieces: int) -> Ranges:
        """At most `pieces` ranges of about equal work, without their halo; fewer where one time holds too much."""
        import numpy as np

        if pieces == 1 or not len(self._cuts):
            return self._ranges(())
        targets = self._total * np.arange(1, pieces) / pieces
        last = len(self._cuts) - 1
        after = np.clip(np.searchsorted(self._before, targets), min(1, last), last)
        below = targets - self._before[after - 1] < self._before[after] - targets
        return self._ranges(tuple(np.unique(self._cuts[after - below]).tolist()))

    def _ranges(self, cuts: tuple[int, ...]) -> Ranges:
        import numpy as np

        demand, owned = self._demand, self._times[0]
        bounds = np.concatenate([[0], np.searchsorted(owned, np.array(cuts, np.int64)), [len(owned)]])
        rows = np.diff(bounds).astype(np.float64)
        if demand.owned_copies:
            first, last = self._needed(owned, cuts)
            shared = np.minimum(last, bounds[1:]) - np.maximum(first, bounds[:-1])
            rows += last - first - np.maximum(shared, 0)
        rows *= self._weights[0]
        for times, weight in zip(self._times[1:], self._weights[1:], strict=True):
            first, last = self._needed(times, cuts)
            rows += (last - first) * weight
        pairs = np.diff(self._pairs[bounds])
        return Ranges(cuts, rows, demand.row_cost * rows + demand.pair_cost * pairs)

    def _needed(self, times: Int64s, cuts: Sequence[int]) -> tuple[Int64s, Int64s]:
        """The first row of each range and its halo, and the one after the last: range j, from cuts[j - 1] up to and
        without cuts[j], can need the times t with cuts[j - 1] - back <= t < cuts[j] + ahead."""
        import numpy as np

        first = _rows_before(times, [cut - self._back for cut in cuts])
        last = _rows_before(times, [cut + self._ahead for cut in cuts])
        return np.concatenate([[0], first]), np.concatenate([last, [len(times)]])


def _rows_before(times: Int64s, bounds: list[int]) -> Int64s:
    """int64[m]: how many of the ascending times are before each bound, which may be outside int64."""
    import numpy as np

    ends = np.iinfo(np.int64)
    inside = np.array([min(max(bound, ends.min), ends.max) for bound in bounds], np.int64)
    found = np.searchsorted(times, inside, side="left").astype(np.int64)
    found[[bound > ends.max for bound in bounds]] = len(times)
    return found


#: More cuts for evenness are not tried: each takes some 5 ms.
_MOST_REFINED = 16
#: What they save is at least this part of the largest and the average work.
_LEAST_FALL = 0.995


class RangePlan:
    """The ranges of the keys of an exchange, which has a reach and times."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._asked = _first_pieces(exchange)
        self._times: dict[int, KeyTimes] = {}
        self._ranges: dict[int, Ranges] = {}
        for key, pieces in enumerate(self._asked):
            if pieces > 1:
                self._cut(key)

    def made(self) -> PartitionPlan:
        """The plan."""
        self._balance()
        self._refine()
        return ranges_plan(self._exchange, self._ranges, tuple(self._notes()))

    def _balance(self) -> None:
        """Cut the keys of the largest pieces finer until the pieces are balanced, or until that cannot be reached."""
        exchange = self._exchange
        for _ in range(MOST_TRIES * exchange.partitions):
            owners, works = _pieces(exchange, self._ranges)
            limit = exchange.options.theta * float(works.sum()) / exchange.partitions * SLACK
            if balanced(owners, works, exchange.partitions, limit):
                return
            key = self._finer(owners, works, limit)
            if key is None:
                return
            self._asked[key] += 1
            self._cut(key)

    def _refine(self) -> None:
        """Cut on while the largest partition's work falls by more than the average grows with the copies."""
        exchange = self._exchange
        best, best_cuts = math.inf, (dict(self._ranges), list(self._asked))
        for tried in range(_MOST_REFINED + 1):
            owners, works = _pieces(exchange, self._ranges)
            loads = work_of(spread(owners, works, exchange.partitions), works, exchange.partitions)
            largest, average = float(loads.max()), float(loads.mean())
            if largest + average < _LEAST_FALL * best:
                best, best_cuts = largest + average, (dict(self._ranges), list(self._asked))
            key = self._finer(owners, works, math.inf) if tried < _MOST_REFINED else None
            if largest <= exchange.options.even * average * SLACK or key is None:
                break
            self._asked[key] += 1
            self._cut(key)
        self._ranges, self._asked = best_cuts

    def _finer(self, owners: Int64s, works: Float64s, limit: float) -> int | None:
        """The key of the largest piece that can be cut finer; None if a larger piece above the limit cannot."""
        import numpy as np

        for piece in np.argsort(-works, kind="stable").tolist():
            key = int(owners[piece])
            if key < len(self._asked):
                most = min(self._exchange.partitions, self._key_times(key).most_pieces)
                if self._asked[key] < most:
                    return key
            if works[piece] > limit or not works[piece]:
                return None
        return None

    def _cut(self, key: int) -> None:
        self._ranges[key] = self._key_times(key).cut(self._asked[key])

    def _key_times(self, key: int) -> KeyTimes:
        if key not in self._times:
            loads = self._exchange.loads
            self._times[key] = KeyTimes(loads.times_of(key), loads.weights, self._exchange.demand)
        return self._times[key]

    def _notes(self) -> list[str]:
        loads = self._exchange.loads
        return [
            f"{loads.name(int(loads.keys[key]))} has {len(ranges.work)} of {self._asked[key]} time ranges: "
            "a single time holds too much"
            for key, ranges in self._ranges.items()
            if len(ranges.work) < self._asked[key]
        ]


def ranges_plan(exchange: Exchange, ranges: Mapping[int, Ranges], notes: tuple[str, ...] = ()) -> PartitionPlan:
    """The plan of known keys, by their numbers, that are cut into ranges; pieces are placed by their work, longest
    processing time first, those of a key in different partitions."""
    owners, works = _pieces(exchange, ranges)
    places = spread(owners, works, exchange.partitions)
    teams = teams_of(owners, places, len(exchange.work))
    cuts = {key: found.cuts for key, found in ranges.items() if found.cuts}
    copied = sum(float(ranges[key].rows.sum() - exchange.units.rows[key]) for key in cuts)
    return PartitionPlan(
        placement=placement_of(exchange.units, teams, exchange.partitions, cuts),
        copies=exchange.copies,
        moved=exchange.loads.rows + copied,
        rows=exchange.loads.rows,
        splits=splits_of(exchange, exchange.units, teams),
        work=work_of(places, works, exchange.partitions),
        notes=notes,
    )


def _pieces(exchange: Exchange, ranges: Mapping[int, Ranges]) -> tuple[Int64s, Float64s]:
    """The unit and the work of each piece, unit by unit."""
    import numpy as np

    counts = np.ones(len(exchange.work), np.int64)
    for key, found in ranges.items():
        counts[key] = len(found.work)
    works = np.repeat(exchange.work, counts)
    ends = np.cumsum(counts)
    for key, found in ranges.items():
        works[ends[key] - counts[key] : ends[key]] = found.work
    return np.repeat(np.arange(len(counts)), counts), works


def _first_pieces(exchange: Exchange) -> list[int]:
    """Into how many ranges each known key is to be cut, without regard to halo rows."""
    import numpy as np

    units, keys = exchange.units, len(exchange.units.keys)
    most = np.ones(keys + units.slots, np.int64)
    most[:keys] = exchange.partitions
    found: list[int] = minimal_splits(exchange.work, exchange.partitions, exchange.options.theta, most)[:keys].tolist()
    return found


#: Of Scale-OIJ's schedule: the least improvement that makes a team larger, and the least work that it takes from each
#: member (the minimum score).
_LEAST_IMPROVEMENT, _LEAST_GAIN = 0.01, 0.1


def first_teams(slots: int, partitions: int) -> list[tuple[int, ...]]:
    """The teams with which Scale-OIJ's schedule begins: slot h is in partition h mod `partitions`."""
    return [(slot % partitions,) for slot in range(slots)]


def dynamic_teams(work: Float64s, partitions: int) -> list[tuple[int, ...]]:
    """Scale-OIJ's schedule, one round of it: the partitions of each hash slot, of which `work`, float64[slots], was
    seen.

    An owned row goes to one member of its slot's team, any other row to all. Teams are made larger until that no
    longer pays.

    Errata of the paper and its code, mended here: unbalance is the coefficient of variation of the work (equation 2 as
    printed is a sum of deviations, always 0); a slot of p members with count c gives its new member p * g = c / (p + 1)
    when each of the p members gives up g = c / (p * (p + 1)) (the code adds only g, so that work vanishes).
    """
    counts: list[float] = work.tolist()
    teams = list(map(list, first_teams(len(counts), partitions)))
    loads = [0.0] * partitions
    slots_of: list[list[int]] = [[] for _ in loads]
    for slot, (team, count) in enumerate(zip(teams, counts, strict=True)):
        loads[team[0]] += count
        if count > 0:
            slots_of[team[0]].append(slot)
    while _grow(counts, teams, loads, slots_of):
        pass
    return list(map(tuple, teams))


def _grow(counts: list[float], teams: list[list[int]], loads: list[float], slots_of: list[list[int]]) -> bool:
    """Make the team of one slot of the most loaded partition larger; False if none should be."""
    largest = loads.index(max(loads))
    if loads[largest] <= sum(loads) / len(loads):
        return False
    before = _variation(loads)
    gains = ((counts[slot] / (len(teams[slot]) * (len(teams[slot]) + 1)), slot) for slot in slots_of[largest])
    for gain, slot in sorted(gains, reverse=True):  # what each member gives up to one more
        team = teams[slot]
        if len(team) >= len(loads):
            continue
        if gain < _LEAST_GAIN:
            break
        added = min((place for place in range(len(loads)) if place not in team), key=loads.__getitem__)
        after = loads.copy()
        for place in team:
            after[place] -= gain
        after[added] += len(team) * gain
        if before - _variation(after) > _LEAST_IMPROVEMENT:
            loads[:] = after
            team.append(added)
            slots_of[added].append(slot)
            return True
    return False


def _variation(loads: list[float]) -> float:
    """The coefficient of variation; 0 if there is no work."""
    average = sum(loads) / len(loads)
    if not average:
        return 0.0
    return math.sqrt(sum((load - average) ** 2 for load in loads) / len(loads)) / average


def _by_hash(exchange: Exchange) -> PartitionPlan:
    """Each key in one partition, by its hash alone, as `routing.KeyRouter` does it; needs no statistics."""
    return PartitionPlan(None, "others", exchange.loads.rows, exchange.loads.rows, (), _hashed_work(exchange))


def _by_key(exchange: Exchange) -> PartitionPlan:
    """Each key in one partition (KP-OIJ): the known keys and the hash slots of the others are placed by their work,
    longest processing time first. Moved: all rows once."""
    import numpy as np

    places = spread(np.arange(len(exchange.work)), exchange.work, exchange.partitions)
    return team_plan(exchange, exchange.units, [(place,) for place in places], exchange.copies)


def _splitting(partitioner: Partitioner) -> Partitioner:
    """A partitioner that splits the rows of a key: refused where they must stay together."""

    @wraps(partitioner)
    def plan(exchange: Exchange) -> PartitionPlan | Refused:
        return partitioner(exchange) if exchange.demand.whole is None else Refused(exchange.demand.whole)

    return plan


@_splitting
def _broadcast(exchange: Exchange) -> PartitionPlan:
    """Every row in all partitions (DP-OIJ); an owned row is answered in one of them. Moved: partitions * rows."""
    units = exchange.units.folded(1)
    return team_plan(exchange, units, [tuple(range(exchange.partitions))] * len(units.rows), "all")


@_splitting
def _hybrid(exchange: Exchange) -> PartitionPlan:
    """The rows of all inputs of key k in its S(k) partitions (HP-OIJ); an owned row is answered in one of them.

    Moved: the sum of S(k) * (a_k + b_k), for a_k owned rows and b_k others. S are the fewest pieces whose shares of the
    work are balanced. That takes the work of a key for divisible by S(k), as PPOIJ does, though every member gets all
    rows: the expected work of the plan counts them.
    """
    import numpy as np

    return split_plan(exchange, np.full(len(exchange.work), exchange.partitions), "all")


@_splitting
def _fragment(exchange: Exchange) -> PartitionPlan:
    """The owned rows of key k split over S(k) partitions, those of other inputs copied to each (fragment-replicate).

    Moved: the sum of a_k + S(k) * b_k; with copies of owned rows S(k) * (a_k + b_k). S are the fewest pieces whose
    shares of the work are balanced; a key without owned rows is not split.
    """
    import numpy as np

    return split_plan(exchange, np.where(exchange.units.owned > 0, exchange.partitions, 1), exchange.copies)


@_splitting
def _dynamic(exchange: Exchange) -> PartitionPlan:
    """Virtual teams of hash slots as Scale-OIJ's schedule makes them in one round from the sampled work.

    Moved: the sum over slots of a_h + |team_h| * b_h; with copies of owned rows |team_h| * (a_h + b_h). Raises
    ValueError for more hash slots than the loads have.
    """
    slots = exchange.options.slots
    if slots > exchange.units.slots:
        raise ValueError(f"loads of {exchange.units.slots} hash slots do not tell {slots} apart")
    units = exchange.units.folded(slots, known=False)
    teams = dynamic_teams(units.work(exchange.demand), exchange.partitions)
    return team_plan(exchange, units, teams, exchange.copies)


@_splitting
def _by_time_range(exchange: Exchange) -> PartitionPlan | Refused:
    """The times of keys with much work cut into ranges of equal work; a range gets its own rows and a halo.

    Moved: all rows, and for each cut c the rows of other inputs with c - back <= time < c + ahead; with copies of owned
    rows those too. The ranges of a key are in different partitions, longest processing time first. S grows until the
    plan is balanced, halos included. Keys that are not known alone stay whole.
    """
    if exchange.demand.reach is None:
        return Refused(exchange.demand.unbounded)
    if not exchange.loads.times:
        return Refused("the inputs have no column of times")
    return RangePlan(exchange).made()


#: By name, in the order in which `choice.choose` prefers equally good ones.
PARTITIONERS: dict[str, Partitioner] = {
    "hash": _by_hash,
    "key": _by_key,
    "time_range": _by_time_range,
    "fragment": _fragment,
    "dynamic": _dynamic,
    "hybrid": _hybrid,
    "broadcast": _broadcast,
}


def _hashed_work(exchange: Exchange) -> Float64s:
    """float64[partitions], where a key's partition is the multiply-shift of its hash's upper half. The rows of a slot
    are spread evenly over its range of hashes."""
    import numpy as np

    units, work, partitions = exchange.units, exchange.work, exchange.partitions
    places = (((units.keys >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32)).astype(np.int64)
    known = np.bincount(places, weights=work[: len(places)], minlength=partitions)
    below = np.concatenate([[0.0], np.cumsum(work[len(places) :])])
    ends = np.linspace(0, units.slots, partitions + 1)
    pooled = np.diff(np.interp(ends, np.arange(units.slots + 1), below))
    found: Float64s = known + pooled
    return found
