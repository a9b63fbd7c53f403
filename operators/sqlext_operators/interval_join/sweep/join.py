"""One sweep that can be paused and resumed: JoinByS and LazyJoinByS over the events of two sides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sqlext_operators.interval_join.sweep.events import Endpoints, Ids, Mark, append_events, cut_at, no_events
from sqlext_operators.interval_join.sweep.gapless import GaplessMap
from sqlext_operators.interval_join.sweep.iterators import FilteringIterator, IndexIterator
from sqlext_operators.interval_join.sweep.kernels.events import EARLY_START, START, EventArrays, interleave
from sqlext_operators.interval_join.sweep.kernels.join import DONE, MAP_FULL, join_by_s
from sqlext_operators.interval_join.sweep.transforms import Residual, Sweep

Pairs = tuple[Ids, Ids]

#: Probes that LazyJoinByS collects before it scans the active set.
LAZY_BUFFER = 256
_SIZE, _ENDED = 4, 5


class PairBuffers:
    """Two arrays that every batch of pairs is written into: memory that has been touched is several times as fast."""

    def __init__(self, rows: int, id_type: npt.DTypeLike) -> None:
        if rows < 1:
            raise ValueError("a batch has at least one row")
        self.active = np.empty(rows, id_type)
        self.probe = np.empty(rows, id_type)

    @classmethod
    def over(cls, active: Ids, probe: Ids) -> PairBuffers:
        """Two arrays of one length and type as buffers."""
        buffers = cls.__new__(cls)
        buffers.active, buffers.probe = active, probe
        return buffers

    def __reduce__(self) -> tuple[type[PairBuffers], tuple[int, npt.DTypeLike]]:
        """A saved state does not include them."""
        return PairBuffers, (len(self.active), self.active.dtype)


class SweepJoin:
    """The active set of one sweep, and the events that wait for others.

    With `residual` the events have values and only pairs that meet it are output; without it, all candidates are.
    """

    def __init__(self, sweep: Sweep, residual: Residual | None, buffers: PairBuffers, lazy: bool = True) -> None:
        id_type = buffers.active.dtype
        self._algorithm = sweep.algorithm
        self._active = sweep.events.open()
        self._probing = FilteringIterator(IndexIterator(), sweep.algorithm.probe)
        self._residual = residual
        self._buffers = buffers
        self._lazy = lazy
        self._map = GaplessMap(id_type, paired=residual is not None)
        self._events = no_events(id_type)
        self._probes = no_events(id_type)

    @property
    def active_tuples(self) -> int:
        """How many tuples are active."""
        return self._map.size

    def push(self, active: Endpoints, probe: Endpoints, mark: Mark) -> Iterator[Pairs]:
        """The pairs (active id, probe id) that follow from the next events of both sides, complete up to `mark`.

        The arrays are views of the buffers, valid until the next ones are requested. Take all of them: only then is the
        sweep past the events.
        """
        events, reached = self._active.push(active, mark)
        probes, probed = self._probing.push(probe, mark)
        reached = min(reached, probed)
        events, self._events = cut_at(append_events([self._events, events]), reached)
        probes, self._probes = cut_at(append_events([self._probes, probes]), reached)
        yield from self._join(events, probes)

    def _join(self, events: EventArrays, probes: EventArrays) -> Iterator[Pairs]:
        until = np.empty(len(probes.times), np.int64)
        interleave(events, probes, self._algorithm.events_first, until)
        lows = highs = np.empty(0, np.int64)
        if self._residual is not None:
            lows, highs = self._residual.ranges(events.values)
        inserts = ((events.codes == START) | (events.codes == EARLY_START)).view(np.uint8)
        state = np.zeros(6, np.int64)
        state[_SIZE] = self._map.size
        while True:
            count = join_by_s(
                until,
                probes.ids,
                probes.values,
                inserts,
                events.ids,
                lows,
                highs,
                self._map.arrays,
                LAZY_BUFFER if self._lazy else 1,
                state,
                self._buffers.active,
                self._buffers.probe,
            )
            self._map.size = int(state[_SIZE])
            if count:
                yield self._buffers.active[:count], self._buffers.probe[:count]
            if state[_ENDED] == DONE:
                return
            if state[_ENDED] == MAP_FULL:
                self._map.reserve(2 * self._map.capacity)
