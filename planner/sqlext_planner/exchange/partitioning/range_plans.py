"""The plan of time ranges: keys with too much work are cut until no partition has too much, halo rows included."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.loads import pairs_of_owned
from sqlext_planner.exchange.partitioning.plans import (
    Exchange,
    PartitionPlan,
    fewer_slots,
    placement_of,
    splits_of,
    work_of,
)
from sqlext_planner.exchange.partitioning.splitting import (
    MOST_TRIES,
    SLACK,
    balanced,
    minimal_splits,
    published_teams,
    spread,
    teams_of,
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

    def made(self, name: str) -> PartitionPlan:
        """The plan."""
        exchange = self._exchange
        if exchange.options.splitter == "minimal":
            self._balance()
            self._refine()
        return ranges_plan(name, exchange, self._ranges, tuple(self._notes()))

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
            if key < len(self._asked) and self._asked[key] < min(
                self._exchange.most_pieces, self._key_times(key).most_pieces
            ):
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


def ranges_plan(
    name: str, exchange: Exchange, ranges: Mapping[int, Ranges], notes: tuple[str, ...] = ()
) -> PartitionPlan:
    """The plan of known keys, by their numbers, that are cut into ranges; pieces are placed by their work, longest
    processing time first, those of a key in different partitions."""
    owners, works = _pieces(exchange, ranges)
    places = spread(owners, works, exchange.partitions)
    teams = teams_of(owners, places, len(exchange.work))
    cuts = {key: found.cuts for key, found in ranges.items() if found.cuts}
    copied = sum(float(ranges[key].rows.sum() - exchange.units.rows[key]) for key in cuts)
    return PartitionPlan(
        partitioner=name,
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

    units, theta, keys = exchange.units, exchange.options.theta, len(exchange.units.keys)
    if exchange.options.splitter == "published":
        teams = published_teams(fewer_slots(exchange).rows, exchange.partitions, theta, exchange.most_pieces)
        return [len(team) for team in teams[:keys]]
    most = np.ones(keys + units.slots, np.int64)
    most[:keys] = exchange.most_pieces
    found: list[int] = minimal_splits(exchange.work, exchange.partitions, theta, most)[:keys].tolist()
    return found
