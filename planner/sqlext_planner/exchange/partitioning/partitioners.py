"""The partitioners by name: by key, by time range, fragment-replicate, dynamic, hybrid, broadcast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.plans import (
    Exchange,
    Partitioner,
    PartitionerOptions,
    PartitionPlan,
    Refused,
    fewer_slots,
    split_plan,
    team_plan,
)
from sqlext_planner.exchange.partitioning.range_plans import RangePlan
from sqlext_planner.exchange.partitioning.splitting import published_teams, spread

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s


class DynamicSchedule:
    """Virtual teams of hash slots, kept from round to round; they only grow, so that no row has to move.

    Slot h starts in partition h mod `partitions`. An owned row goes to one member of its slot's team, any other row to
    all. A round adds what was counted, makes teams larger until that no longer pays, and lets the counts decay.

    Errata of the paper and its code, mended here: unbalance is the coefficient of variation of the work (equation 2 as
    printed is a sum of deviations, always 0); a slot of p members with count c gives its new member p * g = c / (p + 1)
    when each of the p members gives up g = c / (p * (p + 1)) (the code adds only g, so that work vanishes).

    Raises ValueError for less than one partition.
    """

    def __init__(self, partitions: int, options: PartitionerOptions | None = None) -> None:
        import numpy as np

        self._options = options or PartitionerOptions()
        if partitions < 1:
            raise ValueError(f"there is at least one partition, not {partitions}")
        self._most = self._options.max_splitting or partitions
        self._partitions = partitions
        self._counts = np.zeros(self._options.slots)
        self._teams = [[slot % partitions] for slot in range(self._options.slots)]

    @property
    def teams(self) -> tuple[tuple[int, ...], ...]:
        """The partitions of each slot."""
        return tuple(map(tuple, self._teams))

    @property
    def unbalance(self) -> float:
        """The coefficient of variation of the partitions' work by the counts so far; 0 if there are none."""
        return _variation(self._loads())

    def update(self, counts: Float64s) -> None:
        """One round. `counts` are float64[slots], the work of each slot since the round before.

        Raises ValueError for another number of slots.
        """
        if len(counts) != len(self._counts):
            raise ValueError(f"the schedule has {len(self._counts)} hash slots, not {len(counts)}")
        self._counts = self._counts + counts
        loads = self._loads()
        slots_of: list[list[int]] = [[] for _ in loads]
        for slot, team in enumerate(self._teams):
            if self._counts[slot] > 0:
                for place in team:
                    slots_of[place].append(slot)
        while self._grow(loads, slots_of):
            pass
        self._counts *= self._options.decay

    def _loads(self) -> list[float]:
        loads = [0.0] * self._partitions
        for count, team in zip(self._counts.tolist(), self._teams, strict=True):
            for place in team:
                loads[place] += count / len(team)
        return loads

    def _grow(self, loads: list[float], slots_of: list[list[int]]) -> bool:
        """Make the team of one slot of the most loaded partition larger; False if none should be."""
        average = sum(loads) / len(loads)
        largest = loads.index(max(loads))
        if loads[largest] <= average:
            return False
        before = _variation(loads)
        for gain, slot in sorted(((self._gain(slot), slot) for slot in slots_of[largest]), reverse=True):
            team = self._teams[slot]
            if len(team) >= self._most:
                continue
            if gain < self._options.least_gain:
                break
            added = min((place for place in range(len(loads)) if place not in team), key=loads.__getitem__)
            after = loads.copy()
            for place in team:
                after[place] -= gain
            after[added] += len(team) * gain
            if before - _variation(after) > self._options.delta:
                loads[:] = after
                team.append(added)
                slots_of[added].append(slot)
                return True
        return False

    def _gain(self, slot: int) -> float:
        """What each member of the slot's team gives up to one more member."""
        size = len(self._teams[slot])
        return float(self._counts[slot]) / (size * (size + 1))


def _variation(loads: list[float]) -> float:
    average = sum(loads) / len(loads)
    if not average:
        return 0.0
    return math.sqrt(sum((load - average) ** 2 for load in loads) / len(loads)) / average


@dataclass(frozen=True)
class HashPartitioner:
    """Each key in one partition, by its hash alone, as `routing.KeyRouter` does it; needs no statistics."""

    name: str = "hash"

    def plan(self, exchange: Exchange) -> PartitionPlan:
        rows = exchange.loads.rows
        return PartitionPlan(self.name, None, "others", rows, rows, (), _hashed_work(exchange))


@dataclass(frozen=True)
class KeyPartitioner:
    """Each key in one partition (KP-OIJ): the known keys and the hash slots of the others are placed by their work,
    longest processing time first. Moved: all rows once."""

    name: str = "key"

    def plan(self, exchange: Exchange) -> PartitionPlan:
        import numpy as np

        places = spread(np.arange(len(exchange.work)), exchange.work, exchange.partitions)
        return team_plan(self.name, exchange, exchange.units, [(place,) for place in places], exchange.copies)


@dataclass(frozen=True)
class BroadcastPartitioner:
    """Every row in all partitions (DP-OIJ); an owned row is answered in one of them. Moved: partitions * rows."""

    name: str = "broadcast"

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        if exchange.demand.whole is not None:
            return Refused(self.name, exchange.demand.whole)
        units = exchange.units.folded(1)
        teams = [tuple(range(exchange.partitions))] * len(units.rows)
        return team_plan(self.name, exchange, units, teams, "all")


@dataclass(frozen=True)
class HybridPartitioner:
    """The rows of all inputs of key k in its S(k) partitions (HP-OIJ); an owned row is answered in one of them.

    Moved: the sum of S(k) * (a_k + b_k), for a_k owned rows and b_k others. With the splitter `published` S is that of
    PPOIJ's Algorithm 1, on shares of rows, defects and all (`splitting.published_teams`); with `minimal` the fewest
    pieces whose shares of the work are balanced. Both take the work of a key for divisible by S(k), as the paper does,
    though every member gets all rows: the expected work of the plan counts them.
    """

    name: str = "hybrid"

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        import numpy as np

        if exchange.demand.whole is not None:
            return Refused(self.name, exchange.demand.whole)
        if exchange.options.splitter == "minimal":
            return split_plan(self.name, exchange, np.full(len(exchange.work), exchange.most_pieces), "all")
        units = fewer_slots(exchange)
        teams = published_teams(units.rows, exchange.partitions, exchange.options.theta, exchange.most_pieces)
        return team_plan(self.name, exchange, units, teams, "all")


@dataclass(frozen=True)
class FragmentPartitioner:
    """The owned rows of key k split over S(k) partitions, those of other inputs copied to each (fragment-replicate).

    Moved: the sum of a_k + S(k) * b_k; with copies of owned rows S(k) * (a_k + b_k). S are the fewest pieces whose
    shares of the work are balanced; a key without owned rows is not split.
    """

    name: str = "fragment"

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        import numpy as np

        if exchange.demand.whole is not None:
            return Refused(self.name, exchange.demand.whole)
        most = np.where(exchange.units.owned > 0, exchange.most_pieces, 1)
        return split_plan(self.name, exchange, most, exchange.copies)


@dataclass(frozen=True)
class DynamicPartitioner:
    """Virtual teams of hash slots as Scale-OIJ's schedule makes them in one round from the sampled work.

    Moved: the sum over slots of a_h + |team_h| * b_h; with copies of owned rows |team_h| * (a_h + b_h). Raises
    ValueError for more hash slots than the loads have.
    """

    name: str = "dynamic"

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        if exchange.options.slots > exchange.units.slots:
            raise ValueError(f"loads of {exchange.units.slots} hash slots do not tell {exchange.options.slots} apart")
        if exchange.demand.whole is not None:
            return Refused(self.name, exchange.demand.whole)
        units = exchange.units.folded(exchange.options.slots, known=False)
        schedule = DynamicSchedule(exchange.partitions, exchange.options)
        schedule.update(units.work(exchange.demand))
        return team_plan(self.name, exchange, units, schedule.teams, exchange.copies)


@dataclass(frozen=True)
class TimeRangePartitioner:
    """The times of keys with much work cut into ranges of equal work; a range gets its own rows and a halo.

    Moved: all rows, and for each cut c the rows of other inputs with c - back <= time < c + ahead; with copies of owned
    rows those too. The ranges of a key are in different partitions, longest processing time first. With the splitter
    `minimal` S grows until the plan is balanced, halos included; with `published` it is that of Algorithm 1. Keys that
    are not known alone stay whole.
    """

    name: str = "time_range"

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        if exchange.demand.whole is not None:
            return Refused(self.name, exchange.demand.whole)
        if exchange.demand.reach is None:
            return Refused(self.name, exchange.demand.unbounded)
        if not exchange.loads.times:
            return Refused(self.name, "the inputs have no column of times")
        return RangePlan(exchange).made(self.name)


#: By name, in the order in which `choice.choose` prefers equally good ones.
PARTITIONERS: dict[str, Partitioner] = {
    partitioner.name: partitioner
    for partitioner in (
        HashPartitioner(),
        KeyPartitioner(),
        TimeRangePartitioner(),
        FragmentPartitioner(),
        DynamicPartitioner(),
        HybridPartitioner(),
        BroadcastPartitioner(),
    )
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
