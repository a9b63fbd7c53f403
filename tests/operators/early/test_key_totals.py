"""Totals by key against the join, row by row."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.early.windows import EstimatedAggregate, KeyTotals

from tests.operators.early.reference import join_aggregate

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-50, 50).map(float)), max_size=20)
KEYS = st.lists(st.integers(-3, 3), max_size=20)


def totals(left: list[tuple[int, float]], right: list[int]) -> KeyTotals:
    return KeyTotals.of(
        np.array([key for key, _ in left], np.int64),
        np.array([value for _, value in left], np.float64),
        np.array(right, np.int64),
    )


def same(found: KeyTotals, expected: KeyTotals) -> bool:
    names = ("keys", "left_rows", "left_sums", "left_squares", "right_rows")
    return all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in names)


@given(ROWS, KEYS)
def test_aggregates_are_those_of_the_join(left: list[tuple[int, float]], right: list[int]) -> None:
    found = totals(left, right)
    for aggregate in EstimatedAggregate:
        exact = join_aggregate(left, right, aggregate)
        answer = found.answer(aggregate)
        assert answer == exact or (math.isnan(answer) and math.isnan(exact))


def test_keys_may_be_texts() -> None:
    found = KeyTotals.of(np.array(["b", "a", "b"]), None, np.array(["b", "c"]))
    assert (found.pairs, found.left, found.right) == (2.0, 3, 2)
    assert [side.tolist() for side in found.rows_at(np.array(["c", "b", "x"]))] == [[0, 2, 0], [1, 1, 0]]
