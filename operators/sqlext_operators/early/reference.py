"""Brute-force twins, row by row: the aggregate of a window join, and its expected spread under thinning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sqlext_operators.early.key_totals import Aggregate


def join_aggregate(left: Sequence[tuple[int, float]], right: Sequence[int], aggregate: Aggregate) -> float:
    """Over all pairs of a left (key, value) and a right key that are equal; AVG of nothing is NaN."""
    values = [value for key, value in left for other in right if key == other]
    match aggregate:
        case Aggregate.COUNT:
            return float(len(values))
        case Aggregate.SUM:
            return float(sum(values))
        case Aggregate.AVG:
            return float(sum(values)) / len(values) if values else float("nan")


def thinned(
    left: Sequence[tuple[int, float]], right: Sequence[int], shares: tuple[float, float], random: np.random.Generator
) -> tuple[list[tuple[int, float]], list[int]]:
    """The rows that have arrived, if each of them has with the probability of its side."""
    return (
        [row for row in left if random.random() < shares[0]],
        [key for key in right if random.random() < shares[1]],
    )
