"""When `auto` gives the keys of a stream other places: by hash first, by fragments while that pays.

Only a key that alone has more work than a bucket should have is spread: no other place would help it. Its owned rows
are split, and rows that these need are copied, as the partitioner `fragment` does. Keys that share a bucket by chance
stay.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionPlan, present_plan, sized_plan
from sqlext_planner.exchange.partitioning.replanner import CALM, PATIENCE, Counts, Replanned, Replanner, members

if TYPE_CHECKING:
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.exchange.stream_placement import BucketReport, StreamPlacement


#: Copies are at most such a part of the rows, by the counts of `PATIENCE` micro-batches: what is counted is not quite
#: what comes, and more than 0.15 are too many.
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
    most = partitions
    while float((np.minimum(sizes, most) * others)[sizes > 1].sum()) > MOST_COPIES * exchange.loads.rows and most > 1:
        most -= 1
    return sized_plan(exchange, placement, np.minimum(sizes, most).tolist(), exchange.copies)


class AdaptiveReplanner(Replanner):
    """The places of keys that begin by hash, and that change when a change would have paid in some micro-batches in
    turn. `clock` gives seconds."""

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
        #: The counts of the last micro-batches, and whether the newest ones have not been looked at.
        self._seen: deque[Counts] = deque(maxlen=PATIENCE)
        self._is_new = False
        self._uneven, self._calm = 0, 0

    def _count(self, reports: Sequence[BucketReport]) -> None:
        """What came under the present placement, once that is alone; before the first change blocks have no number."""
        if len(self.where.epochs) > 1:
            self._forget()
            return
        number = self.where.number or None
        self._open.add([report for report in reports if report.placement == number], decay=1)
        if self._open.total >= LEAST_ROWS * len(self._spec.pids):
            self._seen.append(self._open)
            self._open, self._is_new = Counts(), True

    def _heard(self, reports: Sequence[BucketReport]) -> bool:
        """Before the first change a bucket without rows need not tell anything."""
        return self.where.number == 0 or super()._heard(reports)

    def _announced(self) -> StreamPlacement | None:
        if not self._is_new:
            return None
        self._is_new = False
        pays, shrinks, _ = self._judged(self._seen[-1])
        self._uneven = self._uneven + 1 if pays else 0
        self._calm = self._calm + 1 if shrinks and not pays else 0
        if self._uneven < PATIENCE and self._calm < CALM:
            return None
        every = Counts()
        for counts in self._seen:
            every.take(counts)
        pays, shrinks, plan = self._judged(every)
        now = self._clock()
        busy = len(self._changes) == MOST_CHANGES and now - self._changes[0] < _HOUR
        if busy or not (pays or shrinks):
            return None
        self._changes.append(now)
        assert plan.placement is not None
        return self._with(plan.placement)

    def _judged(self, counts: Counts) -> tuple[bool, bool, PartitionPlan]:
        """Whether other places would have paid, whether fewer would have done, and these."""
        exchange, placement = self._exchange(counts), self.where.epochs[0].placement
        present, plan = present_plan(exchange, placement, exchange.copies), adaptive_plan(exchange, placement)
        assert plan.placement is not None
        fullest = float(present.work.max())
        gain = fullest - float(plan.work.max())
        pays = gain >= LEAST_GAIN * fullest and gain > plan.moved - present.moved
        return pays, members(plan.placement) < members(placement), plan
