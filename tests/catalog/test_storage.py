"""What `register` and `--data` take: URIs, patterns, formats; and what they say of those that cannot be read."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.scans import plain_parquet_scan

from sqlext import Session
from sqlext.catalog import FileCatalog, read_files, table_info, tables_at
from sqlext.catalog.locations import LocalData, RemoteData, located
from sqlext.catalog.options import DataFiles
from sqlext.catalog.reading import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAMP = dt.datetime(2020, 1, 2, 3, 4, 5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables `days` (Parquet, by day), `lines` (JSON), `rows` (CSV)."""
    for day in ("2024-01-01", "2024-01-02", "2025-01-01"):
        (tmp_path / "days" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "days" / f"day={day}" / "part.parquet")
    (tmp_path / "lines.json").write_text('{"a": 1, "b": {"c": [1.5]}}\n{"a": 2}\n', encoding="utf-8")
    (tmp_path / "rows.csv").write_text("x,y\n1,2020-01-02\n", encoding="utf-8")
    (tmp_path / "_hidden.csv").write_text("x", encoding="utf-8")
    return tmp_path


@pytest.fixture
def remote(spark: SparkSession, folder: Path) -> Iterator[str]:
    """The folder under a URI that only Hadoop understands."""
    name = f"sqlext{os.getpid()}{abs(hash(folder))}"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    key = f"fs.viewfs.mounttable.{name}.link./data"
    settings.set(key, f"file://{folder}")
    yield f"viewfs://{name}/data"
    settings.unset(key)


def columns(spark: SparkSession, path: Path | str) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in read_files(spark, path).schema)


def test_tables_behind_a_uri(session: Session, remote: str) -> None:
    tables = tables_at(remote, lambda: session.spark)
    assert tables == {
        name: DataFiles(f"{remote}/{file}")
        for name, file in {"days": "days", "lines": "lines.json", "rows": "rows.csv"}.items()
    }
    assert columns(session.spark, tables["days"].path) == (("v", "bigint"), ("day", "date"))
    assert columns(session.spark, tables["rows"].path) == (("x", "int"), ("y", "date"))
    assert columns(session.spark, f"{remote}/days/day=2024-*") == (("v", "bigint"),)
    with pytest.raises(ConfigurationError, match=r"both Parquet and CSV and JSON"):
        read_files(session.spark, remote)
    with pytest.raises(ConfigurationError, match=r"nothing.parquet' does not exist"):
        read_files(session.spark, f"{remote}/nothing.parquet")


def test_registered_again_after_a_restart(spark: SparkSession, remote: str) -> None:
    session = Session(spark)
    session.register("storage_days", f"{remote}/days")
    spark.catalog.dropTempView("storage_days")
    session._files.register_again(spark)
    assert session.sql("SELECT count(*) FROM storage_days WHERE day < '2024-02-01'").collect()[0][0] == 4
    spark.catalog.dropTempView("storage_days")


def test_a_statement_over_files_by_uri_and_pattern(session: Session, folder: Path) -> None:
    for path in (folder / "days", f"{folder}/days/day=2024-*", f"file://{folder}/days/day=2024-01-01/part.parquet"):
        assert plain_parquet_scan(read_files(session.spark, path)) is not None, "not read by ArrowScan"
    session.register("storage_pattern", f"file://{folder}/days/day=2024-*")
    session.register("storage_files", str(folder / "days" / "day={2024-01-01,2025-01-01}" / "*.parquet"))
    query = (
        "SELECT v, day, count(v) OVER w AS n FROM storage_pattern "
        "WINDOW w AS (UNION {source} PARTITION BY day ORDER BY v ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW)"
    )
    source = "(SELECT v, date'2024-01-01' AS day FROM storage_files)"
    rows = session.sql(query.format(source=source)).collect()
    assert sorted((row.day.day, row.v, row.n) for row in rows) == [(1, 1, 3), (1, 2, 6), (2, 1, 1), (2, 2, 2)]
    for name in ("storage_pattern", "storage_files"):
        session.spark.catalog.dropTempView(name)


def test_names_with_the_signs_of_patterns(spark: SparkSession, tmp_path: Path) -> None:
    odd = tmp_path / "we[1]*{a}? %20#"
    odd.mkdir()
    pq.write_table(pa.table({"v": [1]}), odd / "f{1}[a]*.parquet")
    for path in (odd, odd / "f{1}[a]*.parquet", f"file:{odd}"):
        assert read_files(spark, path).collect()[0].v == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a:b.csv", LocalData("a:b.csv", (Path("a:b.csv"),))),
        ("file:///x/y.csv", LocalData("/x/y.csv", (Path("/x/y.csv"),))),
        ("file:/x/y.csv", LocalData("/x/y.csv", (Path("/x/y.csv"),))),
        ("S3A://b/x/*.csv", RemoteData("S3A://b/x/*.csv", "s3a")),
    ],
)
def test_what_a_text_means(text: str, found: object) -> None:
    assert located(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (Path("s3a://bucket/x"), r"has one slash after 's3a:'"),
        ("file://data/x.csv", "names a host, 'data'"),
        ("/nowhere/*.parquet", "nothing matches"),
    ],
)
def test_texts_that_mean_nothing(text: str | Path, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        located(text)
    assert caught.value.help


def test_remote_tables_need_spark_or_a_schema() -> None:
    with pytest.raises(ConfigurationError, match="cannot be described without Spark") as caught:
        FileCatalog("s3a://bucket/tables")
    assert "--schema" in str(caught.value.help)


def test_a_client_of_connect_cannot_list() -> None:
    client: Any = SimpleNamespace(version="4.3.0")  # no JVM
    with pytest.raises(ConfigurationError, match="cannot be listed under Spark Connect") as caught:
        tables_at("hdfs://h/tables", lambda: client)
    assert "one by one" in str(caught.value.help)
    with pytest.raises(ConfigurationError, match="the format of 'hdfs://h/orders' is not in its name"):
        read_files(client, "hdfs://h/orders")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("uri", "message", "help"),
    [
        ("s3a://b/x.parquet", "no file system for 's3a:' here .*S3AFileSystem is missing", "hadoop-aws"),
        ("abfss://c@a.dfs.core.windows.net/x.orc", "SecureAzureBlobFileSystem is missing", "hadoop-azure"),
        ("gs://b/folder", "GoogleHadoopFileSystem is missing", "hadoop-gcp"),
        ("s3://b/x.csv", "no file system for 's3:'", "write s3a: instead"),
        ("hfds://h/x.csv", "no file system for 'hfds:'", "write hdfs: instead"),
        ("qqqq://h/x.csv", "no file system for 'qqqq:'", "Hadoop has"),
        ("hdfs://nohost.invalid/x.json", "cannot be reached", "check the host"),
        ("hdfs:///x.json", "names no host", "HOST:PORT"),
    ],
)
def test_file_systems_that_are_not_there(spark: SparkSession, uri: str, message: str, help: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_files(spark, uri)
    assert help in str(caught.value.help)


#: Errors of storage services, as their connectors word them.
CREDENTIALS = {
    "s3a://b/x": (
        "java.nio.file.AccessDeniedException: b: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: "
        "No AWS Credentials provided by TemporaryAWSCredentialsProvider SimpleAWSCredentialsProvider",
        "spark.hadoop.fs.s3a.access.key",
    ),
    "abfss://c@a.dfs.core.windows.net/x": (
        "Failure to initialize configuration for storage account a.dfs.core.windows.net: Invalid configuration value",
        "fs.azure.account.key",
    ),
    "gs://b/x": ("java.io.IOException: Your default credentials were not found.", "GOOGLE_APPLICATION_CREDENTIALS"),
    "hdfs://h/x": (
        "org.apache.hadoop.security.AccessControlException: SIMPLE authentication is not enabled.  Available:[TOKEN]",
        "kinit",
    ),
}


@pytest.mark.parametrize("uri", list(CREDENTIALS))
def test_missing_credentials(uri: str) -> None:
    text, setting = CREDENTIALS[uri]
    message, help = explained(uri, f"An error occurred while calling o1.load.\n: {text}\n\tat x.y.Z(Z.java:1)", "4.3.0")
    assert message.startswith(f"'{uri}' may not be read: ")
    assert setting in help


def test_avro_json_and_orc_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(b"Obj\x01")
    (tmp_path / "b.json").write_text('{"a": 1}\n{"a":\n', encoding="utf-8")
    (tmp_path / "c.orc").write_bytes(b"no ORC")
    for name, message, help in (
        (
            "a.avro",
            "is Avro, and Spark's package for it is missing",
            f"spark-avro_{'2.12' if spark.version < '4' else '2.13'}:{spark.version}",
        ),
        ("b.json", "holds a line that is not one JSON object", "one object a line"),
        ("c.orc", "cannot be read", "check the files"),
    ):
        with pytest.raises(ConfigurationError, match=message) as caught:
            read_files(spark, tmp_path / name)
        assert help in str(caught.value.help)


ORC = {
    "i8": pa.array([1, None], pa.int8()),
    "i64": pa.array([1, None], pa.int64()),
    "f": pa.array([1.5, None], pa.float32()),
    "b": pa.array([True, None]),
    "s": pa.array(["x", None]),
    "bin": pa.array([b"x", None]),
    "day": pa.array([dt.date(2020, 1, 2), None]),
    "utc": pa.array([STAMP, None], pa.timestamp("us", tz="UTC")),
    "local": pa.array([STAMP, None], pa.timestamp("us")),
    "dec": pa.array([None, None], pa.decimal128(30, 5)),
    "list": pa.array([["x"], None], pa.list_(pa.string())),
    "struct": pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    "map": pa.array([[("k", 1.0)], None], pa.map_(pa.string(), pa.float64())),
}
WRITTEN = """SELECT 1Y AS a, 'x' AS c, timestamp'2020-01-01' AS d, timestamp_ntz'2020-01-01' AS e,
  interval '1' month AS f, interval '1' day AS g, struct(1 AS x, timestamp_ntz'2020-01-01' AS y) AS i,
  1.5BD AS k, map('k', now()) AS n"""


@pytest.mark.spark_since("4.2", "ORC's timestamps with a time zone")
def test_orc_has_sparks_types(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "one" / "p=2020-01-01").mkdir(parents=True)
    orc.write_table(pa.table(ORC), tmp_path / "one" / "p=2020-01-01" / "x.orc")
    spark.sql(WRITTEN).write.orc(str(tmp_path / "two"))
    for name in ("one", "two"):
        info = table_info(name, tmp_path / name)
        assert info.columns == columns(spark, tmp_path / name)
        assert info.rows == read_files(spark, tmp_path / name).count()
    orc.write_table(pa.table({"n": pa.array([[1]])}), tmp_path / "three.orc")
    with pytest.raises(ConfigurationError, match=r"column 'n' .* cannot be told without Spark"):
        table_info("three", tmp_path / "three.orc")


STATEMENTS = {
    "window": "SELECT {a}.v, sum({a}.v) OVER w AS s FROM {a} WHERE {a}.p = 1 WINDOW w AS "
    "(UNION {b} PARTITION BY k ORDER BY v ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "last join": "SELECT a.v, b.v AS w FROM (SELECT * FROM {a} WHERE p = 1 AND v > 0) AS a "
    "LAST JOIN {b} AS b ORDER BY b.v ON a.k = b.k",
    "interval join": "SELECT /*+ SWEEP */ a.v, b.v AS w FROM {a} AS a JOIN {b} AS b "
    "ON a.k = b.k AND period_overlaps(a.v, a.e, b.v, b.e) WHERE a.p = 1 AND a.v > 0",
}


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_conditions_and_columns_reach_sparks_scan_of_a_table(spark: SparkSession, name: str) -> None:
    """A table that ArrowScan cannot read."""
    session = Session(spark, config={"sqlext.intervalJoin.strategy": "exchange"})
    spark.sql("create table storage_one (k int, v bigint, e bigint, unread string, p int) using orc partitioned by (p)")
    spark.sql("insert into storage_one values (1, 1, 3, 'x', 1), (1, 2, 4, 'y', 1), (2, 9, 9, 'z', 2)")
    try:
        check_scans(session, STATEMENTS[name].format(a="storage_one", b="storage_one"), "orc")
    finally:
        spark.sql("drop table storage_one")


def check_scans(session: Session, statement: str, format: str) -> None:
    """What the statement reads of each table is what Spark's scan reads: no other column, partition or row."""
    frame = session.sql(statement)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    scans = [line for line in plan.splitlines() if f"FileScan {format}" in line]
    assert len(scans) == 2
    assert not any("unread" in line.partition("ReadSchema:")[2] for line in scans)
    left = next(line for line in scans if "(p#" in line.partition("PartitionFilters:")[2].partition("]")[0])
    if "v > 0" in statement:
        assert "GreaterThan(v,0)" in left.partition("PushedFilters:")[2]
    assert frame.count() > 0
