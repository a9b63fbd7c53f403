"""Random intervals with ties, empty, reversed and negative ones; all relations with all parameter values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.relations import RELATIONS

from tests.operators.interval_join.sweep.reference import Interval

INF = float("inf")
DELTAS = (0, 1, 2, 5, INF)
EPSILONS = (0, 1, 3, INF)
_VALUES = {"delta": DELTAS, "epsilon": EPSILONS}

#: (relation, parameters) for every relation and every value of its parameters.
CASES = [
    (name, dict(zip(relation.parameters, values, strict=True)))
    for name, relation in RELATIONS.items()
    for values in itertools.product(*(_VALUES[parameter] for parameter in relation.parameters))
]


def name_of(case: object) -> str:
    """A test's name."""
    if isinstance(case, dict):
        return "-".join(f"{name}={value}" for name, value in case.items()) or "plain"
    return str(case)


def intervals(rng: np.random.Generator, size: int | tuple[int, int]) -> tuple[Int64s, Int64s]:
    """Few values, so that endpoints meet; about one in four is empty or reversed."""
    starts = rng.integers(-6, 7, size)
    return starts, starts + rng.integers(-1, 6, size)


def columns(rows: Iterable[Interval]) -> tuple[Int64s, Int64s]:
    """(starts, ends)."""
    table = np.array(list(rows), np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def pairs(batches: Iterable[tuple[Int64s, Int64s]]) -> list[tuple[int, int]]:
    """Batches of pairs as one sorted list: a pair that came twice is in it twice."""
    return sorted(_pairs(batches))


def _pairs(batches: Iterable[tuple[Int64s, Int64s]]) -> Iterator[tuple[int, int]]:
    for left, right in batches:
        yield from zip(left.tolist(), right.tolist(), strict=True)
