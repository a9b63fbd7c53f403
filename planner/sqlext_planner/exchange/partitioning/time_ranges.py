"""Cuts of a key's time axis into ranges of equal work, and the rows that each range needs: its own and a halo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.units import pairs_of_owned

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s


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
        own = np.concatenate([[0], np.searchsorted(owned, np.array(cuts, np.int64)), [len(owned)]])
        rows = np.diff(own).astype(np.float64)
        if demand.owned_copies:
            first, last = self._needed(owned, cuts)
            shared = np.minimum(last, own[1:]) - np.maximum(first, own[:-1])
            rows += last - first - np.maximum(shared, 0)
        rows *= self._weights[0]
        for times, weight in zip(self._times[1:], self._weights[1:], strict=True):
            first, last = self._needed(times, cuts)
            rows += (last - first) * weight
        pairs = np.diff(self._pairs[own])
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
