"""Mergeable states over sliding slices by the two-stacks queue: moments, weighted means, falls from a peak."""

from __future__ import annotations

import math

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.sliding import UNSET
from sqlext_operators.window.kernels.sliding_states import two_sum

State = tuple[float, float, float, float, float]

#: What is folded, and how many of a state's five numbers it uses.
MOMENTS = 0
WEIGHTED_MEAN = 1
DRAWDOWN = 2
WIDTHS = (5, 3, 3)


@jit
def empty_state(kind: int) -> State:
    """The state of no values: count 0; for DRAWDOWN no peak (-1) and no valley."""
    if kind == DRAWDOWN:
        return -1.0, math.inf, 0.0, 0.0, 0.0
    return 0.0, 0.0, 0.0, 0.0, 0.0


@jit
def one_value(kind: int, value: float, low: float) -> State:
    """The state of the value + low.

    MOMENTS        (count, mean, low part of the mean, sum of squared distances from the mean, its low part)
    WEIGHTED_MEAN  (count, mean, low part of the mean)
    DRAWDOWN       (peak, valley, largest fall as a share); negative values are left out, NaN makes the fall NaN
    """
    if kind == MOMENTS:
        return 1.0, value, low, value - value, 0.0  # NaN for NaN and infinities, as in Spark
    if kind == WEIGHTED_MEAN:
        return 1.0, value, low, 0.0, 0.0
    if value >= 0.0:
        return value, value, 0.0, 0.0, 0.0
    return (0.0, math.inf, math.nan, 0.0, 0.0) if math.isnan(value) else (-1.0, math.inf, 0.0, 0.0, 0.0)


@jit
def merge(kind: int, rate: float, a: State, b: State) -> State:
    """The state of all values of `a` and then, newer, those of `b`. `rate` is log(1 - alpha) for WEIGHTED_MEAN."""
    if kind == DRAWDOWN:
        fall = max(a[2], b[2])
        if a[0] > 0.0 and b[1] < a[0]:
            fall = max(fall, 1.0 if math.isinf(a[0]) else (a[0] - b[1]) / a[0])
        if math.isnan(a[2]) or math.isnan(b[2]):
            fall = math.nan
        return max(a[0], b[0]), min(a[1], b[1]), fall, 0.0, 0.0
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    count = a[0] + b[0]
    share = _newer_share(rate, a[0], b[0])
    delta = (b[1] - a[1]) + (b[2] - a[2])
    if not math.isfinite(delta):
        return _merge_beyond(kind, rate, a, b, share)
    if share <= 0.5:
        mean, low = two_sum(a[1], delta * share)
        low += a[2]
    else:  # a step from the nearer mean: a large one with a small weight costs no digits
        mean, low = two_sum(b[1], -delta * _older_share(rate, a[0], b[0]))
        low += b[2]
    if kind == WEIGHTED_MEAN:
        return count, mean, low, 0.0, 0.0
    squares, error = two_sum(a[3], b[3])
    squares, more = two_sum(squares, delta * delta * (a[0] * share))
    return count, mean, low, squares, error + more + (a[4] + b[4])


@jit
def _newer_share(rate: float, older: float, newer: float) -> float:
    """The share of `newer` values in the sum of all weights, with `older` ones before them."""
    if rate == 0.0:
        return newer / (older + newer)
    return math.expm1(newer * rate) / math.expm1((older + newer) * rate)


@jit
def _older_share(rate: float, older: float, newer: float) -> float:
    """One minus the former, without cancellation."""
    if rate == 0.0:
        return older / (older + newer)
    return math.exp(newer * rate) * (math.expm1(older * rate) / math.expm1((older + newer) * rate))


@jit
def _merge_beyond(kind: int, rate: float, a: State, b: State, share: float) -> State:
    """Two means that are not finite, or whose difference is not."""
    mean = a[1] + b[1]
    if rate == -math.inf:
        mean = b[1]
    elif math.isfinite(a[1]) and math.isfinite(b[1]):
        mean = a[1] * (1.0 - share) + b[1] * share
    squares = math.inf if math.isfinite(a[3]) and math.isfinite(b[3]) else a[3] + b[3]
    return a[0] + b[0], mean, 0.0, squares if kind == MOMENTS else 0.0, 0.0


@jit
def _load(states: Float64s, k: int) -> State:
    if states.shape[1] == 3:
        return states[k, 0], states[k, 1], states[k, 2], 0.0, 0.0
    return states[k, 0], states[k, 1], states[k, 2], states[k, 3], states[k, 4]


@jit
def _store(states: Float64s, k: int, state: State) -> None:
    states[k, 0] = state[0]
    states[k, 1] = state[1]
    states[k, 2] = state[2]
    if states.shape[1] == 5:
        states[k, 3] = state[3]
        states[k, 4] = state[4]


@jit
def fold_forward(
    kind: int, rate: float, values: Float64s, low: Float64s, usable: Bools, start: int, end: int, states: Float64s
) -> None:
    """Merge the usable values of [start, end) into states[0]."""
    state = _load(states, 0)
    for k in range(start, end):
        if usable[k]:
            state = merge(kind, rate, state, one_value(kind, values[k], low[k] if len(low) else 0.0))
    _store(states, 0, state)


@jit
def merge_rows(kind: int, rate: float, states: Float64s, newer: Float64s) -> None:
    """Merge newer[i] into states[i]."""
    for i in range(len(states)):
        _store(states, i, merge(kind, rate, _load(states, i), _load(newer, i)))


@jit
def sliding_fold(
    kind: int,
    rate: float,
    values: Float64s,
    low: Float64s,
    usable: Bools,
    lo: Int64s,
    hi: Int64s,
    fresh: Bools,
    cursor: Int64s,
    back: Float64s,
    suffix: Float64s,
    out: Float64s,
) -> None:
    """out[i] = the state of the usable values in [lo[i], hi[i]), oldest first.

    values float64[n] and low float64[n] or [0], to be added; usable bool[n]; lo, hi int64[m], never falling while
    fresh is false (lo may, at the price of a rescan); fresh bool[m] starts a new group. out float64[m, width], its
    width WIDTHS[kind]. State: cursor = (low, middle, end), end UNSET for none; back float64[1, width] is the state
    of [middle, end); suffix[k] is that of [k, middle) for low <= k < middle.

    The two-stacks queue, as in `sliding_sum.sliding_sums`: a row is merged at most twice, plus once for each result,
    and nothing is ever taken out again, so a value that has left leaves no trace, neither 1e300 nor NaN. Measured, ns
    a row in windows of 10, 1,000, 100,000 rows: moments 42, 57, 56; weighted means 75, 137, 94; drawdown 34, 35, 34.
    """
    first = cursor[0]
    middle = cursor[1]
    end = cursor[2]
    state = _load(back, 0)
    for i in range(len(lo)):
        a = lo[i]
        z = hi[i]
        if fresh[i] or end == UNSET:
            first = a
            middle = a
            end = a
            state = empty_state(kind)
        if a > middle or a < first:
            state = empty_state(kind)
            for k in range(z - 1, a - 1, -1):
                if usable[k]:
                    state = merge(kind, rate, one_value(kind, values[k], low[k] if len(low) else 0.0), state)
                _store(suffix, k, state)
            first = a
            middle = z
            end = z
            state = empty_state(kind)
        for k in range(end, z):
            if usable[k]:
                state = merge(kind, rate, state, one_value(kind, values[k], low[k] if len(low) else 0.0))
        if z > end:
            end = z
        _store(out, i, merge(kind, rate, _load(suffix, a), state) if a < middle else state)
    cursor[0] = first
    cursor[1] = middle
    cursor[2] = end
    _store(back, 0, state)
