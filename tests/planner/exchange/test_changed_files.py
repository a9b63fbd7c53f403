"""Files that change between planning and running: an error that says so, never some of the rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlext_operators.exchange.parquet_scan import ParquetScan, ParquetTask, read_task
from sqlext_operators.exchange.source_files import SourceChangedError, opened
from sqlext_planner.errors import ConfigurationError, SqlExtError

from sqlext import Session

pytestmark = pytest.mark.tidied

ROWS = 1_000


def table(rows: int = ROWS, add: int = 0) -> pa.Table:
    numbers = pa.array([(i * 37 + add) % rows for i in range(rows)], pa.int64())
    ends = pa.array([(i * 37 + add) % rows + 1 for i in range(rows)], pa.int64())
    return pa.table({"id": pa.array(range(rows), pa.int64()), "k": numbers, "ts": numbers, "te": ends, "v": numbers})


def write(path: Path, rows: int = ROWS, add: int = 0, group: int = 100) -> None:
    pq.write_table(table(rows, add), path, row_group_size=group, compression="none", use_dictionary=False)


def other_row_groups(path: Path) -> None:
    write(path, group=1_000)


def replaced(path: Path) -> None:
    new = path.with_suffix(".new")
    write(new, rows=ROWS + 100, group=100)
    new.rename(path)


def same_size_and_time(path: Path) -> None:
    before = path.stat()
    write(path, add=1)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def touched(path: Path) -> None:
    os.utime(path, (1, 1))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "other row groups": (other_row_groups, "has changed since"),
    "replaced": (replaced, "has changed since"),
    "same size and time": (same_size_and_time, "has changed since"),
    "only touched": (touched, "has changed since"),
    "cut": (cut, "has changed since"),
    "empty": (lambda path: path.write_bytes(b""), "has changed since"),
    "vanished": (lambda path: path.unlink(), "no longer exists"),
}


@pytest.fixture
def task(tmp_path: Path) -> ParquetTask:
    write(tmp_path / "t.parquet")
    with opened(str(tmp_path / "t.parquet")) as (_, state):
        return ParquetTask(str(tmp_path / "t.parquet"), state, (0, 3, 9))


def ids(task: ParquetTask) -> list[int]:
    scan = ParquetScan((task,), ("id",), (pa.int64(),))
    return [value for batch in read_task(scan, task) for value in batch.column(0).to_pylist()]


def test_a_task_reads_the_file_that_was_planned(task: ParquetTask) -> None:
    assert ids(task) == [*range(100), *range(300, 400), *range(900, 1000)]


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_task_refuses_any_other_file(task: ParquetTask, change: str) -> None:
    act, message = CHANGES[change]
    act(Path(task.path))
    with pytest.raises(SourceChangedError, match=message) as caught:
        ids(task)
    assert task.path in caught.value.message
    assert "run the statement again" in caught.value.help


def test_a_copy_that_keeps_size_and_time_is_the_same_file(task: ParquetTask, tmp_path: Path) -> None:
    shutil.copy2(task.path, tmp_path / "copy")
    (tmp_path / "copy").rename(task.path)
    assert len(ids(task)) == 300


def test_a_file_overwritten_while_it_is_read_is_told(task: ParquetTask) -> None:
    scan = ParquetScan((task,), ("id",), (pa.int64(),))
    batches = read_task(scan, task)
    next(batches)
    os.utime(task.path, (1, 1))
    with pytest.raises(SourceChangedError, match="has changed"):
        list(batches)


def test_a_file_put_in_the_place_of_an_open_one_does_no_harm(task: ParquetTask) -> None:
    scan = ParquetScan((task,), ("id",), (pa.int64(),))
    batches = read_task(scan, task)
    first = next(batches).column(0).to_pylist()
    replaced(Path(task.path))
    assert len(first) + sum(batch.num_rows for batch in batches) == 300


OVERLAP = "a.ts < b.te AND b.ts < a.te"
READERS = {
    "window union": (
        "SELECT id, sum(v) OVER w FROM b WINDOW w AS "
        "(UNION a PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
        {},
    ),
    "LAST JOIN": (
        "SELECT b.id, a.v FROM b LAST JOIN a ORDER BY a.ts ON a.k = b.k",
        {"sqlext.lastJoin.strategy": "exchange"},
    ),
    "interval join": (
        f"SELECT /*+ SWEEP */ a.id, b.id FROM a JOIN b ON {OVERLAP}",
        {"sqlext.intervalJoin.strategy": "exchange"},
    ),
    "interval join, both sides in a task": (
        f"SELECT /*+ SWEEP */ a.id, b.id FROM a JOIN b ON {OVERLAP}",
        {"sqlext.intervalJoin.strategy": "broadcast"},
    ),
    "multi-way join in a task": (
        "SELECT /*+ UMJOIN(a, b, c) */ a.id FROM a JOIN b ON a.k = b.k JOIN b c ON b.id = c.id",
        {"sqlext.umjoin.strategy": "operator"},
    ),
    "group aggregate": ("SELECT k, distinct_count(v) FROM a GROUP BY k", {}),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("reader", list(READERS))
def test_every_reader_tells_between_two_actions(spark: SparkSession, tmp_path: Path, reader: str) -> None:
    sql, config = READERS[reader]
    session = Session(spark, config=config)
    for name in "ab":
        write(tmp_path / f"{name}.parquet")
        session.register(name, tmp_path / f"{name}.parquet")
    frame = session.sql(sql)
    count = frame.count()
    assert count > 0
    other_row_groups(tmp_path / "a.parquet")
    with pytest.raises(
        (PySparkException, SqlExtError), match=r"a\.parquet' has changed since the statement was planned"
    ):
        frame.collect()
    assert session.sql(sql).count() == count
    (tmp_path / "a.parquet").unlink()
    with pytest.raises((PySparkException, SqlExtError), match=r"a\.parquet'? (has changed|no longer exists)"):
        frame.collect()


def test_a_file_that_changes_while_a_statement_is_planned(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads files too: those of a side that it broadcasts."""
    from sqlext_planner.interval_join import execution as interval_join_execution

    session = Session(spark, config={"sqlext.intervalJoin.strategy": "broadcast"})
    for name in "ab":
        write(tmp_path / f"{name}.parquet")
        session.register(name, tmp_path / f"{name}.parquet")
    real = interval_join_execution._collected

    def changed(*args: object) -> bytes:
        for name in "ab":
            other_row_groups(tmp_path / f"{name}.parquet")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(interval_join_execution, "_READING_TASKS", 0)
    monkeypatch.setattr(interval_join_execution, "_collected", changed)
    with pytest.raises(ConfigurationError, match="has changed since") as caught:
        session.sql("SELECT a.id, b.id FROM a JOIN b ON PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)")
    assert "run the statement again" in str(caught.value.help)
