"""Pairs of windows and the places in their slices, a buffer at a time."""

from __future__ import annotations

from typing import Any

from sqlext_operators.arrays import Int32s, Int64s, UInt8s
from sqlext_operators.kernels.jit import jit_without_allocation as jit


@jit
def fill_pairs(
    windows: Int32s, low: Int64s, high: Int64s, probes: Int32s, state: Int64s, out: Int32s, out_probes: Int32s
) -> int:
    """Write (windows[i], probes[j]) for all j in [low[i], high[i]) until the buffers are full; returns how many.

    state int64[2] = (window, place) to continue from; zeros at first. After the last call, state[0] is the
    number of windows.
    """
    i, j = state[0], state[1]
    count = 0
    while i < len(low) and count < len(out):
        j = max(j, low[i])
        stop = max(min(high[i], j + len(out) - count), j)
        to = count + stop - j
        # slices, because LLVM makes vector instructions of loops over them: 0.2 instead of 1.1 ns a pair
        _repeat(windows[i], out[count:to])
        _copy(probes[j:stop], out_probes[count:to])
        count = to
        if stop < high[i]:
            j = stop
        else:
            i += 1
            j = 0
    state[0], state[1] = i, j
    return count


@jit
def _repeat(value: int, out: Int32s) -> None:
    for k in range(len(out)):
        out[k] = value


@jit
def _copy(values: Int32s, out: Int32s) -> None:
    for k in range(len(out)):
        out[k] = values[k]


@jit
def fill_filtered_pairs(
    windows: Int32s,
    low: Int64s,
    high: Int64s,
    probes: Int32s,
    ours: Any,
    theirs: Any,
    strict: UInt8s,
    state: Int64s,
    out: Int32s,
    out_probes: Int32s,
) -> int:
    """Like `fill_pairs`, but only pairs with ours[c, i] < theirs[c, j], or equal unless strict[c], for every c.

    May return 0 before the end: check `state`.
    """
    i, j = state[0], state[1]
    count = 0
    single = len(strict) == 1
    while i < len(low) and count < len(out):
        j = max(j, low[i])
        stop = min(high[i], j + len(out) - count)
        if single:
            room = slice(count, count + max(stop - j, 0))
            count += _filter(
                ours[0, i], theirs[0, j:stop], strict[0] == 0, windows[i], probes[j:stop], out[room], out_probes[room]
            )
        else:
            for place in range(j, stop):
                if _all_hold(ours, theirs, strict, i, place):
                    out[count] = windows[i]
                    out_probes[count] = probes[place]
                    count += 1
        if stop < high[i]:
            j = stop
        else:
            i += 1
            j = 0
    state[0], state[1] = i, j
    return count


@jit
def _filter(
    mine: int, theirs: Int64s, equal: bool, window: int, probes: Int32s, out: Int32s, out_probes: Int32s
) -> int:
    """Write the pairs of one window and `probes` with mine < theirs[k], or equal if `equal`; returns how many."""
    count = 0
    for k in range(len(probes)):
        # always written, and kept if the pair counts: no unpredictable branch
        out[count] = window
        out_probes[count] = probes[k]
        count += (mine < theirs[k]) | (equal & (mine == theirs[k]))
    return count


@jit
def _all_hold(ours: Any, theirs: Any, strict: UInt8s, i: int, j: int) -> bool:
    for c in range(len(strict)):
        mine, other = ours[c, i], theirs[c, j]
        if mine > other or (strict[c] and mine == other):
            return False
    return True


@jit
def count_filtered(
    low: Int64s,
    high: Int64s,
    ours: Any,
    theirs: Any,
    strict: UInt8s,
    most: int,
    window_counts: Int64s,
    probe_counts: Int64s,
) -> None:
    """Add to window_counts[i] and probe_counts[j] the pairs that `fill_filtered_pairs` writes.

    Either may be empty if it is not wanted. No window counts beyond `most` pairs.
    """
    for i in range(len(low)):
        found = 0
        for place in range(low[i], high[i]):
            if _all_hold(ours, theirs, strict, i, place):
                found += 1
                if len(probe_counts):
                    probe_counts[place] += 1
                if found == most:
                    break
        if len(window_counts):
            window_counts[i] += found
