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
        pairs.next_active[pair] = _put_first(pair, active[i], actives, state, ACTIVE_SIZE)
        pairs.next_probe[pair] = _put_first(pair, probe[i], probes, state, PROBE_SIZE)


@jit
def _put_first(pair: int, key: int, firsts: MapArrays, state: Int64s, size: int) -> int:
    """Make a pair the first of a tuple's list; returns the one that was, or -1. state[size] is that of the map."""
    entry = find(key, firsts)
    if entry < 0:
        entry = state[size]
        state[size] = insert(key, -1, 0, entry, firsts)
    before = int(firsts.lows[entry])
    firsts.lows[entry] = pair
    return before


@jit
def _free(pair: int, pairs: PairArrays, state: Int64s) -> None:
    pairs.next_active[pair] = state[FREE]
    state[FREE] = pair
    state[WAITING] -= 1


@jit
def _end(pair: int, low: int, high: int, is_active: bool, fate: int, pairs: PairArrays, state: Int64s) -> bool:
    """The active tuple of a pair has ended, with its lows and highs, or the probing one, with its value as both;
    returns whether the pair is a match that was not output yet."""
    if pairs.ended[pair]:
        matches = low <= pairs.lows[pair] <= high if is_active else pairs.lows[pair] <= low <= pairs.highs[pair]
        matches = matches and pairs.fate[pair] == _OPEN
        _free(pair, pairs, state)
        return bool(matches)
    pairs.ended[pair] = 1
    pairs.lows[pair] = low
    pairs.highs[pair] = high
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
        is_active = i < len(active_ids) and (
            j == len(probe_ids)
            or active_ends[i] < probe_ends[j]
            or (active_ends[i] == probe_ends[j] and not probes_first)
        )
        if not is_active and j == len(probe_ids):
            return count
        if is_active:
            key, low, high, fate, firsts = active_ids[i], lows[i], highs[i], active_fate, actives
        else:
            key, low, high, fate, firsts = probe_ids[j], probe_ends[j], probe_ends[j], probe_fate, probes
        entry = find(key, firsts)
        while entry >= 0 and firsts.lows[entry] >= 0:
            if count == room:
                state[FULL] = 1
                return count
            pair = firsts.lows[entry]
            firsts.lows[entry] = pairs.next_active[pair] if is_active else pairs.next_probe[pair]
            if _end(pair, low, high, is_active, fate, pairs, state):
                out_active[count] = pairs.active[pair]
                out_probe[count] = pairs.probe[pair]
                count += 1
        size, event = (ACTIVE_SIZE, ACTIVE_EVENT) if is_active else (PROBE_SIZE, PROBE_EVENT)
        state[size] = remove(key, state[size], firsts)
        state[event] += 1
