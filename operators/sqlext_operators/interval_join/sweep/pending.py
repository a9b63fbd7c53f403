"""Candidates of a stream that wait for an end: a filtering consumer that buffers.

docs/reference/sweeps.md, section 2; Piatov et al. 2021, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sqlext_operators.interval_join.sweep.events import Ids, Mark, append_events, cut_at, no_events
from sqlext_operators.interval_join.sweep.gapless import GaplessMap
from sqlext_operators.interval_join.sweep.join import PairBuffers, Pairs
from sqlext_operators.interval_join.sweep.kernels.events import EventArrays
from sqlext_operators.interval_join.sweep.kernels.pending import (
    ACTIVE_EVENT,
    ACTIVE_SIZE,
    FREE,
    FULL,
    PROBE_EVENT,
    PROBE_SIZE,
    WAITING,
    PairArrays,
    add_pairs,
    end_tuples,
)
from sqlext_operators.interval_join.sweep.transforms import Residual

_LEAST_CAPACITY = 64


class PendingPairs:
    """Pairs whose residual compares ends. Each is output when the end arrives that decides it, or not at all."""

    def __init__(self, residual: Residual, buffers: PairBuffers) -> None:
        self._residual = residual
        self._buffers = buffers
        self._id_type = buffers.active.dtype
        self._fates = (residual.fate(active_first=True), residual.fate(active_first=False))
        self._pairs = self._new(0)
        self._maps = (GaplessMap(self._id_type, paired=True), GaplessMap(self._id_type, paired=True))
        self._state = np.zeros(7, np.int64)
        self._state[FREE] = -1
        self._ends = [no_events(self._id_type), no_events(self._id_type)]

    @property
    def waiting(self) -> int:
        """How many pairs wait for an end of one of their tuples."""
        return int(self._state[WAITING])

    def add(self, active: Ids, probe: Ids) -> None:
        """Add candidates of the sweep."""
        while len(self._pairs.ended) < self.waiting + len(active):
            self._grow()
        for side in self._maps:
            side.reserve(side.size + len(active))
        add_pairs(active, probe, self._pairs, self._maps[0].arrays, self._maps[1].arrays, self._state)
        self._take_sizes()

    def end(self, active: EventArrays, probe: EventArrays, mark: Mark) -> Iterator[Pairs]:
        """The matches that the next END events of both sides decide; all candidates of tuples that end before the mark
        have been added. The arrays are views of the buffers."""
        ready = []
        for side, events in enumerate((active, probe)):
            before, self._ends[side] = cut_at(append_events([self._ends[side], events]), mark)
            ready.append(before)
        lows, highs = self._residual.ranges(ready[0].times)
        self._state[[ACTIVE_EVENT, PROBE_EVENT]] = 0
        self._state[FULL] = 1
        while self._state[FULL]:
            count = end_tuples(
                ready[0].ids,
                ready[0].times,
                lows,
                highs,
                ready[1].ids,
                ready[1].times,
                *self._fates,
                self._residual.probes_end_first,
                self._pairs,
                self._maps[0].arrays,
                self._maps[1].arrays,
                self._state,
                self._buffers.active,
                self._buffers.probe,
            )
            self._take_sizes()
            if count:
                yield self._buffers.active[:count], self._buffers.probe[:count]

    def _take_sizes(self) -> None:
        self._maps[0].size = int(self._state[ACTIVE_SIZE])
        self._maps[1].size = int(self._state[PROBE_SIZE])

    def _grow(self) -> None:
        """Double the room; the new places are free."""
        used = len(self._pairs.ended)
        wider = self._new(max(2 * used, _LEAST_CAPACITY))
        for old, new in zip(self._pairs, wider, strict=True):
            new[:used] = old
        wider.next_active[used:-1] = np.arange(used + 1, len(wider.ended), dtype=np.int32)
        wider.next_active[-1] = self._state[FREE]
        self._state[FREE] = used
        self._pairs = wider

    def _new(self, capacity: int) -> PairArrays:
        return PairArrays(
            np.empty(capacity, self._id_type),
            np.empty(capacity, self._id_type),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int8),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int8),
        )
