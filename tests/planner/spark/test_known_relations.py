"""Others than Spark read files only where each part of a relation is one that is known (KNOWN_RELATIONS)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from sqlext_planner.exchange.arrow_scan import plain_files
from sqlext_planner.spark import scans
from sqlext_planner.spark.plans import optimized_plan
from sqlext_planner.spark.scans import NotPlainError, known_files, plain_parquet_scan, why_only_spark

from sqlext import Session

pytestmark = pytest.mark.tidied

WINDOW = """SELECT id, sum(v) OVER w AS total FROM {0}
WINDOW w AS (UNION {0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"""


class Lake:
    """An object of the JVM with parts of another make, as a package's own classes are: `kind` is its class."""

    def __init__(self, item: Any, kind: str | None = None, **parts: Any) -> None:
        self._item, self._kind, self._parts = item, kind, parts

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return self._item.getClass() if self._kind is None else self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return str(self._kind)

    def getSimpleName(self) -> str:  # noqa: N802 - Java's name
        return str(self._kind).rsplit(".", 1)[-1]

    def __getattr__(self, name: str) -> Any:
        return (lambda: self._parts[name]) if name in self._parts else getattr(self._item, name)


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "files")
    rows = spark.range(20).selectExpr("id", "id % 3 AS k", "timestamp_seconds(id) AS ts", "id * 2 AS v")
    rows.repartition(2).write.parquet(path)
    return path


def _leaf(frame: DataFrame) -> Any:
    plan = optimized_plan(frame)
    assert plan is not None
    return plan.collectLeaves().head()


def _with_format(leaf: Any) -> Lake:
    relation = leaf.relation()
    return Lake(leaf, relation=Lake(relation, fileFormat=Lake(relation.fileFormat(), "io.lake.LakeParquetFileFormat")))


def _with_index(leaf: Any) -> Lake:
    relation = leaf.relation()
    return Lake(leaf, relation=Lake(relation, location=Lake(relation.location(), "io.lake.LogFileIndex")))


class Some:
    """Scala's Some."""

    def __init__(self, value: Any) -> None:
        self.get = lambda: value

    def isEmpty(self) -> bool:  # noqa: N802 - Scala's name
        return False


def _with_provider(leaf: Any) -> Lake:
    return Lake(leaf, catalogTable=Some(Lake(None, provider=Some("Lake"))))


PARTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "format": (_with_format, "io.lake.LakeParquetFileFormat may give other rows than those of the files"),
    "index": (_with_index, "io.lake.LogFileIndex may list files that hold other rows than the table"),
    "provider": (_with_provider, "a table of lake may have other rows than its files"),
    "relation": (
        lambda leaf: Lake(leaf, relation=Lake(leaf.relation(), "io.lake.HadoopFsRelation")),
        "io.lake.HadoopFsRelation is not known to be files that hold exactly its rows",
    ),
    "leaf": (
        lambda leaf: Lake(leaf, "io.lake.LakeRelation"),
        "LakeRelation is not known to be files that hold exactly its rows",
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_relation_with_one_unknown_part_is_sparks(spark: SparkSession, parquet: str, part: str) -> None:
    leaf = _leaf(spark.read.parquet(parquet))
    assert known_files(leaf) is not None
    changed, sentence = PARTS[part]
    with pytest.raises(NotPlainError) as refused:
        known_files(changed(leaf))
    assert str(refused.value) == sentence


def test_an_option_that_nobody_knows_leaves_the_files_to_spark(spark: SparkSession, parquet: str) -> None:
    frame = spark.read.option("versionAsOf", "3").parquet(parquet)
    assert plain_files(frame) is None
    assert why_only_spark(frame) == "option versionasof may change how the files are read"


def test_a_setting_by_which_columns_have_ids_matters_to_schemas_that_have_some(
    spark: SparkSession, parquet: str, tmp_path: Path
) -> None:
    """Delta Lake turns it on for a whole session."""
    before = StructType([StructField("id", LongType(), True, {"parquet.field.id": 1})])
    path = str(tmp_path / "with ids")
    spark.createDataFrame([(5,)], before).write.parquet(path)
    after = StructType([StructField("renamed", LongType(), True, {"parquet.field.id": 1})])
    frame = spark.read.schema(after).parquet(path)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    assert [tuple(row) for row in frame.collect()] == [(5,)]
    reason = why_only_spark(frame)
    assert reason == "setting spark.sql.parquet.fieldId.read.enabled makes it find columns by their ids"
    assert plain_files(frame) is None
    plain = spark.read.parquet(parquet)
    assert why_only_spark(plain) is None
    assert plain_parquet_scan(plain) is not None
    assert why_only_spark(spark.read.schema("id BIGINT").parquet(path)) is None
    spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_files_that_spark_reads_by_its_second_interface_are_sparks(spark: SparkSession, parquet: str) -> None:
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    frame = spark.read.parquet(parquet)
    assert plain_parquet_scan(frame) is None
    table = "org.apache.spark.sql.execution.datasources.v2.parquet.ParquetTable"
    assert why_only_spark(frame) == f"{table} is not known to be files that hold exactly its rows"


def test_the_folder_of_a_streams_sink_is_sparks(spark: SparkSession, parquet: str, tmp_path: Path) -> None:
    """Spark lists the files that the sink's log has, which are not all that lie there."""
    stream = spark.readStream.schema(spark.read.parquet(parquet).schema).parquet(parquet)
    path = str(tmp_path / "sunk")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(path, format="parquet").awaitTermination()
    spark.read.parquet(parquet).write.mode("append").parquet(path)
    frame = spark.read.parquet(path)
    assert frame.count() == 20
    reason = why_only_spark(frame)
    assert reason is not None
    assert reason.endswith("MetadataLogFileIndex may list files that hold other rows than the table")


@pytest.fixture
def unknown_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spark's list of files is under a name that nobody knows."""
    real = scans._class

    def named(item: Any) -> str:
        return real(item).replace("org.apache.spark.sql.execution.datasources.InMemory", "io.lake.Log")

    monkeypatch.setattr(scans, "_class", named)
    return


@pytest.mark.usefixtures("unknown_index")
def test_whatever_the_setting_says_an_unknown_relation_is_sparks(
    session: Session, parquet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.spark.read.parquet(parquet).createOrReplaceTempView("lake_rows")
    statement = WINDOW.format("lake_rows")
    examined: list[object] = []
    listed = scans.local_paths
    monkeypatch.setattr(scans, "local_paths", lambda location: examined.append(location) or listed(location))
    rows = {}
    for setting in ("true", "false"):
        session.sql(f"SET sqlext.exchange.arrowScan = {setting}")
        rows[setting] = sorted(map(tuple, session.sql(statement).collect()))
    assert rows["true"] == rows["false"]
    assert len(rows["true"]) == 20
    assert examined == []


LINE = "read by: Spark, since io.lake.LogFileIndex may list files that hold other rows than the table"


@pytest.mark.usefixtures("unknown_index")
def test_explain_says_that_spark_reads_and_why(session: Session, parquet: str) -> None:
    session.spark.read.parquet(parquet).createOrReplaceTempView("lake_rows")
    assert _explained(session, WINDOW.format("lake_rows")).count(LINE) == 2


def test_explain_says_that_tasks_read_a_table(session: Session, parquet: str) -> None:
    session.spark.read.parquet(parquet).createOrReplaceTempView("known_rows")
    statement = WINDOW.format("known_rows")
    assert _explained(session, statement).count("read by: tasks, as plain Parquet: ") == 2
    session.sql("SET sqlext.exchange.arrowScan = false")
    line = "read by: Spark, since sqlext.exchange.arrowScan is false"
    assert _explained(session, statement).count(line) == 2


def _explained(session: Session, statement: str) -> str:
    return "\n".join(str(row[0]) for row in session.sql(f"EXPLAIN {statement}").collect())
