"""A query over a checkpoint that was copied elsewhere goes on there, and looks at nothing of the old folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError
from sqlext_planner.spark.checkpoints import with_root

from sqlext import Session
from tests.sql.streams import (
    arrivals,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    write_batches,
)

STATEMENT = (
    "SELECT k, ts, sum(v) OVER w AS s FROM {} WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE "
    "BETWEEN 20s PRECEDING AND CURRENT ROW)"
)


@pytest.mark.slow
def test_a_copied_checkpoint_goes_on(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(3, 30)
    write_batches(tmp_path / "in", [rows[:15]])
    with stream_conf(spark):
        register(spark, "moved", tmp_path / "in")
        frame = session.sql(STATEMENT.format("moved"))
        first = started(frame, tmp_path / "old")
        first.awaitTermination()
        shutil.copytree(tmp_path / "old" / "checkpoint", tmp_path / "new" / "checkpoint")
        # what a query over the copy must not read: with it, a wrong path is no error
        for path in (tmp_path / "old").rglob("*_stateSchema/*/*"):
            path.write_bytes(b"")
        write_batches(tmp_path / "in", [rows[15:]], first=1)
        started(frame, tmp_path / "new").awaitTermination()
        register(spark, "moved", tmp_path / "in")
        wanted = sorted_rows(session.sql(STATEMENT.format("moved_t")))
        found = [sorted_rows(spark.read.parquet(str(tmp_path / name / "out" / "part-*"))) for name in ("old", "new")]
    drop_views(spark, "moved")
    assert sorted(found[0] + found[1], key=repr) == wanted
    metadata = list((tmp_path / "new" / "checkpoint" / "state").glob("*/_metadata/v2/[0-9]*"))
    assert metadata
    for file in metadata:
        assert str(tmp_path / "new") in file.read_text()
        assert str(tmp_path / "old") not in file.read_text()


def test_a_checkpoint_of_a_newer_spark(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses files of a version that it does not know; our error says so in one sentence."""
    rows = arrivals(3, 30)
    write_batches(tmp_path / "in", [rows])
    with stream_conf(spark):
        register(spark, "newer", tmp_path / "in")
        frame = session.sql(STATEMENT.format("newer"))
        started(frame, tmp_path).awaitTermination()
        offsets = tmp_path / "checkpoint" / "offsets" / "0"
        version, rest = offsets.read_text().split("\n", 1)
        assert version == "v1"
        offsets.write_text(f"v99\n{rest}")
        offsets.with_name(".0.crc").unlink(missing_ok=True)
        for later in [path for path in offsets.parent.iterdir() if path != offsets]:
            later.unlink()
        with pytest.raises(
            SqlExtError, match=r"written by a newer Spark than \S+: its files have version 99"
        ) as caught:
            started(frame, tmp_path).awaitTermination()
    drop_views(spark, "newer")
    assert caught.value.condition == "checkpoint-mismatch"
    assert isinstance(caught.value, StreamingQueryException)


def _metadata(*paths: str) -> str:
    store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": list(paths)}
    return f"v2\n{json.dumps({'operatorInfo': {'operatorId': 1}, 'stateStoreInfo': [store]}, separators=(',', ':'))}"


@pytest.mark.parametrize(
    ("before", "root", "after"),
    [
        ("file:/a/state/1/_stateSchema/default/0_x", "file:/b", "file:/b/state/1/_stateSchema/default/0_x"),
        ("file:///a/state/1/_stateSchema/default/0_x", "file:/a", None),
        ("s3a://one/a/state/1/_stateSchema/default/0_x", "s3a://two/a", "s3a://two/a/state/1/_stateSchema/default/0_x"),
        ("s3a://one/a/state/1/_stateSchema/default/0_x", "s3a://one/a", None),
        ("file:/a/state/1/_stateSchema/x/state/1/_stateSchema/default/0_x", "file:/a/state/1/_stateSchema/x", None),
        ("file:/a/elsewhere", "file:/b", None),
    ],
)
def test_paths_below_the_checkpoint_are_written_anew(before: str, root: str, after: str | None) -> None:
    assert with_root(_metadata(before), root, "1") == (None if after is None else _metadata(after))


@pytest.mark.parametrize("text", ["", "v2\n", "v2\n[1]", "v2\n{}", 'v2\n{"stateStoreInfo":[{"storeName":"x"}]}'])
def test_other_metadata_stay(text: str) -> None:
    assert with_root(text, "file:/b", "1") is None
