"""The sweeps over streams of endpoints, whose tuples may stay open for any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.interval_join.passes import Side, other_side
from sqlext_operators.interval_join.sweep.events import FINISHED, EndpointChunk, Mark, int64_column, select
from sqlext_operators.interval_join.sweep.gapless import GaplessMap
from sqlext_operators.interval_join.sweep.join import PairBuffers, Pairs, SweepJoin
from sqlext_operators.interval_join.sweep.kernels.events import EARLY_START, END, START, EventArrays, admit
from sqlext_operators.interval_join.sweep.pending import PendingPairs
from sqlext_operators.interval_join.sweep.transforms import Sweep, residual_range, sweeps_of

_BATCH_ROWS = 1 << 16


class StreamEvents(NamedTuple):
    """The next endpoints of one side: times int64[n], types uint8[n] (END 1, START 2: kernels/events.py), tuple
    ids int64[n]. They are in the order of (time, type), and none comes before the last one that was given."""

    times: Int64s
    types: UInt8s
    ids: Int64s


class SweepStream:
    """A join of two streams of endpoints, in one of the relations of interval_join/relations.py.

    A pair is output when the endpoints that decide it have been seen and nothing can come before them any more: "start
    preceding" needs no end at all, "overlaps", "during", "starts" and their kind the first of the two ends, "equals"
    both. If epsilon is given and delta is not, the sweep is behind the stream by epsilon, because the start of a window
    depends on its end; if both are given, pairs wait for both ends.

    An id stands for one interval of its side and is not used again. An interval that is empty or reversed ends before
    it starts, because ends come first among events of one time: it matches nothing and is counted. The stream keeps the
    active tuples, the open ones, the ids that have ended without a start and the candidates that wait for an end; so
    memory depends on how long intervals last and on delta and epsilon, not on how long the stream has run.

    Raises as `sweep_join` does for the relation and its parameters.
    """

    def __init__(
        self,
        relation: str,
        delta: float | None = None,
        epsilon: float | None = None,
        lazy: bool = True,
        batch_rows: int = _BATCH_ROWS,
    ) -> None:
        buffers = PairBuffers(batch_rows, np.int64)
        self._sweeps = [_Sweeping(sweep, buffers, lazy) for sweep in sweeps_of(relation, delta, epsilon, stream=True)]
        self._sides: dict[Side, _OpenTuples] = {"left": _OpenTuples("left"), "right": _OpenTuples("right")}
        self._watermark: int | None = None
        self._running = False
        self._finished = False

    @property
    def dropped(self) -> tuple[int, int]:
        """How many (left, right) intervals were empty or reversed."""
        return self._sides["left"].dropped, self._sides["right"].dropped

    @property
    def open_tuples(self) -> tuple[int, int]:
        """How many (left, right) intervals have started and not ended."""
        return self._sides["left"].open_tuples, self._sides["right"].open_tuples

    @property
    def active_tuples(self) -> int:
        """How many tuples the active sets hold."""
        return sum(sweep.join.active_tuples for sweep in self._sweeps)

    @property
    def waiting_pairs(self) -> int:
        """How many candidates wait for an end."""
        return sum(sweep.pending.waiting for sweep in self._sweeps if sweep.pending is not None)

    def advance(
        self, left: StreamEvents | None = None, right: StreamEvents | None = None, watermark: int | None = None
    ) -> Iterator[Pairs]:
        """The pairs (left ids int64[k], right ids int64[k]) that follow from the next endpoints of both sides.

        No later event may have a time below `watermark`; without one it is the latest time given so far, as it is for
        one stream of both sides in the order of time. Events of the watermark's own time wait, because others of that
        time may follow. The arrays hold a batch until the next one is requested; all batches must be taken.

        Raises ValueError for events out of order, before the watermark or of another type, for a tuple that starts
        twice, and for a watermark that goes back; RuntimeError if batches of the last call were not taken, after an
        error and after `finish`; TypeError for columns that are not whole numbers.
        """
        self._begin()
        given = [events for events in (left, right) if events is not None and len(events.times)]
        latest = [int(events.times[-1]) for events in given]
        if watermark is None and (latest or self._watermark is not None):
            before = [] if self._watermark is None else [self._watermark]
            watermark = max(latest + before)
        chunks = {side: self._sides[side].admit(events, self._watermark) for side, events in _both(left, right)}
        if watermark is not None:
            if self._watermark is not None and watermark < self._watermark:
                raise ValueError(f"the watermark went back from {self._watermark} to {watermark}")
            self._watermark = watermark
        # before every event of that time; with neither events nor a watermark there is no output
        mark: Mark = (float("-inf"), EARLY_START) if watermark is None else (watermark, EARLY_START)
        return self._pairs(chunks, mark)

    def finish(self) -> Iterator[Pairs]:
        """The pairs that are left when no more events follow. Open tuples never end: no pair compares their end."""
        self._begin()
        self._finished = True
        chunks = {side: self._sides[side].admit(None, None) for side, _ in _both(None, None)}
        return self._pairs(chunks, FINISHED)

    def _begin(self) -> None:
        if self._running:
            raise RuntimeError("pairs of the last call have not been taken")
        if self._finished:
            raise RuntimeError("the streams have ended")
        self._running = True

    def _pairs(self, chunks: dict[Side, EndpointChunk], mark: Mark) -> Iterator[Pairs]:
        for sweep in self._sweeps:
            yield from sweep.push(chunks, mark)
        self._running = False


def _both(left: StreamEvents | None, right: StreamEvents | None) -> tuple[tuple[Side, StreamEvents | None], ...]:
    return ("left", left), ("right", right)


class _Sweeping:
    """One sweep over two streams."""

    def __init__(self, sweep: Sweep, buffers: PairBuffers, lazy: bool) -> None:
        residual = residual_range(sweep)
        waits = residual is not None and sweep.algorithm.probe == START  # it compares the ends
        self._active, self._probe = sweep.active, other_side(sweep.active)
        self.join = SweepJoin(sweep, None if waits else residual, buffers, lazy)
        self.pending = PendingPairs(residual, buffers) if residual is not None and waits else None

    def push(self, chunks: dict[Side, EndpointChunk], mark: Mark) -> Iterator[Pairs]:
        """Pairs (left, right)."""
        active, probe = chunks[self._active], chunks[self._probe]
        found = self.join.push(active, probe, mark)
        if self.pending is not None:
            for pair in found:
                self.pending.add(*pair)
            found = self.pending.end(active.ends, probe.ends, mark)
        for ours, theirs in found:
            yield (ours, theirs) if self._active == "left" else (theirs, ours)


class _OpenTuples:
    """The intervals of one side that have started, or ended before they started."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._open = GaplessMap(np.int64, paired=True)
        self._early = GaplessMap(np.int64)
        self._last: tuple[int, int] | None = None
        self.dropped = 0

    @property
    def open_tuples(self) -> int:
        """How many have not ended."""
        return self._open.size

    def admit(self, given: StreamEvents | None, watermark: int | None) -> EndpointChunk:
        """The events of intervals that are not empty, with their starts as values."""
        if given is None:
            given = StreamEvents(np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64))
        self._check(given, watermark)
        times, ids = int64_column(given.times), int64_column(given.ids)
        events = EventArrays(times, given.types.astype(np.uint8), ids, np.empty(len(times), np.int64), _NO_KEYS)
        self._open.reserve(self._open.size + len(given.times))
        self._early.reserve(self._early.size + len(given.times))
        sizes = np.array([self._open.size, self._early.size], np.int64)
        keep = np.empty(len(given.times), np.uint8)
        wrong = admit(events, self._open.arrays, self._early.arrays, sizes, keep)
        if wrong >= 0:
            raise ValueError(f"tuple {given.ids[wrong]} of the {self._side} side starts twice")
        self._open.size, self._early.size = int(sizes[0]), int(sizes[1])
        kept = keep.view(np.bool_)
        self.dropped += int(np.count_nonzero((given.types == START) & ~kept))
        return EndpointChunk(select(events, kept))

    def _check(self, given: StreamEvents, watermark: int | None) -> None:
        if len({len(column) for column in given}) > 1:
            raise ValueError("the columns of events have one length")
        if not len(given.times):
            return
        if not np.isin(given.types, (START, END)).all():
            raise ValueError(f"an event is a start ({START}) or an end ({END})")
        times, types = given.times, given.types
        ascends = (times[1:] > times[:-1]) | ((times[1:] == times[:-1]) & (types[1:] >= types[:-1]))
        first = (int(times[0]), int(types[0]))
        if not ascends.all() or (self._last is not None and first < self._last):
            raise ValueError(f"the events of the {self._side} side are not in the order of time, ends before starts")
        if watermark is not None and first[0] < watermark:
            raise ValueError(f"an event of the {self._side} side at {first[0]} is before the watermark {watermark}")
        self._last = (int(times[-1]), int(types[-1]))


_NO_KEYS = np.empty(0, np.int64)
