"""Writing to what a query reads: Spark's own answer, also where tasks of ours read the files instead of Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.errors import ConfigurationError

from sqlext import Session

pytestmark = pytest.mark.tidied

ROWS = 60
WINDOW = "PARTITION BY {0}.k ORDER BY {0}.ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW"
OVERLAP = "a.ts < b.te AND b.ts < a.te"

#: Operators that read files by themselves, with the target in every place; all give (id, k, ts, te, v).
QUERIES = {
    "window": f"SELECT id, k, ts, te, sum(v) OVER w FROM {{t}} WINDOW w AS ({WINDOW.format('{t}')})",
    "window union": f"SELECT id, k, ts, te, sum(v) OVER w FROM o WINDOW w AS (UNION {{t}} {WINDOW.format('o')})",
    "LAST JOIN": "SELECT a.id, a.k, a.ts, a.te, b.v FROM o a LAST JOIN {t} b ORDER BY b.ts ON a.k = b.k",
    "interval join, exchange": (
        f"SELECT /*+ SWEEP */ a.id, a.k, a.ts, a.te, b.v FROM o a JOIN {{t}} b ON a.id = b.id AND {OVERLAP}"
    ),
    "interval join, small side": f"SELECT /*+ SWEEP */ a.id, a.k, a.ts, a.te, b.v FROM o a JOIN {{t}} b ON {OVERLAP}",
    "interval join, big side": f"SELECT /*+ SWEEP */ b.id, b.k, b.ts, b.te, a.v FROM {{t}} a JOIN o b ON {OVERLAP}",
    "collected small side": (
        "SELECT /*+ SWEEP */ a.id, a.k, a.ts, a.te, b.v FROM o a "
        f"JOIN (SELECT ts, te, abs(v) v FROM {{t}}) b ON {OVERLAP}"
    ),
    "multi-way join": (
        "SELECT /*+ UMJOIN(a, b, c) */ a.id, a.k, a.ts, a.te, c.v FROM o a JOIN {t} b ON a.id = b.id "
        "JOIN o c ON b.id = c.id"
    ),
    "group aggregate": "SELECT id, max(k), max(ts), max(te), distinct_count(v) FROM {t} GROUP BY id",
}
CONFIGS = {
    "interval join, exchange": {"sqlext.intervalJoin.strategy": "exchange"},
    "interval join, small side": {"sqlext.intervalJoin.strategy": "broadcast"},
    "interval join, big side": {"sqlext.intervalJoin.strategy": "broadcast"},
    "collected small side": {"sqlext.intervalJoin.strategy": "broadcast"},
    "multi-way join": {"sqlext.umjoin.strategy": "operator"},
    "multi-way join, exchange": {"sqlext.umjoin.strategy": "operator", "sqlext.exchange.partitions": "2"},
}
QUERIES["multi-way join, exchange"] = QUERIES["multi-way join"]

Way = Callable[[DataFrame], object]


@pytest.fixture(scope="module")
def folder(spark: SparkSession) -> Iterator[Path]:
    """The folder of the table `over_t` of 60 rows in two files; the views `over_view` of it, `over_files` of its
    files, and `o` of the same rows elsewhere."""
    rows = spark.range(ROWS).selectExpr("id", "id % 5 k", "id ts", "id + 1 te", "id v")
    for name in ("over_t", "over_other"):
        rows.repartition(2).write.mode("overwrite").saveAsTable(name)
    spark.table("over_t").where("v >= 0").createOrReplaceTempView("over_view")
    spark.table("over_other").createOrReplaceTempView("o")
    folder = Path(spark.table("over_t").inputFiles()[0].removeprefix("file://")).parent
    spark.read.parquet(str(folder)).createOrReplaceTempView("over_files")
    yield folder
    for name in ("over_view", "over_files", "o"):
        spark.catalog.dropTempView(name)
    for name in ("over_t", "over_other"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def run_sql_over(frame: DataFrame) -> None:
    frame.createOrReplaceTempView("over_result")
    frame.sparkSession.sql("INSERT OVERWRITE over_t SELECT * FROM over_result")


WAYS: dict[str, Way] = {
    "saveAsTable": lambda frame: frame.write.mode("overwrite").saveAsTable("over_t"),
    "insertInto": lambda frame: frame.write.insertInto("over_t", overwrite=True),
    "INSERT OVERWRITE": run_sql_over,
    "writeTo.overwritePartitions": lambda frame: frame.writeTo("over_t").overwritePartitions(),
    "writeTo.createOrReplace": lambda frame: frame.writeTo("over_t").createOrReplace(),
}


def outcome(way: Way, frame: DataFrame) -> tuple[str, str | None]:
    """The error's class and condition."""
    with pytest.raises(PySparkException) as caught:
        way(frame)
    return type(caught.value).__name__, caught.value.getCondition()


def contents(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.parquet")}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(QUERIES))
def test_overwriting_what_an_operator_reads_is_refused_as_by_spark(
    spark: SparkSession, folder: Path, name: str
) -> None:
    session = Session(spark, config=CONFIGS.get(name))
    before = contents(folder)
    assert len(before) == 2
    for source in ("over_t", "over_view") if name == "window" else ("over_t",):
        frame = session.sql(QUERIES[name].format(t=source))
        plain = spark.sql(f"SELECT id, k, ts, te, v FROM {source}")
        for way, write in WAYS.items():
            assert outcome(write, frame) == outcome(write, plain), way
            assert contents(folder) == before, way
        assert set(plain.inputFiles()) <= set(frame.inputFiles())


def test_our_own_insert_overwrite_is_refused(session: Session, spark: SparkSession, folder: Path) -> None:
    before = contents(folder)
    for source in ("over_t", "over_files"):
        query = QUERIES["window"].format(t=source)
        plain = f"SELECT id, k, ts, te, v FROM {source}"
        ours = outcome(lambda frame: session.sql(f"INSERT OVERWRITE over_t {query}"), spark.range(1))  # noqa: B023
        assert ours == outcome(lambda frame: spark.sql(f"INSERT OVERWRITE over_t {plain}"), spark.range(1))  # noqa: B023
        assert contents(folder) == before


def test_registered_files_are_seen_too(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = Session(spark)
    session.register("over_registered", folder)
    before = contents(folder)
    frame = session.sql(QUERIES["window"].format(t="over_registered"))
    plain = spark.sql("SELECT id, k, ts, te, v FROM over_registered")
    for way in ("insertInto", "INSERT OVERWRITE"):
        assert outcome(WAYS[way], frame) == outcome(WAYS[way], plain)
        assert contents(folder) == before


def test_a_window_may_be_written_over_its_files_as_sparks_own_may(
    session: Session, spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """Spark does not look at paths here, and reads everything before a shuffle before it deletes the old files."""
    for number, runner in enumerate((session, spark)):
        copy = tmp_path / str(number)
        shutil.copytree(folder, copy)
        spark.read.parquet(str(copy)).createOrReplaceTempView("over_copy")
        frame = "ROWS_RANGE" if runner is session else "RANGE"
        query = QUERIES["window"].format(t="over_copy").replace("ROWS_RANGE", frame).replace("OVER w", "OVER w AS v")
        runner.sql(query).write.mode("overwrite").parquet(str(copy))
        assert spark.read.parquet(str(copy)).count() == ROWS


def test_appending_to_what_is_read_and_what_is_cached_of_it(session: Session, spark: SparkSession) -> None:
    """An INSERT makes Spark list the table again, for what is cached of it and for DataFrames that share the list. Our
    plan knows the files that it was made for, and says so rather than give the rows of before."""
    spark.sql("CREATE TABLE over_a AS SELECT * FROM over_t")
    try:
        query = QUERIES["window"].format(t="over_a")
        frame, plain = session.sql(query), spark.sql("SELECT id, v FROM over_a")
        assert frame.count() == plain.count() == ROWS
        session.sql(f"INSERT INTO over_a {query}")
        if plain.count() == ROWS:  # Spark has not listed the table again
            assert frame.count() == ROWS
        else:
            with pytest.raises(ConfigurationError, match="was added to a table of the statement after it was planned"):
                frame.count()
        cached = session.sql(query).cache()
        assert cached.count() == 2 * ROWS
        spark.sql("INSERT INTO over_a SELECT * FROM over_other")
        with pytest.raises(ConfigurationError, match="was added to a table of the statement after it was planned"):
            cached.count()
        cached.unpersist()
        assert session.sql(query).count() == 3 * ROWS
    finally:
        spark.sql("DROP TABLE over_a")


ODD_COLUMNS = {
    "structs": "named_struct('a b', id, 'c{d', id, 'e''f`', id) AS `s, {}`",  # read by Spark
    "a column that hides Spark's own": "id AS _metadata",
}
ODD_QUERIES: dict[str, tuple[str, str, dict[str, str]]] = {
    "window": (
        "SELECT {c}, sum(id) OVER w FROM odd WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE "
        "BETWEEN 5 PRECEDING AND CURRENT ROW)",
        "SELECT {c}, sum(id) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM odd",
        {},
    ),
    **{
        f"interval join, {way}": (
            f"SELECT /*+ SWEEP */ a.{{c}}, b.{{c}} FROM odd a JOIN odd b ON {OVERLAP}",
            f"SELECT a.{{c}}, b.{{c}} FROM odd a JOIN odd b ON {OVERLAP}",
            {"sqlext.intervalJoin.strategy": way},
        )
        for way in ("exchange", "broadcast")
    },
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(ODD_QUERIES))
@pytest.mark.parametrize("kind", list(ODD_COLUMNS))
def test_columns_of_any_name_are_read_and_new_files_told(spark: SparkSession, kind: str, name: str) -> None:
    extended, plain, config = ODD_QUERIES[name]
    session = Session(spark, config=config)
    rows = spark.sql(f"SELECT {ODD_COLUMNS[kind]}, id, id % 5 k, id ts, id + 1 te FROM range({ROWS})")
    rows.write.saveAsTable("odd")
    column = f"`{rows.columns[0]}`"
    try:
        frame = session.sql(extended.format(c=column)).cache()
        assert sorted(frame.collect()) == sorted(spark.sql(plain.format(c=column)).collect())
        rows.write.insertInto("odd")
        if kind == "structs" and name != "interval join, broadcast":
            assert frame.count() == spark.sql(plain.format(c=column)).count()
        else:
            with pytest.raises(ConfigurationError, match="was added to a table of the statement after it was planned"):
                frame.count()
        frame.unpersist()
    finally:
        spark.sql("DROP TABLE odd")
