"""Every relation with every parameter: brute force, JoinByS and LazyJoinByS find the same pairs, each once."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.sweep.batch import sweep_join
from sqlext_operators.interval_join.sweep.transforms import ROWS, residual_of, sweeps_of

from tests.operators.interval_join.sweep import reference
from tests.operators.interval_join.sweep.sweep_data import CASES, INF, columns, intervals, name_of, pairs

#: Tables that one call joins, as key groups: 128 cases x 2 algorithms x 400 tables = 102,400 comparisons.
TABLES = 400
ROWS_EACH = 7

_COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}

#: The authors' vectors (docs/reference/periods.md, section 2): ids count from 1, "35" is (r3, s5).
R = [(1, 6), (1, 11), (7, 12), (9, 11)]
S = [(2, 3), (3, 13), (4, 6), (5, 7), (8, 10)]
VECTORS: list[tuple[str, dict[str, float], str]] = [
    ("iseql_start_preceding", {}, "11 12 13 14 21 22 23 24 25 35"),
    ("iseql_start_preceding", {"delta": 1}, "11 21 35"),
    ("iseql_end_following", {}, "11 13 21 23 24 25 35 45"),
    ("iseql_end_following", {"epsilon": 1}, "13 25 45"),
    ("iseql_left_overlap", {}, "12 13 14 22"),
    ("iseql_left_overlap", {"delta": 2}, "12 22"),
    ("iseql_right_overlap", {}, "45"),
    ("iseql_during", {}, "32 42"),
    ("iseql_during", {"delta": 4}, "32"),
    ("iseql_reverse_during", {}, "11 13 21 23 24 25 35"),
    ("iseql_reverse_during", {"delta": 4, "epsilon": 3}, "11 13 35"),
    ("iseql_before", {"delta": 2}, "15"),
    ("iseql_after", {"delta": 1}, "33 34"),
]


def _holds(relation: str, values: dict[str, float], starts: Any, ends: Any, others: Any, other_ends: Any) -> Any:
    """bool[table, left row, right row] by the formula."""
    left = {"a": starts[:, :, None], "b": ends[:, :, None]}
    right = {"c": others[:, None, :], "d": other_ends[:, None, :]}
    found = (left["a"] < left["b"]) & (right["c"] < right["d"])
    for item in RELATIONS[relation].conditions(**values):
        assert not isinstance(item.shift, tuple)
        found &= _COMPARE[item.operator](left[item.left] + item.shift, right[item.right])
    return found


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_both_algorithms_find_the_pairs_of_the_formula(relation: str, values: dict[str, float]) -> None:
    rng = np.random.default_rng(sum(map(ord, relation + name_of(values))))
    starts, ends = intervals(rng, (TABLES, ROWS_EACH))
    others, other_ends = intervals(rng, (TABLES, ROWS_EACH + 1))
    expected = _holds(relation, values, starts, ends, others, other_ends)
    left_keys = np.repeat(np.arange(TABLES), ROWS_EACH)
    right_keys = np.repeat(np.arange(TABLES), ROWS_EACH + 1)
    shuffled, other_order = rng.permutation(starts.size), rng.permutation(others.size)
    for lazy in (False, True):
        found = np.zeros(expected.shape, np.int64)
        batches = sweep_join(
            relation,
            *(column.ravel()[shuffled] for column in (starts, ends)),
            *(column.ravel()[other_order] for column in (others, other_ends)),
            lazy=lazy,
            batch_rows=int(rng.integers(1, 2000)),
            left_keys=left_keys[shuffled],
            right_keys=right_keys[other_order],
            **values,
        )
        for left_rows, right_rows in batches:
            rows, other_rows = shuffled[left_rows], other_order[right_rows]
            assert (left_keys[rows] == right_keys[other_rows]).all()
            place = (left_keys[rows], rows % ROWS_EACH, other_rows % (ROWS_EACH + 1))
            np.add.at(found, place, 1)
        assert (found == expected).all()
        assert batches.dropped_left == np.count_nonzero(starts >= ends)
        assert batches.dropped_right == np.count_nonzero(others >= other_ends)


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_without_keys_and_with_the_twin_of_the_iterators(relation: str, values: dict[str, float]) -> None:
    rng = np.random.default_rng(len(relation) + len(name_of(values)))
    for size in (0, 1, 6, 12):
        left, right = intervals(rng, size), intervals(rng, int(rng.integers(0, 9)))
        rows = list(zip(left[0].tolist(), left[1].tolist(), strict=True))
        others = list(zip(right[0].tolist(), right[1].tolist(), strict=True))
        expected = reference.pairs_of(relation, rows, others, **values)
        for lazy in (False, True):
            assert pairs(sweep_join(relation, *left, *right, lazy=lazy, batch_rows=4, **values)) == expected
        assert sorted(_twin(relation, values, rows, others)) == expected
        assert sorted(_by_passes(relation, values, rows, others)) == expected


def _twin(
    relation: str, values: dict[str, float], left: list[reference.Interval], right: list[reference.Interval]
) -> list[tuple[int, int]]:
    """The table's sweeps with the plain iterators and JoinByS; the residual by the formula."""
    full = set(reference.pairs_of(relation, left, right, **values))
    found: list[tuple[int, int]] = []
    kept = [[key for key, (start, end) in enumerate(side) if start < end] for side in (left, right)]
    for sweep in sweeps_of(relation, **values):
        sides = [[left[key] for key in kept[0]], [right[key] for key in kept[1]]]
        active, probing = sides if sweep.active == "left" else sides[::-1]
        for one, other in reference.join_by_s(sweep.algorithm, reference.events_of(sweep.events, active), probing):
            i, j = (one, other) if sweep.active == "left" else (other, one)
            pair = (kept[0][i], kept[1][j])
            ends = dict(zip("abcd", left[pair[0]] + right[pair[1]], strict=True))
            if all(_met(item, ends) for item in sweep.residual):
                found.append(pair)
            else:
                assert pair not in full
    return found


def _by_passes(
    relation: str, values: dict[str, float], left: list[reference.Interval], right: list[reference.Interval]
) -> list[tuple[int, int]]:
    """The pairs of the passes that joins derive from the formula."""
    found = []
    for item in RELATIONS[relation].passes(**values):
        conditions = item.lowers + item.uppers + item.residual
        for i, (a, b) in enumerate(left):
            for j, (c, d) in enumerate(right):
                ends = {"a": a, "b": b, "c": c, "d": d}
                if a < b and c < d and all(_met(condition, ends) for condition in conditions):
                    found.append((i, j))
    return found


def _met(item: Condition, ends: dict[str, int]) -> bool:
    assert not isinstance(item.shift, tuple)
    return bool(_COMPARE[item.operator](ends[item.left] + item.shift, ends[item.right]))


@pytest.mark.parametrize(("relation", "values", "expected"), VECTORS, ids=name_of)
@pytest.mark.parametrize("lazy", [False, True])
def test_the_authors_vectors(relation: str, values: dict[str, float], expected: str, lazy: bool) -> None:
    found = pairs(sweep_join(relation, *columns(R), *columns(S), lazy=lazy, **values))
    assert " ".join(f"{i + 1}{j + 1}" for i, j in found) == expected


def test_the_papers_first_example() -> None:
    left, right = columns([(0, 1), (1, 3), (2, 5)]), columns([(1, 3), (3, 4)])
    assert pairs(sweep_join("iseql_before", *left, *right, delta=1)) == [(0, 0), (1, 1)]
    assert pairs(sweep_join("iseql_before", *left, *right)) == [(0, 0), (0, 1), (1, 1)]


def test_the_table_has_a_row_for_each_relation() -> None:
    assert list(ROWS) == list(RELATIONS)


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_the_table_has_a_sweep_for_each_derived_pass(relation: str, values: dict[str, float]) -> None:
    """And tests nothing after the sweep where a pass need not; their pairs are compared above."""
    sweeps = sweeps_of(relation, **values)
    passes = RELATIONS[relation].passes(**values)
    assert len(sweeps) == len(passes)
    for sweep in sweeps:
        conditions = RELATIONS[relation].conditions(**values)
        assert sweep.residual == residual_of(sweep, conditions)
    if len(sweeps) == 1 and not sweeps[0].residual:
        assert not passes[0].residual


def test_the_finite_parameter_chooses_the_sweep() -> None:
    (by_ends,) = sweeps_of("iseql_left_overlap", epsilon=3)
    (by_starts,) = sweeps_of("iseql_left_overlap", 2, 3)
    (other,) = sweeps_of("iseql_right_overlap", delta=2, epsilon=INF)
    assert (by_ends.algorithm.name, by_ends.active) == ("EndFollowing", "right")
    assert (by_starts.algorithm.name, by_starts.active) == ("StartPreceding", "left")
    assert (other.algorithm.name, other.active) == ("StartPreceding", "right")
