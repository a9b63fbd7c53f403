"""Tables of a lakehouse as streams, beside streams, and as sinks: the rows are batch's, also after restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from sqlext import Session

_COLUMNS = "id bigint, k int, ts timestamp, v bigint"
STATEMENTS = {
    "window": "SELECT id, sum(v) OVER w AS s, count(v) OVER w AS n FROM {a} WINDOW w AS "
    "(UNION {b} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)",
    "LAST JOIN": "SELECT a.id, p.id AS other, p.v FROM {a} AS a LAST JOIN {prices} AS p ORDER BY p.ts "
    "ON a.k = p.k AND p.ts <= a.ts",
    "interval join": "SELECT a.id, b.id AS other FROM {a} AS a JOIN {b} AS b "
    "ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts",
}
SOURCES = {"delta": "shop", "iceberg": "ice.shop"}


def rows(first: int, last: int, half: str = "0") -> str:
    """Rows, a second of event time apart, those of `b` half a second later."""
    return (
        f"SELECT id, CAST(id % 3 AS INT) AS k, timestamp_seconds(1700000000 + id + {half}) AS ts, id * 7 % 11 AS v "
        f"FROM range({first}, {last})"
    )


@pytest.fixture(params=SOURCES)
def kind(request: pytest.FixtureRequest, lake: SparkSession) -> Iterator[str]:
    """Two tables that grow, and one beside them with deleted rows."""
    name = str(request.param)
    for table, half in (("grows_a", "0"), ("grows_b", "0.5"), ("prices", "0.25")):
        lake.sql(f"CREATE TABLE {SOURCES[name]}.{table} USING {name} AS {rows(0, 40, half)}")
    lake.sql(f"DELETE FROM {SOURCES[name]}.prices WHERE id % 4 = 1")
    yield name
    for table in ("grows_a", "grows_b", "prices"):
        lake.sql(f"DROP TABLE {SOURCES[name]}.{table}")
    for view in ("stream_a", "stream_b"):
        lake.catalog.dropTempView(view)


def stream(spark: SparkSession, kind: str, table: str) -> DataFrame:
    reader = spark.readStream.format(kind)
    name = f"{SOURCES[kind]}.{table}"
    return (reader.load(name) if kind == "iceberg" else reader.table(name)).withWatermark("ts", "2 seconds")


def run(session: Session, kind: str, name: str, folder: Path) -> None:
    """All that is in the tables, into a Delta table."""
    for letter in "ab":
        stream(session.spark, kind, f"grows_{letter}").createOrReplaceTempView(f"stream_{letter}")
    text = STATEMENTS[name].format(a="stream_a", b="stream_b", prices=f"{SOURCES[kind]}.prices")
    writer = session.sql(text).writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_table_that_grows_between_two_starts(
    session: Session, lake: SparkSession, tmp_path: Path, kind: str, name: str
) -> None:
    run(session, kind, name, tmp_path)
    for letter, half in (("a", "0"), ("b", "0.5")):
        lake.sql(f"INSERT INTO {SOURCES[kind]}.grows_{letter} {rows(40, 90, half)}")
    run(session, kind, name, tmp_path)
    tables = {
        key: f"{SOURCES[kind]}.{table}" for key, table in (("a", "grows_a"), ("b", "grows_b"), ("prices", "prices"))
    }
    wanted = session.sql(STATEMENTS[name].format(**tables)).where("id < 80").collect()
    found = lake.read.format("delta").load(str(tmp_path / "out")).where("id < 80").collect()
    assert sorted(map(tuple, found), key=repr) == sorted(map(tuple, wanted), key=repr)
    assert len(found) >= 70


def test_a_table_whose_schema_changes_in_the_middle(session: Session, lake: SparkSession, tmp_path: Path) -> None:
    """What Delta says; and the query goes on, with its state, when it is started again."""
    lake.sql(f"CREATE TABLE shop.evolves USING delta AS {rows(0, 40)}")
    try:
        query = _window(session, "evolves", tmp_path).start(str(tmp_path / "out"))
        query.processAllAvailable()
        lake.sql("ALTER TABLE shop.evolves ADD COLUMN note STRING")
        lake.sql(f"INSERT INTO shop.evolves SELECT *, 'new' FROM ({rows(40, 90)})")
        with pytest.raises(Exception, match=r"(?i)schema"):
            query.processAllAvailable()
        _window_over(session, "evolves", tmp_path)
        found = lake.read.format("delta").load(str(tmp_path / "out")).where("id < 80").collect()
        assert sorted(row.id for row in found) == list(range(80))
    finally:
        lake.sql("DROP TABLE shop.evolves")


def test_a_table_that_was_vacuumed_while_the_stream_stood_still(
    session: Session, lake: SparkSession, tmp_path: Path
) -> None:
    """Its files of before are gone: Delta's error, and the checkpoint serves again when they are back in new ones."""
    lake.sql(f"CREATE TABLE shop.vacuumed USING delta AS {rows(0, 40)}")
    lake.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        _window_over(session, "vacuumed", tmp_path)
        before = lake.read.format("delta").load(str(tmp_path / "out")).count()
        lake.sql(f"INSERT INTO shop.vacuumed {rows(40, 60)}")
        lake.sql("OPTIMIZE shop.vacuumed")
        lake.sql("VACUUM shop.vacuumed RETAIN 0 HOURS")
        with pytest.raises(Exception, match=r"(?i)does not exist|not found|cannot be found|no longer"):
            _window_over(session, "vacuumed", tmp_path)
        assert lake.read.format("delta").load(str(tmp_path / "out")).count() == before
        lake.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        lake.sql(f"INSERT INTO shop.vacuumed {rows(60, 90)}")
        _window_over(session, "vacuumed", tmp_path)
        assert lake.read.format("delta").load(str(tmp_path / "out")).where("id BETWEEN 60 AND 79").count() == 20
    finally:
        lake.conf.unset("spark.sql.files.ignoreMissingFiles")
        lake.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
        lake.sql("DROP TABLE shop.vacuumed")


def _window_over(session: Session, table: str, folder: Path) -> None:
    """All that is in the table, through a window."""
    _window(session, table, folder).trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    session.spark.catalog.dropTempView("stream_a")


def _window(session: Session, table: str, folder: Path) -> DataStreamWriter:
    """A window over a table that grows, into a Delta table."""
    stream(session.spark, "delta", table).createOrReplaceTempView("stream_a")
    text = (
        "SELECT id, sum(v) OVER w AS s FROM stream_a WINDOW w AS "
        "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    )
    return session.sql(text).writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoint"))
