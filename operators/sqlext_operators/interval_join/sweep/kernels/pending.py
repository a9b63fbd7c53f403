"""Candidate pairs of a stream whose ends are not known yet, in lists of the tuples that they wait for."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlext_operators.arrays import Int8s, Int32s, Int64s
from sqlext_operators.interval_join.sweep.kernels.map import MapArrays, find, insert, remove
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Places in a state: events done of the active and the probing side, sizes of the two maps, first free pair, how many
#: pairs wait, whether a call stopped at a full buffer.
ACTIVE_EVENT, PROBE_EVENT, ACTIVE_SIZE, PROBE_SIZE, FREE, WAITING, FULL = range(7)

#: What is known about a pair (sweep/transforms.py, Fate), and that nothing more has to be done with it.
_OPEN, _MATCH, _DECIDED = 0, 1, 3


class PairArrays(NamedTuple):
    """Room for c pairs: ids of the active and the probing tuple, the next pair of either one's list or -1 (of free
    pairs too), how many of the two have ended, the lows and highs of an active tuple that has or the value of a probing
    one (in lows), and whether it is decided."""

    active: Any
    probe: Any
    next_active: Int32s
    next_probe: Int32s
    ended: Int8s
    lows: Int64s
    highs: Int64s
    fate: Int8s


@jit
def add_pairs(active: Any, probe: Any, pairs: PairArrays, actives: MapArrays, probes: MapArrays, state: Int64s) -> None:
    """Let candidates wait for the ends of both tuples; there is room for them all in the arrays and the two maps, which
    hold the first pair of each tuple's list."""
    for i in range(len(active)):
        pair = state[FREE]
        state[FREE] = pairs.next_active[pair]
        state[WAITING] += 1
        pairs.active[pair] = active[i]
        pairs.probe[pair] = probe[i]
        pairs.ended[pair] = 0
        pairs.fate[pair] = _OPEN
        entry = find(active[i], actives)
        if entry < 0:
            entry = state[ACTIVE_SIZE]
            state[ACTIVE_SIZE] = insert(active[i], -1, 0, entry, actives)
        pairs.next_active[pair] = actives.lows[entry]
        actives.lows[entry] = pair
        entry = find(probe[i], probes)
        if entry < 0:
            entry = state[PROBE_SIZE]
            state[PROBE_SIZE] = insert(probe[i], -1, 0, entry, probes)
        pairs.next_probe[pair] = probes.lows[entry]
        probes.lows[entry] = pair


@jit
def _free(pair: int, pairs: PairArrays, state: Int64s) -> None:
    pairs.next_active[pair] = state[FREE]
    state[FREE] = pair
    state[WAITING] -= 1


@jit
def _end_active(pair: int, low: int, high: int, fate: int, pairs: PairArrays, state: Int64s) -> bool:
    """The active tuple of a pair has ended; returns whether the pair is a match that was not output yet."""
    if pairs.ended[pair]:
        matches = pairs.fate[pair] == _OPEN and low <= pairs.lows[pair] <= high
        _free(pair, pairs, state)
        return bool(matches)
    pairs.ended[pair] = 1
    pairs.lows[pair] = low
    pairs.highs[pair] = high
    pairs.fate[pair] = _OPEN if fate == _OPEN else _DECIDED
    return bool(fate == _MATCH)


@jit
def _end_probe(pair: int, value: int, fate: int, pairs: PairArrays, state: Int64s) -> bool:
    """Like `_end_active`, for the probing tuple."""
    if pairs.ended[pair]:
        matches = pairs.fate[pair] == _OPEN and pairs.lows[pair] <= value <= pairs.highs[pair]
        _free(pair, pairs, state)
        return bool(matches)
    pairs.ended[pair] = 1
    pairs.lows[pair] = value
    pairs.fate[pair] = _OPEN if fate == _OPEN else _DECIDED
    return bool(fate == _MATCH)


@jit
def end_tuples(
    active_ids: Any,
    active_ends: Int64s,
    lows: Int64s,
    highs: Int64s,
    probe_ids: Any,
    probe_ends: Int64s,
    active_fate: int,
    probe_fate: int,
    probes_first: bool,
    pairs: PairArrays,
    actives: MapArrays,
    probes: MapArrays,
    state: Int64s,
    out_active: Any,
    out_probe: Any,
) -> int:
    """Go through the ends of both sides, each ascending, in the order of time; returns how many matches were written.

    A pair matches if the end of its probing tuple lies in [low, high] of its active tuple; active_fate and probe_fate
    say what is known already when the active or the probing tuple is the first of the two to end; among ends of one
    time those of probing tuples come first if `probes_first`. Stops with state[FULL] = 1 if the buffers are full; then
    call again.
    """
    count = 0
    room = len(out_active)
    state[FULL] = 0
    while True:
        i, j = state[ACTIVE_EVENT], state[PROBE_EVENT]
        if i < len(active_ids) and (
            j == len(probe_ids)
            or active_ends[i] < probe_ends[j]
            or (active_ends[i] == probe_ends[j] and not probes_first)
        ):
            entry = find(active_ids[i], actives)
            while entry >= 0 and actives.lows[entry] >= 0:
                if count == room:
                    state[FULL] = 1
                    return count
                pair = actives.lows[entry]
                actives.lows[entry] = pairs.next_active[pair]
                if _end_active(pair, lows[i], highs[i], active_fate, pairs, state):
                    out_active[count] = pairs.active[pair]
                    out_probe[count] = pairs.probe[pair]
                    count += 1
            state[ACTIVE_SIZE] = remove(active_ids[i], state[ACTIVE_SIZE], actives)
            state[ACTIVE_EVENT] = i + 1
        elif j < len(probe_ids):
            entry = find(probe_ids[j], probes)
            while entry >= 0 and probes.lows[entry] >= 0:
                if count == room:
                    state[FULL] = 1
                    return count
                pair = probes.lows[entry]
                probes.lows[entry] = pairs.next_probe[pair]
                if _end_probe(pair, probe_ends[j], probe_fate, pairs, state):
                    out_active[count] = pairs.active[pair]
                    out_probe[count] = pairs.probe[pair]
                    count += 1
            state[PROBE_SIZE] = remove(probe_ids[j], state[PROBE_SIZE], probes)
            state[PROBE_EVENT] = j + 1
        else:
            return count
