"""JoinByS and LazyJoinByS for pairs of any window: another algorithm for what slices give (interval_join/matches.py).

The windows of a join are slices of the sorted probe rows. Swept over the places of these rows, a window is active from
its first place to its last; so keys, tiles, strictness and every type are as in the slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.interval_join.sweep.events import FINISHED, EndpointChunk, EndpointIndex
from sqlext_operators.interval_join.sweep.expressions import INDEX
from sqlext_operators.interval_join.sweep.join import PairBuffers, SweepJoin
from sqlext_operators.interval_join.sweep.kernels.events import START, EventArrays
from sqlext_operators.interval_join.sweep.transforms import START_PRECEDING, Sweep


class SweptSlices(NamedTuple):
    """Windows (rows int32[n]) and the slices [low[i], high[i]) of places, int64[n], in the probe rows int32[m]."""

    windows: Int32s
    low: Int64s
    high: Int64s
    probes: Int32s


#: (ours int64[c, n], theirs int64[c, m], strict uint8[c]): ours[c, i] < theirs[c, j], or equal unless strict[c].
Comparisons = tuple[Int64s, Int64s, npt.NDArray[np.uint8]]


def sweep_slices(
    slices: SweptSlices, tested: Comparisons | None, out_windows: Int32s, out_probes: Int32s, lazy: bool
) -> Iterator[int]:
    """Fill the two buffers with rows of pairs for which all comparisons hold; gives how many, more than 0 each time."""
    if tested is None:
        buffers = PairBuffers.over(out_windows, out_probes)
        for windows, _ in _swept(slices, slices.windows, slices.probes, buffers, lazy):
            yield len(windows)
        return
    buffers = PairBuffers(len(out_windows), np.int32)
    names = (np.arange(len(slices.windows), dtype=np.int32), np.arange(len(slices.probes), dtype=np.int32))
    for windows, places in _swept(slices, *names, buffers, lazy):
        held = _hold(tested, windows, places)
        count = int(np.count_nonzero(held))
        out_windows[:count] = slices.windows[windows[held]]
        out_probes[:count] = slices.probes[places[held]]
        if count:
            yield count


def _hold(tested: Comparisons, windows: Int32s, places: Int32s) -> npt.NDArray[np.bool_]:
    """bool[k], whether all comparisons hold for pairs of windows and places."""
    held = np.ones(len(windows), np.bool_)
    for ours, theirs, strict in zip(*tested, strict=True):
        mine, other = ours[windows], theirs[places]
        held &= mine < other if strict else mine <= other
    return held


def _swept(
    slices: SweptSlices, windows: Int32s, probes: Int32s, buffers: PairBuffers, lazy: bool
) -> Iterator[tuple[Int32s, Int32s]]:
    """Pairs of a window and a probe under these names."""
    filled = slices.low < slices.high
    active = EndpointIndex(slices.low[filled], slices.high[filled], windows[filled])
    size = len(probes)
    nothing = np.empty(0, np.int64)
    places = EventArrays(np.arange(size), np.full(size, START, np.uint8), probes, nothing, nothing)
    sweep = SweepJoin(Sweep(START_PRECEDING, "left", INDEX), None, buffers, lazy)
    return sweep.push(active, EndpointChunk(places), FINISHED)
