"""Samples of Parquet files: rows from all over a table, also where not all row groups are read."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlext.catalog.columnar import file_sample

_ROWS, _GROUP = 20_000, 1_000
_START = datetime.datetime(2024, 5, 1)


def _times(kind: pa.DataType) -> pa.Array:
    numbers = np.arange(_ROWS, dtype=np.int64) * 10
    if pa.types.is_date32(kind):
        return pa.array((numbers // 10).astype(np.int32)).cast(kind)
    return pa.array(numbers).cast(kind)


def _written(path: Path, times: pa.Array, sizes: list[int] | None = None) -> Path:
    table = pa.table({"k": np.arange(len(times)) % 7, "ts": times})
    sizes = sizes or [_GROUP] * (len(times) // _GROUP)
    with pq.ParquetWriter(path, table.schema) as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size), row_group_size=size)
            start += size
    return path


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.int32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32()],
    ids=str,
)
def test_times_of_row_groups_that_are_not_read_have_no_gaps(tmp_path: Path, kind: pa.DataType) -> None:
    times = _times(kind)
    path = _written(tmp_path / "t.parquet", times)
    found = file_sample([path], ("k", "ts"), 1_000, 4_000, "ts")
    assert found is not None
    assert found.schema.field("ts").type == pq.read_schema(path).field("ts").type
    whole = _numbers(pq.read_table(path)["ts"])
    # The share of the sampled times up to each point is that of all times.
    points = np.quantile(whole, np.linspace(0.05, 0.95, 19))
    sampled = np.sort(_numbers(found["ts"]))
    shares = np.searchsorted(sampled, points) / len(sampled)
    assert np.abs(shares - np.linspace(0.05, 0.95, 19)).max() < 0.02
    assert sampled[0] >= whole.min()
    assert sampled[-1] <= whole.max()


def test_without_a_column_to_spread_rows_are_as_they_are(tmp_path: Path) -> None:
    path = _written(tmp_path / "t.parquet", _times(pa.int64()))
    found = file_sample([path], ("k", "ts"), 1_000, 4_000)
    assert found is not None
    sampled = _numbers(found["ts"])
    assert set(sampled // (10 * _GROUP)) == {0, 5, 10, 15}
    assert all(time // 10 % 7 == key for key, time in zip(found["k"].to_pylist(), sampled, strict=True))


def test_rows_are_spread_by_the_sizes_of_row_groups(tmp_path: Path) -> None:
    path = _written(tmp_path / "t.parquet", _times(pa.int64()), [1_000, 9_000, 5_000, 5_000])
    found = file_sample([path], ("ts",), 1_000, 1, "ts")
    assert found is not None
    shares = np.bincount(np.searchsorted([10_000, 100_000, 150_000], _numbers(found["ts"]), side="right")) / len(found)
    assert shares == pytest.approx([0.05, 0.45, 0.25, 0.25], abs=0.02)


def test_missing_statistics_and_other_types_move_nothing(tmp_path: Path) -> None:
    table = pa.table({"ts": np.arange(_ROWS), "text": [f"{n:06d}" for n in range(_ROWS)]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=_GROUP, write_statistics=False)
    for column in ("ts", "text"):
        found = file_sample([path], (column,), 1_000, 4_000, column)
        assert found is not None
        assert set(found[column].to_pylist()) <= set(table[column].to_pylist())


@given(st.data())
def test_nulls_and_extreme_times_stay_in_range(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    ends = np.iinfo(np.int64)
    value = st.none() | st.integers(-50, 50) | st.sampled_from([int(ends.min), int(ends.max)])
    times = data.draw(st.lists(value, min_size=1, max_size=40))
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    pq.write_table(pa.table({"ts": pa.array(times, pa.int64())}), path, row_group_size=data.draw(st.integers(1, 10)))
    found = file_sample([path], ("ts",), data.draw(st.integers(1, 40)), 1, "ts")
    assert found is not None
    real = [time for time in times if time is not None]
    for time in found["ts"].to_pylist():
        assert (None in times) if time is None else min(real) <= time <= max(real)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    kind = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    return column.cast(kind).cast(pa.int64()).to_numpy()
