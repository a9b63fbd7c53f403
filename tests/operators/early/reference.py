"""Brute-force twins, row by row: the aggregate of a window join, and its expected spread under thinning."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sqlext_operators.early.windows import EstimatedAggregate


def join_aggregate(left: Sequence[tuple[int, float]], right: Sequence[int], aggregate: EstimatedAggregate) -> float:
    """Over all pairs of a left (key, value) and a right key that are equal; AVG of nothing is NaN."""
    values = [value for key, value in left for other in right if key == other]
    match aggregate:
        case EstimatedAggregate.COUNT:
            return float(len(values))
        case EstimatedAggregate.SUM:
            return float(sum(values))
        case EstimatedAggregate.AVG:
            return float(sum(values)) / len(values) if values else float("nan")


def thinned(
    left: Sequence[tuple[int, float]], right: Sequence[int], shares: tuple[float, float], random: np.random.Generator
) -> tuple[list[tuple[int, float]], list[int]]:
    """The rows that have arrived, if each of them has with the probability of its side."""
    return (
        [row for row in left if random.random() < shares[0]],
        [key for key in right if random.random() < shares[1]],
    )


def adaptive_linear_filter(
    rows: Sequence[tuple[bool, int, float, float, float]], length: float
) -> tuple[float, float, float]:
    """(COUNT before it is rounded down, SUM, AVG) of PECJ's ALF after these (is left, key, value, event, arrival)."""
    state: dict[tuple[bool, int | None], list[float]] = {}  # of a key, and of a side: rows, delay, last arrival, event
    cap, share, pairs, joined = 10.0, 0.0, 0.0, [0.0, 0.0]
    expected = {True: 0.0, False: 0.0}
    filters = {"share": [0.2, 0.0], "average": [0.2, 0.0]}

    def smooth(name: str, value: float) -> float:
        weight, before = filters[name]
        result = weight * value + (1 - weight) * before
        off = abs(value - result)
        filters[name] = [max(0.01, min(0.99, weight / off)) if off > 0 else weight, value]
        return result

    average = 0.0
    for is_left, key, value, event, arrival in rows:
        missing = 0.0
        for name in ((is_left, key), (is_left, None)):
            count, delay, last, latest = state.get(name, [0.0, 0.0, -math.inf, -math.inf])
            delay = 0.875 * delay + 0.125 * (arrival - event)
            last, latest = max(last, arrival), max(latest, event)
            state[name] = [count + 1, delay, last, latest]
            gone, future = last - delay, length + delay - last
            missing = max(0.0, min(future / (gone if gone > 0 else 1), cap) * (count + 1))
            if gone == 0:
                continue
            rate = (count + 1) / gone
            if rate > 0:
                ratio = missing / future / rate if future else math.nan
                cap = max(0.1, min(100.0, math.sqrt(ratio))) if ratio >= 0 else math.nan
        if (not is_left, key) not in state:
            continue
        pairs += state[(not is_left, key)][0]
        mine, other = state[(is_left, None)][0], state[(not is_left, None)][0]
        expected[is_left] = mine + missing
        expected[not is_left] = expected[not is_left] or other
        share = smooth("share", pairs / (mine * other))
        if is_left:
            joined = [joined[0] + value, joined[1] + 1]
            average = smooth("average", joined[0] / joined[1])
    total = share * expected[True] * expected[False]
    left, right = (state.get((side, None), [0.0, 0.0, 0.0, 0.0]) for side in (True, False))
    middle = math.floor((left[2] + left[3] + right[2] + right[3]) / 2)
    late = middle > 2 * length + (left[1] + right[1]) / 2
    weight = 0.0 if late else 0.2 if middle >= 2 * length else 0.5
    plain = math.floor(pairs * joined[0] / joined[1]) if joined[1] else 0
    return total, weight * total * average + (1 - weight) * plain, average
