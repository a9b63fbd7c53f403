"""The grouped stable sort and the run merge against Python's sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.codes import NULL_ORDER
from sqlext_operators.kernels.sequence_sort import fill_groups, first_rows, group_rows, merge_loaded, sort_groups


def sequence(group: list[int], order: list[int], ranking: list[int]) -> tuple[list[int], list[int], list[int]]:
    """(rows, order, rank of the group) as the kernels sort them."""
    count = len(ranking)
    starts = np.empty(count + 1, np.int64)
    rows, keys = np.empty(len(group), np.int32), np.empty(len(group), np.int64)
    group_rows(np.array(group, np.int64), np.array(order, np.int64), np.array(ranking, np.int64), starts, rows, keys)
    sort_groups(starts, keys, rows)
    groups = np.empty(len(group), np.int64)
    fill_groups(starts, groups)
    return rows.tolist(), keys.tolist(), groups.tolist()


def check(group: list[int], order: list[int]) -> None:
    count = max(group, default=-1) + 2  # one group more than there is: an empty one
    for ranking in (list(range(count)), list(range(count))[::-1], np.random.default_rng(1).permutation(count).tolist()):
        rows, keys, groups = sequence(group, order, ranking)
        expected = sorted(range(len(group)), key=lambda i: (ranking.index(group[i]), order[i]))
        assert rows == expected
        assert keys == [order[i] for i in expected]
        assert groups == [ranking.index(group[i]) for i in expected]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5) | st.sampled_from([int(NULL_ORDER), 2**63 - 1]))))
def test_small_groups(rows: list[tuple[int, int]]) -> None:
    check([group for group, _ in rows], [order for _, order in rows])


@pytest.mark.parametrize("span", [1, 1_000, 2**22, 2**40, 2**63 - 1])
@pytest.mark.parametrize("nulls", [False, True])
def test_long_unsorted_groups_take_the_radix_path(span: int, nulls: bool) -> None:
    random = np.random.default_rng(span)
    order = random.integers(-span, span, 6_000)
    order[random.random(6_000) < 0.1 * nulls] = NULL_ORDER
    check(random.integers(0, 2, 6_000).tolist(), order.tolist())


@pytest.mark.parametrize("runs", [1, 2, 3, 7, 16, 17])
def test_sorted_runs_are_merged(runs: int) -> None:
    random = np.random.default_rng(runs)
    order = np.concatenate([np.sort(random.integers(0, 3_000, 2_000)) for _ in range(runs)])
    check(random.integers(0, 2, len(order)).tolist(), order.tolist())


@given(st.lists(st.integers(0, 6)))
def test_first_rows(keys: list[int]) -> None:
    distinct = list(dict.fromkeys(keys))
    rows = np.empty(len(distinct), np.int64)
    first_rows(np.array([distinct.index(key) for key in keys], np.int64), rows)
    assert rows.tolist() == [keys.index(key) for key in distinct]


Row = tuple[int, int, int, int, int]


@given(st.lists(st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.integers(0, 9)), max_size=8), min_size=1, max_size=5))
def test_merge_stops_at_the_end_of_a_loaded_run(runs: list[list[Row]]) -> None:
    def place(row: Row) -> Row:
        return row[0], row[1], row[2], -row[3], row[4]

    loaded = [sorted(run, key=place) for run in runs]
    ends = np.cumsum([len(run) for run in loaded]).astype(np.int64)
    heads = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    flat = [row for run in loaded for row in run]
    columns = [np.array([row[i] for row in flat], kind) for i, kind in enumerate(("i8", "i8", "i8", "u1", "i8"))]
    columns[2] = columns[2].reshape(1, -1)  # one further key
    rows = np.empty(len(flat) + 1, np.int32)
    count = merge_loaded(heads, ends, *columns, rows)
    merged = [flat[row] for row in rows[:count]]
    assert [place(row) for row in merged] == sorted(place(row) for row in flat)[:count]
    assert not flat or any(head == end for head, end in zip(heads, ends, strict=True))
