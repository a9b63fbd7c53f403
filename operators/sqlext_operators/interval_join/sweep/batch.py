"""The sweeps over whole relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.interval_join.passes import Side, other_side
from sqlext_operators.interval_join.sweep.events import FINISHED, EndpointIndex, int64_column
from sqlext_operators.interval_join.sweep.join import PairBuffers, Pairs, SweepJoin
from sqlext_operators.interval_join.sweep.kernels.events import START
from sqlext_operators.interval_join.sweep.transforms import Sweep, point_sweep, residual_range, sweeps_of

#: Pairs a batch, 8 bytes each. Measured, LazyJoinByS, 200k x 200k rows, 200 active, 40M pairs (the kernel alone):
#: 2**14 2.0 Gpairs/s, 2**17 2.7, 2**22 1.9 (the buffers leave the cache).
BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class SweepSide:
    """One side: starts int64[n], ends int64[n] (None: points), key codes int64[n] (None: all equal).

    `ids` int32[m] are the rows that take part, those with start < end; docs/reference/periods.md, section 6.
    """

    starts: Int64s
    ends: Int64s | None
    keys: Int64s | None
    ids: Int32s

    @property
    def dropped(self) -> int:
        """How many rows take no part, because their interval is empty or reversed."""
        return len(self.starts) - len(self.ids)

    def index(self, values: Int64s | None) -> EndpointIndex:
        """The endpoint index of the rows that take part, with a value each."""
        ends = self.starts if self.ends is None else self.ends
        return EndpointIndex(
            self._without_dropped(self.starts),
            self._without_dropped(ends),
            self.ids,
            None if values is None else self._without_dropped(values),
            None if self.keys is None else self._without_dropped(self.keys),
        )

    def _without_dropped(self, column: Int64s) -> Int64s:
        return column[self.ids] if self.dropped else column

    def residual_values(self, probe: int) -> Int64s | None:
        """The endpoints that the residual of a sweep with these probes compares."""
        return self.ends if probe == START else self.starts


def relation_of(starts: Int64s, ends: Int64s | None, keys: Int64s | None = None) -> SweepSide:
    """A side of a join; raises ValueError for arrays of different lengths and for 2**31 rows or more, TypeError for
    columns that are not whole numbers."""
    starts = int64_column(starts)
    ends = None if ends is None else int64_column(ends)
    keys = None if keys is None else int64_column(keys)
    if any(column is not None and len(column) != len(starts) for column in (ends, keys)):
        raise ValueError("the columns of a side have one length")
    if len(starts) >= 1 << 31:
        raise ValueError("a side has fewer than 2**31 rows")
    if ends is None:
        return SweepSide(starts, None, keys, np.arange(len(starts), dtype=np.int32))
    return SweepSide(starts, ends, keys, np.flatnonzero(starts < ends).astype(np.int32))


class SweepPairs(Iterator[tuple[Int32s, Int32s]]):
    """The batches (left rows int32[k], right rows int32[k]) of a join, and the rows that took no part.

    The arrays are views of two buffers: they hold a batch until the next one is requested.
    """

    def __init__(
        self, left: SweepSide, right: SweepSide, sweeps: tuple[Sweep, ...], lazy: bool, batch_rows: int
    ) -> None:
        if (left.keys is None) != (right.keys is None):
            raise ValueError("both sides have keys or none has")
        self.dropped_left = left.dropped
        self.dropped_right = right.dropped
        self._sides: dict[Side, SweepSide] = {"left": left, "right": right}
        self._buffers = PairBuffers(batch_rows, np.int32)
        self._batches = self._run(sweeps, lazy)

    def __next__(self) -> tuple[Int32s, Int32s]:
        return next(self._batches)

    def _run(self, sweeps: tuple[Sweep, ...], lazy: bool) -> Iterator[Pairs]:
        for sweep in sweeps:
            residual = residual_range(sweep)
            probing = other_side(sweep.active)
            active_index, probe_index = (
                side.index(side.residual_values(sweep.algorithm.probe) if residual else None)
                for side in (self._sides[sweep.active], self._sides[probing])
            )
            join = SweepJoin(sweep, residual, self._buffers, lazy)
            for active, probe in join.push(active_index, probe_index, FINISHED):
                yield (active, probe) if sweep.active == "left" else (probe, active)


def sweep_join(
    relation: str,
    left_starts: Int64s,
    left_ends: Int64s,
    right_starts: Int64s,
    right_ends: Int64s | None,
    delta: float | None = None,
    epsilon: float | None = None,
    lazy: bool = True,
    batch_rows: int = BATCH_ROWS,
    left_keys: Int64s | None = None,
    right_keys: Int64s | None = None,
) -> SweepPairs:
    """All pairs of rows (left, right) whose intervals are in a relation of interval_join/relations.py, each once.

    Endpoints are int64 in one unit, half-open; delta and epsilon are distances in that unit, None or infinite for no
    bound; sums saturate. Key codes, if given, must be equal for a pair: all groups are swept in one pass, one after the
    other. Rows with start >= end match nothing and are counted. `right_ends` None means single values, for
    relations that take a point. `lazy` takes LazyJoinByS instead of JoinByS; the pairs are the same, in another order.

    Raises KeyError for an unknown relation; ValueError for a parameter that it does not take, a negative one, and
    columns that do not fit together; TypeError for columns that are not whole numbers.
    """
    sweeps = sweeps_of(relation, delta, epsilon) if right_ends is not None else (point_sweep(relation),)
    left = relation_of(left_starts, left_ends, left_keys)
    right = relation_of(right_starts, right_ends, right_keys)
    return SweepPairs(left, right, sweeps, lazy, batch_rows)
