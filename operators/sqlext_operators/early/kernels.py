"""PECJ's adaptive linear filter over the arrivals of one window, as the published code computes it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

# columns of a trace: rows, mean delay, latest arrival, latest event time
_ROWS, _SKEW, _ARRIVAL, _EVENT = 0, 1, 2, 3


@njit(nogil=True)
def _trace(trace: NDArray[np.float64], event: float, arrival: float) -> None:
    """Take a row into a stream's trace."""
    trace[_SKEW] = 0.875 * trace[_SKEW] + 0.125 * (arrival - event)
    if trace[_ROWS] == 0 or trace[_ARRIVAL] < arrival:
        trace[_ARRIVAL] = arrival
    if trace[_ROWS] == 0 or trace[_EVENT] < event:
        trace[_EVENT] = event
    trace[_ROWS] += 1


@njit(nogil=True)
def _missing(trace: NDArray[np.float64], length: float, cap: float) -> tuple[float, float]:
    """(Rows expected to come yet, the cap of the ratio from now on), with a cap that all traces share."""
    gone = trace[_ARRIVAL] - trace[_SKEW]
    future = length + trace[_SKEW] - trace[_ARRIVAL]
    ratio = min(future / (gone if gone > 0 else 1.0), cap)
    missing = max(0.0, ratio * trace[_ROWS])
    if gone == 0:
        return missing, cap
    rate = trace[_ROWS] / gone
    if rate > 0:
        if future == 0:  # 0 / 0 in the published code, and it stays so
            return missing, math.nan
        quotient = missing / future / rate
        cap = math.nan if quotient < 0 or math.isnan(quotient) else min(max(math.sqrt(quotient), 0.1), 100.0)
    return missing, cap


@njit(nogil=True)
def _smoothed(filter: NDArray[np.float64], value: float) -> float:
    """The adaptive moving average: `filter` is (weight of the new value, value before)."""
    smooth: float = filter[0] * value + (1 - filter[0]) * filter[1]
    filter[1] = value
    off = abs(value - smooth)
    if off > 0:
        filter[0] = max(0.01, min(0.99, filter[0] / off))
    return smooth


@njit(nogil=True)
def follow(
    is_left: NDArray[np.bool_],
    keys: NDArray[np.int64],
    values: NDArray[np.float64],
    events: NDArray[np.int64],
    arrivals: NDArray[np.int64],
    length: float,
    key_count: int,
) -> tuple[float, float, float, float, float]:
    """(estimated COUNT, estimated SUM, smoothed average, pairs seen, selectivity) after the last row.

    Arrays as in `Arrivals`. Before it is rounded down, COUNT is selectivity times the rows expected on both sides.
    """
    by_key = np.zeros((2, key_count, 4))
    streams = np.zeros((2, 4))
    expected = np.zeros(2)
    selectivity_filter = np.array([0.2, 0.0])
    average_filter = np.array([0.2, 0.0])
    cap, selectivity, pairs = 10.0, 0.0, 0.0
    joined_sum, joined, average = 0.0, 0, 0.0
    for row in range(len(keys)):
        side = 1 if is_left[row] else 0
        event, arrival, key = float(events[row]), float(arrivals[row]), keys[row]
        _trace(by_key[side, key], event, arrival)
        _, cap = _missing(by_key[side, key], length, cap)  # only for the cap, which it changes
        _trace(streams[side], event, arrival)
        missing, cap = _missing(streams[side], length, cap)
        others = by_key[1 - side, key, _ROWS]
        if others == 0:
            continue
        pairs += others
        expected[side] = streams[side, _ROWS] + missing
        if expected[1 - side] == 0:
            expected[1 - side] = streams[1 - side, _ROWS]
        selectivity = _smoothed(selectivity_filter, pairs / (streams[0, _ROWS] * streams[1, _ROWS]))
        if side == 1:
            joined_sum += values[row]
            joined += 1
            average = _smoothed(average_filter, joined_sum / joined)
    count = selectivity * expected[0] * expected[1]
    plain = joined_sum / joined if joined else 0.0
    middle = math.floor((streams[0, _ARRIVAL] + streams[0, _EVENT] + streams[1, _ARRIVAL] + streams[1, _EVENT]) / 2)
    weight = 0.5
    if middle > 2 * length + (streams[0, _SKEW] + streams[1, _SKEW]) / 2:
        weight = 0.0
    elif middle >= 2 * length:
        weight = 0.2
    total = weight * count * average + (1 - weight) * math.floor(pairs * plain)
    return count, total, average, pairs, selectivity
