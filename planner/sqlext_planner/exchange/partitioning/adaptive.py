"""When `auto` gives the keys of a stream other places: by hash first, by fragments while that pays.

Only a key that alone has more work than a bucket should have is spread: no other place would help it. Its owned rows
are split, and rows that these need are copied, as the partitioner `fragment` does. Keys that share a bucket by chance
stay.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionPlan, present_plan, sized_plan
from sqlext_planner.exchange.partitioning.replanner import CALM, STEPS, Counts, Replanned, Replanner, members

if TYPE_CHECKING:
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.exchange.stream_placement import BucketReport, StreamPlacement


#: Copies are at most such a part of the rows, by the counts of a micro-batch: what is counted is not quite what comes,
#: and more than 0.15 are too many.
MOST_COPIES = 0.13
#: The fullest bucket loses at least such a part of its work.
LEAST_GAIN = 0.25
#: A key that is spread stays so as long as it has such a part of a bucket's share.
_WARM = 0.5
#: Changes in an hour, those that take places back too.
MOST_CHANGES = 12
_HOUR = 3600.0
#: Fewer rows a bucket than this are noise, and little work: they are counted with those of the next micro-batch.
LEAST_ROWS = 100


def adaptive_plan(exchange: Exchange, placement: Placement) -> PartitionPlan:
    """Keys with more work than `theta` times the average in as many partitions as bring these below; all others, and
    the hash slots, where they are by their hash.

    A member owns at least as many rows as it gets copies: with more members there would be more copies than rows taken
    from the first. Teams are made smaller until the copies are few enough, also while the keys move: the bucket that a
    key was in before has its rows too then.
    """
    import numpy as np

    units, partitions = exchange.units, exchange.partitions
    count = len(units.keys)
    owned, others, work = units.owned[:count], units.others[:count], exchange.work[:count]
    average = float(exchange.work.sum()) / partitions
    limit = max(exchange.options.theta * average, 1e-9)
    teams = {place.key: len(place.team) for place in placement.keys}
    before = np.array([teams.get(key, 1) for key in units.keys.tolist()], np.int64)
    is_hot = work > limit
    # what a bucket has room for, beside its part of all other rows and the copies
    room = limit - (float(exchange.work.sum()) - float(work[is_hot].sum())) / partitions - others
    sizes = np.where(is_hot, np.where(room > 0, np.ceil(owned / np.maximum(room, 1e-9)), partitions), 1)
    sizes = np.where(work > _WARM * average, np.maximum(sizes, before), sizes)
    sizes = np.clip(sizes, 1, np.clip(np.floor(owned / np.maximum(others, 1e-9)), 1, partitions)).astype(np.int64)
    most, elsewhere = partitions, np.where(sizes > 1, others, 0.0)
    while most > 1:
        # a row has at most one copy for each bucket beside its own
        copies = float((np.minimum(np.minimum(sizes, most), partitions - 1) * elsewhere).sum())
        if copies <= MOST_COPIES * exchange.loads.rows:
            break
        most -= 1
    return sized_plan(exchange, placement, np.minimum(sizes, most).tolist(), exchange.copies)


class AdaptiveReplanner(Replanner):
    """The places of keys that begin by hash, and that change when a change would have paid in a micro-batch. The new
    places get copies in the next one, and own nothing; they are given up again unless they would have paid in that one
    too. `clock` gives seconds."""

    def __init__(
        self, spec: Replanned, where: StreamPlacement | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(spec, where)
        self._clock = clock
        self._changes: deque[float] = deque(maxlen=MOST_CHANGES)
        self._forget()

    def _forget(self) -> None:
        """Begin to count anew."""
        self._open = Counts()
        #: The counts of the last micro-batch that has not been looked at.
        self._newest: Counts | None = None
        self._calm = 0

    def _count(self, reports: Sequence[BucketReport]) -> None:
        """What came under the present placement while only one owns rows; before the first change blocks have no
        number."""
        last = self.where.epochs[-1]
        if len(self.where.epochs) > 1 and last.since is not None:
            self._forget()
            return
        number = self.where.number or None
        self._open.add([report for report in reports if report.placement == number], decay=1)
        if self._open.total >= LEAST_ROWS * len(self._spec.pids):
            self._newest, self._open = self._open, Counts()

    def _heard(self, reports: Sequence[BucketReport]) -> bool:
        """Before the first change a bucket without rows need not tell anything."""
        return self.where.number == 0 or super()._heard(reports)

    def _next(self) -> StreamPlacement | None:
        """As for all, but that an announced change is given up if it does not hold."""
        epochs = self.where.epochs
        if len(epochs) > 1 and epochs[-1].since is None:
            counts, self._newest = self._newest, None
            if counts is None:
                return None
            if not self._holds(self._exchange(counts), epochs[0].placement, epochs[-1].placement):
                self._forget()
                # a change has `STEPS` numbers, whether it holds or not (stream_listeners.changes_in)
                return replace(self.where, number=self.where.number + STEPS - 1, epochs=epochs[:-1])
        return super()._next()

    def _announced(self) -> StreamPlacement | None:
        counts, self._newest = self._newest, None
        if counts is None:
            return None
        exchange, placement = self._exchange(counts), self.where.epochs[0].placement
        plan = adaptive_plan(exchange, placement)
        assert plan.placement is not None
        is_better = _pays(present_plan(exchange, placement, exchange.copies), plan)
        shrinks = members(plan.placement) < members(placement)
        self._calm = self._calm + 1 if shrinks and not is_better else 0
        now = self._clock()
        busy = len(self._changes) == MOST_CHANGES and now - self._changes[0] < _HOUR
        if busy or not (is_better or self._calm >= CALM):
            return None
        self._changes.append(now)
        self._forget()
        return self._with(plan.placement)

    def _holds(self, exchange: Exchange, old: Placement, new: Placement) -> bool:
        """Whether the new places are still better, or fewer and no worse."""
        before, after = (present_plan(exchange, placement, exchange.copies) for placement in (old, new))
        return _pays(before, after) or (members(new) < members(old) and not _pays(after, before))


def _pays(before: PartitionPlan, after: PartitionPlan) -> bool:
    """Whether the fullest bucket has so much less work in other places that these are worth the copies."""
    fullest = float(before.work.max())
    gain = fullest - float(after.work.max())
    return gain >= LEAST_GAIN * fullest and gain > after.moved - before.moved
