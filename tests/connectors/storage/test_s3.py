"""Tables, results and checkpoints in object storage: what is tested of files of this machine, behind `s3a:`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.engines import Engines
from benchmarks.window import WindowOptions, window_suite
from sqlext import Session
from sqlext.catalog import read_files, tables_at
from sqlext.catalog.locations import written_at
from sqlext.catalog.options import DataFiles
from tests.benchmarks.runs import agreed
from tests.catalog.test_storage import STATEMENTS, check_scans
from tests.cli.test_destinations import written
from tests.connectors.storage.conftest import KEY, SECRET, s3_settings
from tests.connectors.storage.server import Storage
from tests.sql.streams import arrivals, register, sorted_rows, write_batches

WINDOW = """SELECT v, day, count(v) OVER w AS n FROM {views}
    WINDOW w AS (UNION {orders} PARTITION BY day ORDER BY v ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW)"""


@pytest.fixture
def session(spark: SparkSession) -> Session:
    return Session(spark)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables `days` (Parquet, by day), `lines` (JSON), `rows` (CSV)."""
    for day in ("2024-01-01", "2024-01-02", "2025-01-01"):
        (tmp_path / "data" / "days" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "data" / "days" / f"day={day}" / "part.parquet")
    (tmp_path / "data" / "lines.json").write_text('{"a": 1, "b": {"c": [1.5]}}\n{"a": 2}\n', encoding="utf-8")
    (tmp_path / "data" / "rows.csv").write_text("x,y\n1,2020-01-02\n", encoding="utf-8")
    (tmp_path / "data" / "_hidden.csv").write_text("x", encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def stored(server: Storage, folder: Path) -> str:
    """The same tables in a folder of a bucket."""
    place = f"tables/{uuid4().hex}"
    for file in folder.rglob("*.*"):
        if file.is_file():
            server.put(f"{place}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return f"s3a://{place}"


@pytest.fixture
def views(session: Session) -> Iterator[list[str]]:
    """Names of views that go when the test ends."""
    names: list[str] = []
    yield names
    for name in names:
        session.spark.catalog.dropTempView(name)


def test_tables_of_a_folder(session: Session, stored: str) -> None:
    tables = tables_at(stored, lambda: session.spark)
    assert tables == {
        name: DataFiles(f"{stored}/{file}")
        for name, file in {"days": "days", "lines": "lines.json", "rows": "rows.csv"}.items()
    }
    for path, columns in (
        (tables["days"].path, [("v", "bigint"), ("day", "date")]),
        (tables["rows"].path, [("x", "int"), ("y", "date")]),
        (f"{stored}/days/day=2024-*", [("v", "bigint")]),
    ):
        schema = read_files(session.spark, path).schema
        assert [(field.name, field.dataType.simpleString()) for field in schema] == columns
    with pytest.raises(ConfigurationError, match=r"both Parquet and CSV and JSON"):
        read_files(session.spark, stored)
    with pytest.raises(ConfigurationError, match=r"nothing.parquet' does not exist"):
        read_files(session.spark, f"{stored}/nothing.parquet")


@pytest.mark.parametrize("setting", ["auto", "true"])
def test_a_statement_gives_the_rows_of_local_files_and_spark_reads(
    session: Session, folder: Path, stored: str, views: list[str], setting: str
) -> None:
    found = {}
    session.sql(f"SET sqlext.exchange.arrowScan = {setting}")
    for place, root in (("here", str(folder)), ("there", stored)):
        names = [f"s3_{place}_views", f"s3_{place}_orders"]
        views += names
        session.register(names[0], f"{root}/days")
        session.register(names[1], f"{root}/days/day=2024-*")
        if place == "there":  # a pattern of a remote folder leaves the partition out
            session.register(names[1], f"{root}/days/day=2024-01-0[12]")
        statement = WINDOW.format(views=names[0], orders=f"(SELECT v, date'2024-01-01' AS day FROM {names[1]})")
        found[place] = sorted(map(tuple, session.sql(statement).collect()))
        told = "\n".join(str(row[0]) for row in session.sql(f"EXPLAIN {statement}").collect())
        reason = "read by: Spark, since it alone has the file system and the credentials of 's3a:'"
        assert (reason in told) is (place == "there")
        assert KEY not in told
        assert SECRET not in told
    session.sql("SET sqlext.exchange.arrowScan = auto")
    assert found["here"] == found["there"]
    assert len(found["here"]) == 6


def test_names_with_the_signs_of_patterns(session: Session, server: Storage, folder: Path) -> None:
    """As in test_storage.py, but for those signs that Hadoop takes for a pattern in any URI; this server does not find
    a folder with `%`."""
    content = (folder / "days" / "day=2024-01-01" / "part.parquet").read_bytes()
    place = f"tables/{uuid4().hex} #&+=/f %41.parquet"
    server.put(place, content)
    for path in (f"s3a://{place}", f"s3a://{place.rpartition('/')[0]}"):
        assert sorted(row.v for row in read_files(session.spark, path).collect()) == [1, 2]


def test_files_that_cannot_be_read(session: Session, server: Storage) -> None:
    place = f"tables/{uuid4().hex}"
    for name, content, message in (
        ("a.avro", b"Obj\x01", "is Avro, and Spark's package for it is missing"),
        ("b.json", b'{"a": 1}\n{"a":\n', "holds a line that is not one JSON object"),
        ("c.orc", b"no ORC", "cannot be read"),
        ("d.parquet", b"no Parquet", "cannot be read|is not a Parquet file"),
    ):
        server.put(f"{place}/{name}", content)
        with pytest.raises(ConfigurationError, match=message) as caught:
            read_files(session.spark, f"s3a://{place}/{name}")
        assert caught.value.help
        assert SECRET not in f"{caught.value}{caught.value.help}"


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_conditions_and_columns_reach_sparks_scan(
    spark: SparkSession, server: Storage, tmp_path: Path, views: list[str], name: str
) -> None:
    session = Session(spark, config={"sqlext.intervalJoin.strategy": "exchange"})
    table = pa.table({"k": [1, 1, 2], "v": [1, 2, 9], "e": [3, 4, 9], "unread": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "one.parquet")
    place = f"tables/{uuid4().hex}"
    server.put(f"{place}/p=1/one.parquet", (tmp_path / "one.parquet").read_bytes())
    server.put(f"{place}/p=2/one.parquet", (tmp_path / "one.parquet").read_bytes())
    views.append("s3_one")
    session.register("s3_one", f"s3a://{place}")
    check_scans(session, STATEMENTS[name].format(a="s3_one", b="s3_one"), "parquet")


def test_registered_again_after_a_restart(session: Session, stored: str, views: list[str]) -> None:
    views.append("s3_days")
    session.register("s3_days", f"{stored}/days")
    session.spark.catalog.dropTempView("s3_days")
    session._files.register_again(session.spark)
    assert session.sql("SELECT count(*) FROM s3_days WHERE day < '2024-02-01'").collect()[0][0] == 4


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_a_result_is_one_object(session: Session, stored: str, tmp_path: Path, suffix: str) -> None:
    frame = session.spark.range(1000).selectExpr("id", "string(id) AS s").coalesce(1)
    uri = f"{stored}/out/result{suffix}"
    written(frame, written_at(uri))
    written(frame.limit(10), written_at(uri))
    kind = suffix.removeprefix(".")
    reader = session.spark.read.option("header", True).option("multiLine", True)
    assert reader.format(kind).load(uri).count() == 10
    assert reader.format(kind).load(f"{stored}/out").count() == 10  # and nothing else is there


def test_the_command_line(session: Session, server: Storage, stored: str) -> None:
    """The whole of it in a process of its own, with these settings alone."""
    settings = [word for key, value in s3_settings(server).items() for word in ("--conf", f"{key}={value}")]
    out = f"{stored}/out/n.csv"
    statement = "SELECT day, count(*) AS n FROM days GROUP BY day ORDER BY day"
    command = [sys.executable, "-m", "sqlext", "run", "--data", stored, "-e", statement, "-o", out, *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [row.n for row in session.spark.read.option("header", True).csv(out).collect()] == ["2", "2", "2"]
    assert SECRET not in done.stdout + done.stderr


def test_a_stream_keeps_its_checkpoint_and_state_there(
    session: Session, stored: str, tmp_path: Path, views: list[str]
) -> None:
    """Started, stopped and started again: the rows are those of batch."""
    views += ["s3_a", "s3_a_t", "s3_b", "s3_b_t"]
    parts = {}
    for seed, name in enumerate(("s3_a", "s3_b")):
        given = arrivals(seed, 200)
        parts[name] = [given[place : place + 40] for place in range(0, len(given), 40)]
    statement = (
        "SELECT k, ts, v, sum(v) OVER w AS s, count(v) OVER w AS n FROM {0} WINDOW w AS "
        "(UNION {1} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    )
    for chosen in (slice(0, 3), slice(3, None)):
        for name, batches in parts.items():
            write_batches(tmp_path / name, batches[chosen], first=chosen.start)
            register(session.spark, name, tmp_path / name)
        writer = session.sql(statement.format("s3_a", "s3_b")).writeStream.format("parquet")
        writer = writer.option("path", f"{stored}/stream/out")
        writer = writer.option("checkpointLocation", f"{stored}/stream/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
    out = session.spark.read.parquet(f"{stored}/stream/out").select("k", "ts", "v", "s", "n")
    found = sorted_rows(out)
    assert found == sorted_rows(session.sql(statement.format("s3_a_t", "s3_b_t")))
    assert len(found) == 200


def test_a_bucket_that_is_not_there(session: Session) -> None:
    with pytest.raises(ConfigurationError, match=r"nobucket/x.parquet' is in a bucket that is not there"):
        read_files(session.spark, "s3a://nobucket/x.parquet")
    with pytest.raises(ConfigurationError, match=r"nobucket/x.csv' is in a bucket that is not there"):
        written(session.spark.range(3), written_at("s3a://nobucket/x.csv"))


def test_credentials_that_are_not_known(session: Session, server: Storage, stored: str) -> None:
    server.demand_credentials(True)
    try:
        for done in (
            lambda: read_files(session.spark, f"{stored}/rows.csv"),
            lambda: written(session.spark.range(3), written_at(f"{stored}/x.csv")),
        ):
            with pytest.raises(ConfigurationError, match=r"may not be (read|written)") as caught:
                done()
            assert "spark.hadoop.fs.s3a.access.key" in str(caught.value.help)
            assert SECRET not in f"{caught.value}{caught.value.__cause__}"
    finally:
        server.demand_credentials(False)


def test_the_storage_of_a_suite(spark: SparkSession, server: Storage, tmp_path: Path) -> None:
    """Ours and native Spark over the same objects."""
    options = WindowOptions(
        rows=[2_000],
        keys=10,
        lengths=[100],
        contestants=["ours", "spark"],
        storage=["s3"],
        bucket=f"s3a://tables/{uuid4().hex}",
        data=tmp_path,
    )
    (result,) = agreed(window_suite(options, Engines(cores=2))).cases
    assert [m.contestant for m in result.measurements] == ["ours", "spark", "ours-s3", "spark-s3"]
