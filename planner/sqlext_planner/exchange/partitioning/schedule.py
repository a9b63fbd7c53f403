"""The dynamic schedule of Scale-OIJ: hash slots get more partitions while that evens out the work (Algorithm 3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.plans import Options

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

    def __init__(self, partitions: int, options: Options | None = None) -> None:
        import numpy as np

        self._options = options or Options()
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
