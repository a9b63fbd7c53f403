"""Results as a stream: order, errors, an early end, and that the reader's process holds little of them."""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.results.text import FRAME_BYTES
from sqlext_planner.spark import results
from sqlext_planner.spark.results import MOST_WAITING, text_stream, write_one_parquet

from tests.spark_versions.older import TASK_ERRORS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("most_waiting", [0, MOST_WAITING])
def test_rows_come_in_order_from_all_partitions(spark: SparkSession, most_waiting: int) -> None:
    rows = spark.sql("SELECT id, id AS id, 'ä' AS s FROM range(0, 30000, 1, 7) WHERE id < 9000 OR id > 25000")
    with text_stream(rows, "csv", most_waiting) as pieces:
        written = b"".join(pieces).decode()
    numbers = [number for number in range(30_000) if number < 9000 or number > 25_000]
    assert written == "".join(f"{number},{number},ä\n" for number in numbers)


def test_sorted_rows_stay_sorted(spark: SparkSession) -> None:
    with text_stream(spark.range(0, 20_000, 1, 5).orderBy("id", ascending=False), "lines") as pieces:
        written = b"".join(pieces).decode()
    assert written == "".join(f'{{"id": {number}}}\n' for number in reversed(range(20_000)))


@pytest.mark.parametrize("sql", ["SELECT 1 AS id", "SELECT count(*) AS id FROM range(9)", "SHOW TABLES LIKE 'none'"])
def test_small_results_need_no_worker(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.setattr(results, "_Receiver", None)
    rows = spark.sql(sql)
    with text_stream(rows, "csv") as pieces:
        assert b"".join(pieces).decode() == "".join(f"{row.id}\n" for row in rows.collect())


def test_an_endless_result_ends_with_its_reader(spark: SparkSession) -> None:
    """The first rows are there while the tasks run, the reader holds no more than a few frames, and leaving the block
    cancels the job."""
    tracker = spark.sparkContext.statusTracker()
    before = threading.active_count()
    tracemalloc.start()
    with text_stream(spark.range(0, 1 << 50, 1, 2), "csv") as pieces:
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > 20 * FRAME_BYTES:
                break
        assert tracker.getActiveStageIds()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * FRAME_BYTES
    deadline = time.monotonic() + 30
    while tracker.getActiveStageIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert tracker.getActiveStageIds() == []
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_an_error_in_a_task_is_raised(spark: SparkSession) -> None:
    rows = spark.sql("SELECT if(id = 19000, raise_error('stop here'), id) AS x FROM range(0, 20000, 1, 2)")
    with text_stream(rows, "csv") as pieces, pytest.raises(TASK_ERRORS, match="stop here"):
        list(pieces)


def test_strangers_are_turned_away(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without the token adds no rows."""
    task, strangers = results._task, list[socket.socket]()

    def with_stranger(frame: Any, layout: Any, address: tuple[str, int], token: bytes) -> Any:
        strangers.append(socket.create_connection(address))
        strangers[0].sendall(b"x" * len(token) + bytes(4) + b"\0\0\0\5evil\n" + bytes(4))
        return task(frame, layout, address, token)

    monkeypatch.setattr(results, "_task", with_stranger)
    with text_stream(spark.range(0, 10_001, 1, 1), "csv") as pieces:
        assert b"".join(pieces).decode() == "".join(f"{number}\n" for number in range(10_001))
    strangers[0].close()


def test_one_parquet_file_is_what_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id, if(id % 10 = 0, double('nan'), id / 3D) AS x, interval '1' day * id AS d, timestamp_micros(id) AS t"
    nan_rows = spark.sql(f"SELECT {columns} FROM range(0, 3000, 1, 3)")
    folder = tmp_path / "odd name %20"
    folder.mkdir()
    path = write_one_parquet(nan_rows, folder)
    read = spark.read.parquet(str(path))
    assert read.dtypes == nan_rows.dtypes
    assert [row.id for row in read.collect()] == list(range(3000))
    assert read.where("x > 1e300").count() == 300  # NaN is the largest number: no statistics may hide it
    assert pq.ParquetFile(path).metadata.num_row_groups > 1
    assert path.parent == folder
