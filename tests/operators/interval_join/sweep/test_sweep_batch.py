"""Whole relations: batches, points, key groups, far ends of int64, large active sets, wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest
from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.sweep.batch import sweep_join

from tests.operators.interval_join.sweep import reference
from tests.operators.interval_join.sweep.sweep_data import CASES, columns, intervals, name_of, pairs

FAR = [LEAST, LEAST + 1, -1, 0, 1, GREATEST - 1, GREATEST]


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_ends_of_int64(relation: str, values: dict[str, float]) -> None:
    """An open end is the greatest int64; shifts saturate there."""
    rng = np.random.default_rng(7)
    for _ in range(8):
        sides = [rng.choice(FAR, (8, 2)) for _ in range(2)]
        rows, others = ([(int(a), int(b)) for a, b in side] for side in sides)
        left, right = (columns(side) for side in (rows, others))
        for lazy in (False, True):
            found = pairs(sweep_join(relation, *left, *right, lazy=lazy, batch_rows=5, **values))
            assert found == reference.pairs_of(relation, rows, others, **values)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("relation", ["iseql_start_preceding", "iseql_left_overlap", "allen_before"])
def test_large_active_sets_and_long_buffers(relation: str, lazy: bool) -> None:
    """More active tuples than a block, more probes without an event between them than a buffer, maps that grow."""
    starts, ends = np.arange(3000) % 7, np.arange(3000) % 11 + 10
    others, other_ends = np.full(700, 8) + np.arange(700) // 650 * 5, np.full(700, 15) + np.arange(700) % 9
    for rows in (7, 1023, 1 << 16):
        some = slice(None, 200) if rows == 7 else slice(None)  # a call of the kernel for every 7 pairs
        left, right = (starts[some], ends[some]), (others, other_ends)
        expected = _matrix(relation, *left, *right)
        found = np.zeros_like(expected, np.int64)
        for left_rows, right_rows in sweep_join(relation, *left, *right, lazy=lazy, batch_rows=rows):
            assert 0 < len(left_rows) <= rows
            np.add.at(found, (left_rows, right_rows), 1)
        assert (found == expected).all()


def _matrix(relation: str, starts: Int64s, ends: Int64s, others: Int64s, other_ends: Int64s) -> np.ndarray:
    a, b, c, d = starts[:, None], ends[:, None], others[None], other_ends[None]
    holds = {
        "iseql_start_preceding": (a <= c) & (c < b),
        "iseql_left_overlap": (a <= c) & (c < b) & (b <= d),
        "allen_before": b < c,
    }
    return np.asarray(holds[relation] & (a < b) & (c < d))


def test_both_algorithms_find_equally_many_pairs() -> None:
    rng = np.random.default_rng(4)
    starts, others = rng.integers(0, 10_000, 5000), rng.integers(0, 10_000, 5000)
    ends, other_ends = starts + rng.integers(1, 300, 5000), others + rng.integers(1, 300, 5000)
    counts = []
    for lazy in (False, True):
        batches = sweep_join("period_overlaps", starts, ends, others, other_ends, lazy=lazy)
        counts.append(sum(len(rows) for rows, _ in batches))
    slices = np.searchsorted(np.sort(others), ends).sum() - np.searchsorted(np.sort(other_ends), starts, "right").sum()
    assert counts == [slices, slices]


def test_points() -> None:
    """The right side of CONTAINS may be single values: a <= t < b."""
    left = columns([(1, 4), (4, 6), (5, 5), (0, 9)])
    times = np.array([4, 1, 9, -1, 5])
    found = pairs(sweep_join("period_contains", *left, times, None))
    assert found == [(0, 1), (1, 0), (1, 4), (3, 0), (3, 1), (3, 4)]
    with pytest.raises(ValueError, match="right side of period_overlaps is a period"):
        sweep_join("period_overlaps", *left, times, None)


def test_key_groups_are_apart_even_where_windows_never_end() -> None:
    rng = np.random.default_rng(2)
    left, right = intervals(rng, 40), intervals(rng, 40)
    keys, other_keys = rng.integers(-2, 3, 40), rng.choice([LEAST, -1, 0, 2, GREATEST], 40)
    for relation in ("allen_before", "period_succeeds", "period_overlaps"):
        found = pairs(sweep_join(relation, *left, *right, left_keys=keys, right_keys=other_keys))
        everything = pairs(sweep_join(relation, *left, *right))
        assert found == [(i, j) for i, j in everything if keys[i] == other_keys[j]]


def test_rows_that_take_no_part_are_counted() -> None:
    batches = sweep_join("period_equals", *columns([(3, 3), (5, 2), (1, 2)]), *columns([(1, 2), (3, 3)]))
    assert (batches.dropped_left, batches.dropped_right) == (2, 1)
    assert pairs(batches) == [(2, 0)]


def test_narrower_integers() -> None:
    left, right = columns([(1, 4)]), columns([(2, 3), (4, 5)])
    assert pairs(sweep_join("period_overlaps", *(c.astype(np.int32) for c in left), *right)) == [(0, 0)]


def test_a_fraction_of_a_unit_bounds_nothing_more() -> None:
    left, right = columns([(0, 10)]), columns([(2, 3), (3, 4)])
    assert pairs(sweep_join("iseql_start_preceding", *left, *right, delta=2.5)) == [(0, 0)]
    assert pairs(sweep_join("iseql_end_following", *left, *right, epsilon=6.5)) == [(0, 1)]


def test_wrong_arguments() -> None:
    side = columns([(1, 2)])
    with pytest.raises(KeyError, match="overlapping"):
        sweep_join("overlapping", *side, *side)
    with pytest.raises(ValueError, match="takes no epsilon"):
        sweep_join("iseql_before", *side, *side, epsilon=1)
    with pytest.raises(ValueError, match="delta is not negative"):
        sweep_join("iseql_before", *side, *side, delta=-1)
    with pytest.raises(ValueError, match="one length"):
        sweep_join("iseql_before", side[0], np.array([3, 4]), *side)
    with pytest.raises(ValueError, match="both sides have keys"):
        sweep_join("iseql_before", *side, *side, left_keys=np.array([1]))
    with pytest.raises(TypeError, match="float64"):
        sweep_join("iseql_before", side[0] / 2, side[1] / 2, *side)
    with pytest.raises(ValueError, match="at least one row"):
        sweep_join("iseql_before", *side, *side, batch_rows=0)
