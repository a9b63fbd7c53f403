"""Rows of a deployment in memory, against a list of rows that is filtered and sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.keys import row_hashes
from sqlext_operators.serving import store as store_module
from sqlext_operators.serving.store import EVERY, KeptRows, KeptSpec, Span

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int32()), ("ts", pa.timestamp("us")), ("v", pa.int64())])
ROW = st.tuples(
    st.sampled_from(["a", "b", "", None]),
    st.sampled_from([1, 2, None]),
    st.integers(0, 30) | st.none(),
    st.integers(0, 9),
)
Row = tuple[str | None, int | None, int | None, int]


def batch(rows: list[Row]) -> pa.RecordBatch:
    """Rows as Arrow."""
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * 4
    return pa.RecordBatch.from_arrays(
        [pa.array(values, item.type) for values, item in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def listed(rows: pa.RecordBatch) -> list[Row]:
    """Arrow as rows."""
    times = rows.column("ts").cast(pa.int64())
    return list(zip(rows[0].to_pylist(), rows[1].to_pylist(), times.to_pylist(), rows[3].to_pylist(), strict=True))


def wanted(
    rows: list[Row], key: tuple[Any, Any], low: int, high: int, least: int, at: int, capped: int = 99, most: int = 0
) -> list[Row]:
    """The rows of a key in order: those between, the last `least` up to `at`, and those from `capped` on of which at
    most `most` are before `at`."""
    of_key = sorted((row for row in rows if row[:2] == key), key=lambda row: -1 if row[2] is None else row[2])
    timed = [(row, -1 if row[2] is None else row[2]) for row in of_key]
    counted = [place for place, (_, time) in enumerate(timed) if time <= at][-least:] if least else []
    before = [place for place, (_, time) in enumerate(timed) if time < at]
    last = [place for place, (_, time) in enumerate(timed) if time >= at] + before[len(before) - most :] if most else []
    counted += [place for place in last if timed[place][1] >= capped]
    return [row for place, (row, time) in enumerate(timed) if time <= high and (time >= low or place in counted)]


@pytest.mark.parametrize("mask", [0, (1 << 64) - 1])
@given(
    st.lists(st.lists(ROW, max_size=12), max_size=8),
    st.integers(0, 32),
    st.integers(-2, 12),
    st.integers(0, 4),
    st.integers(0, 32),
    st.integers(0, 4),
)
def test_what_is_found_is_what_was_added(
    mask: int, pushes: list[list[Row]], low: int, width: int, least: int, capped: int, most: int
) -> None:
    """Also where keys have the same hash."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "row_hashes", lambda *given: row_hashes(*given) & np.uint64(mask))
        check_rows(pushes, low, width, least, capped, most)


def check_rows(pushes: list[list[Row]], low: int, width: int, least: int, capped: int, most: int) -> None:
    store = KeptRows(KeptSpec(SCHEMA, ("k", "n"), "ts"))
    rows: list[Row] = []
    for place, push in enumerate(pushes):
        store.add(batch(push))
        rows += push
        if place % 2:  # reads between make runs of different sizes
            store.find(batch([("a", 1, 0, 0)]))
    assert store.rows == len(rows)
    span = Span(low, low + width, least, low + width, capped, most)
    for key in [("a", 1), ("b", None), ("", 2), (None, None), (None, 1)]:
        asked = batch([(*key, 0, 0)])
        assert listed(store.find(asked, span)) == wanted(rows, key, low, low + width, least, low + width, capped, most)
        assert listed(store.find(asked, EVERY)) == wanted(rows, key, -1, 99, 0, 0)


@given(st.lists(st.lists(ROW, max_size=12), max_size=6), st.integers(0, 32), st.integers(0, 3))
def test_what_is_forgotten_is_old(pushes: list[list[Row]], cutoff: int, newest: int) -> None:
    """Rows that are not old stay, and of the old ones with `newest` so many of each key."""
    store = KeptRows(KeptSpec(SCHEMA, ("k", "n"), "ts", newest))
    rows: list[Row] = []
    for push in pushes:
        store.add(batch(push))
        rows += push
        store.forget(cutoff, shards=64)
    for key in {row[:2] for row in rows}:
        found = listed(store.find(batch([(*key, 0, 0)])))
        every = wanted(rows, key, -1, 99, 0, 0)
        recent = [row for row in every if row[2] is not None and row[2] >= cutoff]
        old = [row for row in every if row not in recent or row[2] is None or row[2] < cutoff]
        assert found[len(found) - len(recent) :] == recent
        assert all(row in old for row in found[: len(found) - len(recent)])
        least = min(newest, len(old))
        assert found[len(found) - len(recent) - least : len(found) - len(recent)] == old[len(old) - least :]


def test_rows_without_keys_and_times_come_as_they_were_added() -> None:
    store = KeptRows(KeptSpec(SCHEMA, (), None))
    for value in range(5):
        store.add(batch([("a", 1, 9 - value, value)]))
    asked = batch([(None, None, None, 0)])
    assert [row[3] for row in listed(store.find(asked))] == [0, 1, 2, 3, 4]
    assert [row[3] for row in listed(store.find(asked, Span(0, 0, 2, 0)))] == [3, 4]


def test_old_rows_give_memory_back() -> None:
    store = KeptRows(KeptSpec(SCHEMA, ("k",), "ts"))
    for second in range(200):
        store.add(batch([(f"k{n}", n, second, n) for n in range(50)]))
        store.forget(second - 10)
    assert store.rows < 50 * 60
    assert store.nbytes < 50 * 60 * 40


@pytest.mark.parametrize("kind", [pa.decimal128(30, 2), pa.date32(), pa.float64(), pa.bool_(), pa.binary()])
def test_keys_of_any_type(kind: pa.DataType) -> None:
    values: dict[pa.DataType, list[Any]] = {pa.binary(): [b"a", b"", None], pa.bool_(): [True, False, None]}
    keys = pa.array(values.get(kind, [1, 0, None]), kind)
    rows = pa.RecordBatch.from_arrays([keys, pa.array([0, 1, 2])], names=["k", "v"])
    store = KeptRows(KeptSpec(rows.schema, ("k",), None))
    store.add(rows)
    for place in range(3):
        assert store.find(rows.slice(place, 1))["v"].to_pylist() == [place]
