"""The kernels of the multi-way join alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.umjoin.kernels.steps import SATURATED, plus, seek, times
from sqlext_operators.umjoin.kernels.tries import count_nodes, fill_nodes, fill_products, order_by
from sqlext_operators.umjoin.tries import class_codes

from tests.operators.umjoin.umjoin_data import TYPES
from tests.properties import examples

NUMBERS = st.one_of(st.integers(0, 5), st.integers(0, SATURATED), st.sampled_from([1 << 31, (1 << 31) - 1, 1 << 32]))


@given(st.lists(st.integers(0, 60), max_size=40).map(sorted), st.integers(0, 40), st.integers(0, 61))
@examples(500)
def test_seek_is_a_binary_search(values: list[int], low: int, target: int) -> None:
    array = np.array(values, np.int32)
    low = min(low, len(values))
    assert seek(array, low, len(values), target) == low + int(np.searchsorted(array[low:], target))


@given(NUMBERS, NUMBERS)
@examples(500)
def test_sums_and_products_stop_at_the_largest_number(a: int, b: int) -> None:
    assert times(a, b) == min(a * b, SATURATED)
    assert plus(a, b) == min(a + b, SATURATED)


@given(st.integers(1, 3), st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=30))
@examples(300)
def test_tries_hold_the_sorted_rows(levels: int, tuples: list[tuple[int, int, int]]) -> None:
    codes = np.array(tuples, np.int32).reshape(-1, 3).T[:levels].copy()
    rows = np.arange(len(tuples), dtype=np.int32)
    other = np.empty_like(rows)
    for level in reversed(range(levels)):
        if order_by(codes[level], 4, rows, other):
            rows, other = other, rows
    expected = sorted(range(len(tuples)), key=lambda row: tuples[row][:levels])
    assert rows.tolist() == expected
    counts = np.zeros(levels, np.int64)
    count_nodes(codes, rows, counts)
    bases = np.concatenate(([10], 10 + np.cumsum(counts + 1)))
    bases[-1] = 1000
    values, starts = (np.full(10 + int((counts + 1).sum()), -7, np.int32) for _ in range(2))
    fill_nodes(codes, rows, bases, values, starts)

    def leaves(level: int, low: int, high: int) -> list[tuple[tuple[int, ...], int, int]]:
        if level == levels:
            return [((), low, high)]
        found = []
        for node in range(low, high):
            for rest, first, last in leaves(level + 1, int(starts[node]), int(starts[node + 1])):
                found.append(((int(values[node]), *rest), first, last))
        return found

    groups = [
        (key, list(own)) for key, own in itertools.groupby(range(len(tuples)), lambda i: tuples[expected[i]][:levels])
    ]
    wanted = [(key, 1000 + own[0], 1001 + own[-1]) for key, own in groups]
    assert leaves(0, 10, 10 + int(counts[0])) == wanted
    assert (values[:10] == -7).all()


@given(
    st.integers(0, 3).flatmap(
        lambda columns: st.lists(
            st.tuples(
                st.integers(1, 4),
                st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=columns, max_size=columns),
            ),
            max_size=5,
        ).map(lambda found: (columns, found))
    ),
    st.integers(1, 9),
    st.booleans(),
)
@examples(400)
def test_products_of_slices(
    drawn: tuple[int, list[tuple[int, list[tuple[int, int]]]]], capacity: int, repeated: bool
) -> None:
    columns, bindings = drawn
    rows = np.arange(100, 120, dtype=np.int32)
    low = np.array([[own[c][0] for _, own in bindings] for c in range(columns)], np.int32).reshape(
        columns, len(bindings)
    )
    high = np.array([[sum(own[c]) for _, own in bindings] for c in range(columns)], np.int32).reshape(
        columns, len(bindings)
    )
    counts = np.array([count for count, _ in bindings], np.int64)
    expected: list[tuple[int, ...]] = []
    for count, own in bindings:
        slices = [[100 + place for place in range(first, first + size)] or [-1] for first, size in own]
        for found in itertools.product(*slices):
            expected += [(*found, count)] * (count if repeated else 1)
    out, out_counts = np.empty((columns, capacity), np.int32), np.empty(capacity, np.int64)
    state = np.zeros(columns + 2, np.int64)
    made: list[Any] = []
    while state[0] < len(bindings):
        found = fill_products(low, high, counts, len(bindings), repeated, rows, state, out, out_counts)
        assert 0 < found <= capacity
        made += zip(*out[:, :found].tolist(), out_counts[:found].tolist(), strict=True)
    assert sorted(made) == sorted(expected)


@given(st.sampled_from(sorted(TYPES)), st.data())
@examples(300)
def test_equal_values_have_one_code(name: str, data: st.DataObject) -> None:
    kind, values = TYPES[name]
    value = st.one_of(st.none(), *[st.sampled_from(values)] * 4)
    columns = [pa.array(data.draw(st.lists(value, max_size=8)), kind) for _ in range(3)]
    required = data.draw(st.sampled_from([[0], [0, 1], [2, 0, 1]]))
    found = class_codes(dict(enumerate(columns)), required)

    def key(item: Any) -> Any:
        return "NaN" if item != item else item

    present = set.intersection(*({key(x) for x in columns[place].to_pylist() if x is not None} for place in required))
    assert found.count == len(present)
    code_of: dict[Any, int] = {}
    for place, column in enumerate(columns):
        for item, code in zip(column.to_pylist(), found.codes[place].tolist(), strict=True):
            if item is None or key(item) not in present:
                assert code == -1
            else:
                assert code_of.setdefault(key(item), code) == code
    assert sorted(code_of.values()) == list(range(found.count))
