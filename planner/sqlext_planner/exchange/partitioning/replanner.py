"""New places for the keys of a running stream, from what its buckets report of each micro-batch.

Rows of a key that has become hot are spread over several buckets, and brought together when it cools down. Nothing that
is kept moves: a new placement owns rows from a time on (`stream_placement`). One change is made in three steps, each in
another micro-batch:

1. announced: the new places get copies, and own nothing;
2. begun: they own the rows from `since` on, which cannot be in a result with any row that came before the announcement;
3. done: no row to come can be in a result with a row that the older places own.

Both times are those that the operators say of the rows that they keep (`Expiry`). For rows that are gone, the watermark
has passed them. An owned row below `since` is late once all buckets have a watermark of `since` or more. Then the rows
that the older places own are all there, and are done with at the greatest of their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.stream_placement import ALWAYS, BucketReport, Epoch, StreamPlacement

from sqlext_planner.exchange.partitioning.choice import AUTO
from sqlext_planner.exchange.partitioning.loads import Loads, slot_of
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS, first_teams
from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionerOptions, Refused, present_plan, steady_plan

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s

    from sqlext_planner.exchange.partitioning.choice import Demand


DYNAMIC = "dynamic"
#: What is left of a micro-batch's counts after the next one: three micro-batches are half of all.
DECAY = 0.8
#: So many micro-batches in turn have to find other places better, or that fewer places would do.
PATIENCE, CALM = 2, 10
#: The steps of a change.
STEPS = 3
#: Keys with a smaller share of the rows are counted with their hash slot.
_LEAST_SHARE = 0.01
#: A bucket has at least so many hash slots.
_SLOTS_A_BUCKET = 8


@dataclass(frozen=True)
class Replanned:
    """How the keys of a stream get their places: by a `partitioner` with a name, over the `pids` of the buckets.

    `demand` is what owned rows need. Without `changes` every row is in all buckets.
    """

    partitioner: str
    demand: Demand
    pids: tuple[int, ...]
    changes: bool = True

    @property
    def adapts(self) -> bool:
        """Whether keys are in the buckets of their hashes, as on streams without places, until a first change."""
        return self.partitioner == AUTO

    @property
    def options(self) -> PartitionerOptions:
        """Options with as many hash slots as the buckets need: a multiple of these is where their hashes bring keys."""
        slots = _SLOTS_A_BUCKET * len(self.pids)
        return PartitionerOptions(slots=slots if self.adapts else 1 << (slots - 1).bit_length())

    def first(self) -> StreamPlacement:
        """The placement that a stream begins with: by hash; if it never changes, each row in all buckets."""
        count, slots = len(self.pids), self.options.slots
        if not self.changes:
            return StreamPlacement.first(Placement(count, (tuple(range(count)),)))
        if self.partitioner == DYNAMIC:
            return StreamPlacement.first(Placement(count, tuple(first_teams(slots, count))))
        return StreamPlacement.first(Placement(count, tuple((slot * count // slots,) for slot in range(slots))))


@dataclass
class Counts:
    """Decayed rows by bucket and by key, float64[inputs] each."""

    buckets: dict[int, Float64s] = field(default_factory=dict)
    keys: dict[int, Float64s] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All rows."""
        return sum(float(rows.sum()) for rows in self.buckets.values())

    def add(self, reports: Sequence[BucketReport], decay: float = DECAY) -> None:
        """The rows of a micro-batch, before which those that are there decay."""
        import numpy as np

        for counts in (self.buckets, self.keys):
            for key, rows in list(counts.items()):
                counts[key] = rows * decay
        for report in reports:
            self.buckets[report.pid] = self.buckets.get(report.pid, 0.0) + np.array(report.rows, np.float64)
            for item in report.keys:
                self.keys[item.key] = self.keys.get(item.key, 0.0) + np.array(item.rows, np.float64)
                self.names[item.key] = item.name
        least = _LEAST_SHARE / 10 * self.total
        self.keys = {key: rows for key, rows in self.keys.items() if rows.sum() > least}
        self.names = {key: name for key, name in self.names.items() if key in self.keys}


class Replanner:
    """The placement of a running stream: `where` it is now."""

    def __init__(self, spec: Replanned, where: StreamPlacement | None = None) -> None:
        self._spec = spec
        self.where = where or spec.first()
        self._counts = Counts()
        self._reports: dict[int, BucketReport] = {}
        self._better = 0
        #: The watermark that lets all go that an older placement owns, once that is known.
        self._owned: int | None = None

    def observe(self, reports: Sequence[BucketReport]) -> StreamPlacement | None:
        """The reports of a micro-batch. Returns the new placement if it changes."""
        if not reports:
            return None
        self._reports.update((report.pid, report) for report in reports)
        self._count(reports)
        if not self._spec.changes or not self._heard(reports):
            return None
        found = self._next()
        if found is not None:
            self.where = found
            self._better = 0
            self._owned = None
        return found

    def _count(self, reports: Sequence[BucketReport]) -> None:
        """The rows of a micro-batch."""
        self._counts.add(reports)

    def _heard(self, reports: Sequence[BucketReport]) -> bool:
        """Whether all buckets have told what they have, and these reports are of the newest placement. All blocks of a
        micro-batch have the same number, and micro-batches come one after the other."""
        seen = any(report.placement == self.where.number for report in reports)
        return seen and len(self._reports) == len(self._spec.pids)

    def _next(self) -> StreamPlacement | None:
        """The next step of a change, or the first one of a new change; all buckets have reported."""
        last, number = self.where.epochs[-1], self.where.number + 1
        if len(self.where.epochs) == 1:
            return self._announced()
        reports = self._reports.values()
        marks = [report.watermark for report in reports if report.watermark is not None]
        if last.since is None:
            needed = [*marks, *(report.copied for report in reports if report.copied is not None)]
            if not needed:
                return None
            return StreamPlacement(number, (*self.where.epochs[:-1], replace(last, since=max(needed))))
        if len(marks) < len(reports) or min(marks) < last.since:
            return None
        if self._owned is None:
            owned = (report.owned for report in reports if report.owned is not None)
            self._owned = max([last.since, *owned])
        if min(marks) < self._owned:
            return None
        return StreamPlacement(number, (replace(last, since=ALWAYS),))

    def _announced(self) -> StreamPlacement | None:
        """With the places that the partitioner has found better for some micro-batches in turn."""
        exchange = self._exchange(self._counts)
        plan = PARTITIONERS[self._spec.partitioner](exchange)
        if isinstance(plan, Refused):
            return None
        placement = self.where.epochs[-1].placement
        if self._spec.partitioner != DYNAMIC:  # its teams only grow and shrink
            plan = steady_plan(plan, exchange, placement)
        assert plan.placement is not None
        shrinks = members(plan.placement) < members(placement)
        uneven = present_plan(exchange, placement, plan.copies).balance > exchange.options.theta
        if plan.placement == placement or not (shrinks or uneven):
            self._better = 0
            return None
        self._better += 1
        if self._better < (CALM if shrinks else PATIENCE):
            return None
        return self._with(plan.placement)

    def _with(self, placement: Placement) -> StreamPlacement:
        """The first step to a placement."""
        epochs = (*self.where.epochs, Epoch(placement, None))
        return replace(self.where, number=self.where.number + 1, epochs=epochs)

    def _exchange(self, counts: Counts) -> Exchange:
        """The rows that were counted, as an exchange over the buckets."""
        return Exchange(self._loads(counts), self._spec.demand, len(self._spec.pids), self._spec.options)

    def _loads(self, counts: Counts) -> Loads:
        """The keys with many rows, and the rest of each bucket's rows spread over the hash slots that are there."""
        import numpy as np

        pids = self._spec.pids
        least = _LEAST_SHARE * counts.total
        known = sorted(key for key, rows in counts.keys.items() if rows.sum() >= least)
        inputs = len(next(iter(counts.buckets.values())))
        key_rows = np.array([counts.keys[key] for key in known], np.float64).reshape(len(known), inputs)
        placement = self.where.epochs[0].placement
        every = np.array([counts.buckets.get(pid, np.zeros(inputs)) for pid in pids])
        own = {place.key: place.team for place in placement.keys}
        hashes = np.array(known, np.uint64)
        homes = slot_of(hashes, len(placement.slots)).tolist()
        for key, home, rows in zip(known, homes, key_rows, strict=True):
            team = own.get(key, placement.slots[home])
            every[list(team)] -= rows / len(team)
        rest = np.maximum(every, 0.0)
        slots = self._spec.options.slots
        share = slots // len(placement.slots)
        weights = np.zeros((slots, len(pids)))
        for slot in range(slots):
            team = placement.slots[slot // share]
            weights[slot, list(team)] = 1 / len(team)
        parts = weights / np.maximum(weights.sum(axis=0), 1e-9)
        return Loads(hashes, key_rows, parts @ rest, 0.0, (1.0,) * inputs, dict(counts.names))


def members(placement: Placement) -> int:
    """How many members the teams have, more than one each."""
    return sum(len(team) - 1 for team in (*placement.slots, *(place.team for place in placement.keys)))
