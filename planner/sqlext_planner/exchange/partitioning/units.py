"""What a partitioner places: the known keys, and the hash slots of all others, with their rows and their pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.loads import Loads, slot_of

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s, UInt64s


@dataclass(frozen=True, eq=False)
class Units:
    """`keys`, uint64[k] ascending, then `slots` hash slots of all other keys.

    `owned` and `others` are float64[k + slots]: the rows of input 0 and of all other inputs; `pairs` likewise, 0
    everywhere if they cost nothing.
    """

    keys: UInt64s
    slots: int
    owned: Float64s
    others: Float64s
    pairs: Float64s

    @classmethod
    def of(cls, loads: Loads, demand: Demand) -> Units:
        """The units of the inputs. Pairs of known keys are counted in the samples; those of the slots are all pairs of
        their keys, times the share of the sampled rows of any key that are in reach of each other, spread over the
        slots like their rows."""
        import numpy as np

        rows = np.concatenate([loads.key_rows, loads.slot_rows])
        pairs = np.zeros(len(rows))
        if demand.pair_cost:
            pairs[: len(loads.keys)] = _key_pairs(loads, demand)
            pooled = loads.slot_rows.sum(axis=1)
            pairs[len(loads.keys) :] = pooled * (_pooled_pairs(loads, demand) / max(pooled.sum(), 1.0))
        return cls(loads.keys, len(loads.slot_rows), rows[:, 0], rows[:, 1:].sum(axis=1), pairs)

    @property
    def rows(self) -> Float64s:
        """float64[k + slots]."""
        return self.owned + self.others

    def work(self, demand: Demand) -> Float64s:
        """float64[k + slots], the work of each unit if it is in one partition."""
        return demand.row_cost * self.rows + demand.pair_cost * self.pairs

    def piece_work(self, demand: Demand, members: Int64s, copies: str) -> Float64s:
        """float64[k + slots], the work of each member of a team of members[i] partitions.

        `copies` are the rows that every member gets: "all", or "others" than the owned ones, of which each gets its
        part. A member makes its part of the pairs.
        """
        owned = self.owned if copies == "all" else self.owned / members
        return demand.row_cost * (owned + self.others) + demand.pair_cost * self.pairs / members

    def folded(self, slots: int, known: bool = True) -> Units:
        """The same rows in `slots` hash slots, at most as many as now; the known keys too unless they stay `known`."""
        import numpy as np

        count = len(self.keys)
        slot = np.arange(self.slots) // (self.slots // slots)
        if not known:
            slot = np.concatenate([slot_of(self.keys, slots), slot])

        def fold(values: Float64s) -> Float64s:
            kept = values[:count] if known else values[:0]
            return np.concatenate([kept, np.bincount(slot, weights=values[len(kept) :], minlength=slots)])

        keys = self.keys if known else self.keys[:0]
        return Units(keys, slots, fold(self.owned), fold(self.others), fold(self.pairs))


def pairs_of_owned(times: tuple[Int64s, ...], weights: tuple[float, ...], reach: tuple[int, int]) -> Float64s:
    """float64[n]: for each owned row of times[0], the combinations of one row of each other input in its reach."""
    import numpy as np

    back, ahead = reach
    found = np.ones(len(times[0]))
    for other, weight in zip(times[1:], weights[1:], strict=True):
        first = np.searchsorted(other, moved_times(times[0], -back), side="left")
        last = np.searchsorted(other, moved_times(times[0], ahead), side="right")
        found *= (last - first) * weight
    return found


def moved_times(times: Int64s, by: int) -> Int64s:
    """int64[n], times + by; what int64 cannot hold is its nearest end."""
    import numpy as np

    ends = np.iinfo(np.int64)
    return np.minimum(times, ends.max - by) + by if by > 0 else np.maximum(times, ends.min - by) + by


def _key_pairs(loads: Loads, demand: Demand) -> Float64s:
    import numpy as np

    if demand.reach is None or not loads.times:
        return np.asarray(np.prod(loads.key_rows, axis=1))
    found = [
        pairs_of_owned(loads.times_of(key), loads.weights, demand.reach).sum() * loads.weights[0]
        for key in range(len(loads.keys))
    ]
    return np.array(found, np.float64)


def _pooled_pairs(loads: Loads, demand: Demand) -> float:
    import numpy as np

    if demand.reach is None or not loads.times:
        return loads.slot_pairs
    every = float(np.prod([float(len(times)) for times in loads.times]))
    near = pairs_of_owned(loads.times, (1.0,) * len(loads.times), demand.reach).sum()
    return loads.slot_pairs * float(near) / max(every, 1.0)
