"""Session: what reaches Spark as written, what is lowered, and the statements around a query."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ConfigurationError, SqlExtError, UnsupportedError

import sqlext
from sqlext import Session

pytestmark = pytest.mark.tidied

WINDOW = """SELECT id, sum(v) OVER w AS s FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"""
#: id -> s: row 1 sees b's 10 at ts 5; row 2 sees 1 and 10 too; row 3 is another key.
EXPECTED = [(1, 11), (2, 13), (3, 3)]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> Iterator[None]:
    """a and b: (id, k, ts, v)."""
    columns = "id int, k string, ts bigint, v bigint"
    a = spark.createDataFrame([(1, "x", 10, 1), (2, "x", 12, 2), (3, "y", 10, 3)], columns)
    b = spark.createDataFrame([(7, "x", 5, 10), (8, "z", 5, 99)], columns)
    a.createOrReplaceTempView("a")
    b.createOrReplaceTempView("b")
    yield
    for name in ("a", "b"):
        spark.catalog.dropTempView(name)


class Spy:
    """A Spark session that notes what `sql` was called with."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.calls: list[tuple[Any, Any, dict[str, Any]]] = []
        self.frames: list[DataFrame] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's own name
        self.calls.append((sqlQuery, args, kwargs))
        self.frames.append(self._spark.sql(sqlQuery, args, **kwargs))
        return self.frames[-1]


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "  /* kept */ select\tID ,\n sum( v )over(partition by k order by ts range between 3 preceding and current row)"
        "  -- and this\n FROM a ;",
        "SELECT `id` AS `UNION`, 'it''s' AS maxsize FROM a WHERE v > 1e0",
        "SHOW TABLES",
        "SET spark.sql.ansi.enabled",
        "DESCRIBE a",
        "EXPLAIN SELECT * FROM a",
        "WITH c AS (SELECT * FROM a) SELECT count(*) FROM c JOIN b USING (k)",
        "VALUES (1, 'a'), (2, 'b')",
    ],
)
def test_plain_statements_reach_spark_byte_for_byte(spark: SparkSession, sql: str) -> None:
    spy = Spy(spark)
    Session(spy).sql(sql)  # type: ignore[arg-type]
    ((text, args, kwargs),) = spy.calls
    assert text is sql
    assert (args, kwargs) == (None, {})


def test_arguments_of_plain_statements_reach_spark_too(spark: SparkSession) -> None:
    spy = Spy(spark)
    session = Session(spy)  # type: ignore[arg-type]
    named, listed = {"low": 2}, [2]
    assert rows(session.sql("SELECT id FROM a WHERE v >= :low", named)) == [(2,), (3,)]
    assert rows(session.sql("SELECT id FROM a WHERE v >= ?", args=listed)) == [(2,), (3,)]
    frame = spark.createDataFrame([(1, 1), (2, 2), (3, 3)], "id int, v int")
    assert rows(session.sql("SELECT id FROM {t} WHERE {t.v} >= {low}", t=frame, low=2)) == [(2,), (3,)]
    assert spy.calls[0][1] is named
    assert spy.calls[1][1] is listed
    assert spy.calls[2][2] == {"t": frame, "low": 2}


def test_sparks_own_errors_stay_sparks(session: Session) -> None:
    with pytest.raises(ParseException):
        session.sql("SELEC 1")


def test_window_union_gives_a_dataframe(session: Session) -> None:
    frame = session.sql(WINDOW)
    assert frame.columns == ["id", "s"]
    assert rows(frame) == EXPECTED


def test_always_lower_runs_plain_queries_through_our_nodes(spark: SparkSession) -> None:
    spy = Spy(spark)
    lowered = Session(spy, config=Config(always_lower=True))  # type: ignore[arg-type]
    sql = "SELECT k, count(*) AS n FROM a GROUP BY k"
    frame = lowered.sql(sql)
    assert rows(frame) == [("x", 2), ("y", 1)]
    assert [text for text, _, _ in spy.calls] == [sql]  # for its names and types, not for its rows
    assert frame is not spy.frames[0]


def test_settings_come_from_the_spark_session_unless_given(spark: SparkSession) -> None:
    sql = "SELECT k FROM a"
    spark.sql("SET sqlext.planner.alwaysLower = true")
    try:
        assert not Session(spark).plan(sql).passthrough
        assert Session(spark, config={"sqlext.planner.alwaysLower": "false"}).plan(sql).passthrough
    finally:
        spark.conf.unset("sqlext.planner.alwaysLower")
    assert Session(spark).plan(sql).passthrough


def test_plan_shows_every_stage(session: Session) -> None:
    plan = session.plan(WINDOW)
    assert plan.extensions == ("WindowUnionExec",)
    assert not plan.passthrough
    assert plan.analyzed is not None
    assert plan.optimized is not None
    assert plan.physical is not None


@pytest.mark.every_spark("arguments")
@pytest.mark.parametrize("args", [{"far": 10, "name": "x"}, {"far": 10, "name": "x", "unused": object()}])
def test_named_markers_in_extension_queries(session: Session, args: dict[str, Any]) -> None:
    sql = WINDOW.replace("10 PRECEDING", ":far PRECEDING").replace("FROM a", "FROM (SELECT * FROM a WHERE k = :name) a")
    assert rows(session.sql(sql, args)) == [(1, 11), (2, 13)]


def test_positional_markers_in_extension_queries(session: Session) -> None:
    sql = WINDOW.replace("sum(v) OVER w", "sum(v) OVER w + ?").replace("10 PRECEDING", "? PRECEDING")
    assert rows(session.sql(sql, [100, 10])) == [(i, s + 100) for i, s in EXPECTED]


def test_references_in_extension_queries(spark: SparkSession, session: Session) -> None:
    before = spark.sql("SHOW TABLES").collect()
    sql = WINDOW.replace("FROM a", "FROM {left}").replace("UNION b", "UNION {right}")
    assert rows(session.sql(sql, left=spark.table("a"), right=spark.table("b"))) == EXPECTED
    assert spark.sql("SHOW TABLES").collect() == before


def test_a_marker_without_value_has_a_place(session: Session) -> None:
    sql = WINDOW.replace("sum(v)", "sum(v + :more)")
    with pytest.raises(AnalysisError, match=":more has no value") as caught:
        session.sql(sql, {"less": 1})
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end] == ":more"


def test_errors_after_a_bound_value_point_at_the_users_text(session: Session) -> None:
    sql = WINDOW.replace("SELECT id", "SELECT :text AS text, nothing")
    with pytest.raises(AnalysisError) as caught:
        session.sql(sql, {"text": "a rather long value"})
    assert caught.value.span is not None
    assert caught.value.sql == sql
    assert sql[caught.value.span.start : caught.value.span.end] == "nothing"


@pytest.mark.parametrize(
    ("create", "drop"),
    [
        ("CREATE TEMP VIEW made AS ", "DROP VIEW made"),
        ("CREATE OR REPLACE TEMPORARY VIEW made AS ", "DROP VIEW made"),
        ("CREATE TEMP VIEW made (id, s) AS ", "DROP VIEW made"),
        ("CREATE TABLE made USING parquet AS ", "DROP TABLE made"),
        ("CACHE TABLE made AS ", "UNCACHE TABLE made"),
    ],
)
def test_statements_around_a_query(spark: SparkSession, session: Session, create: str, drop: str) -> None:
    session.sql(create + WINDOW)
    try:
        assert rows(spark.table("made")) == EXPECTED
    finally:
        spark.sql(drop)
        spark.catalog.dropTempView("made")


def test_global_temporary_view(spark: SparkSession, session: Session) -> None:
    session.sql("CREATE GLOBAL TEMP VIEW made (x, y) AS " + WINDOW)
    try:
        assert rows(spark.sql("SELECT x, y FROM global_temp.made")) == EXPECTED
    finally:
        spark.catalog.dropGlobalTempView("made")


def test_insert(spark: SparkSession, session: Session) -> None:
    spark.sql("CREATE TABLE target (id int, s bigint) USING parquet")
    try:
        session.sql("INSERT INTO target " + WINDOW)
        session.sql("INSERT INTO target (s, id) SELECT s, id FROM (" + WINDOW + ") q WHERE id = 3")
        assert rows(spark.table("target")) == [*EXPECTED, (3, 3)]
    finally:
        spark.sql("DROP TABLE target")


def test_a_permanent_view_is_refused(session: Session) -> None:
    with pytest.raises(UnsupportedError, match="permanent view") as caught:
        session.sql("CREATE VIEW v AS " + WINDOW)
    assert "TEMPORARY" in str(caught.value.help)


@pytest.mark.every_spark("EXPLAIN")
def test_explain_shows_our_plan(session: Session) -> None:
    frame = session.sql("EXPLAIN " + WINDOW)
    assert frame.columns == ["plan"]
    ((text,),) = frame.collect()
    assert "WindowUnionExec" in text
    ((text,),) = session.sql("explain extended " + WINDOW).collect()
    assert "== analyzed ==" in text


def test_errors_in_an_explained_statement_point_at_the_text(session: Session) -> None:
    sql = "EXPLAIN " + WINDOW.replace("sum(v)", "sum(nothing)")
    with pytest.raises(AnalysisError) as caught:
        session.sql(sql)
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end] == "nothing"


@pytest.mark.parametrize("kind", ["file", "folder", "csv"])
def test_register(session: Session, tmp_path: Path, kind: str) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "k": ["x", "y"], "ts": [1, 2], "v": [5, 6]})
    path = tmp_path / "t"
    if kind == "csv":
        path = tmp_path / "t.csv"
        path.write_text("id,k,ts,v\n1,x,1,5\n2,y,2,6\n")
    elif kind == "file":
        pq.write_table(table, path := tmp_path / "t.parquet")
    else:
        path.mkdir()
        pq.write_table(table, path / "part-0.parquet")
    session.register("registered", path)
    sql = WINDOW.replace("FROM a", "FROM registered").replace("UNION b", "UNION registered")
    assert rows(session.sql(sql)) == [(1, 10), (2, 12)]


def test_register_says_what_is_wrong(session: Session, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        session.register("t", tmp_path / "nowhere.parquet")
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(ConfigurationError, match=r"bad\.parquet"):
        session.register("t", tmp_path / "bad.parquet")


def test_wrong_settings_are_told_at_once(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="unknown setting"):
        Session(spark, config={"sqlext.planner.allwaysLower": "true"})
    with pytest.raises(ConfigurationError, match="compatibility mode"):
        Session(spark, compat="oracle")
    with pytest.raises(ConfigurationError, match="cannot change while Spark runs"):
        Session(spark, config={"spark.driver.memory": "1g"})


def test_module_level_sql_uses_the_running_spark(spark: SparkSession) -> None:
    assert rows(sqlext.sql(WINDOW)) == EXPECTED
    assert issubclass(AnalysisError, SqlExtError)


def test_sessions_serve_several_threads(session: Session) -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = rows(
            session.sql(WINDOW.replace("10 PRECEDING", f":far{number} PRECEDING"), {f"far{number}": 10})
        )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(results.values()) == [EXPECTED] * 4


def test_dates_as_arguments(session: Session) -> None:
    sql = WINDOW.replace("SELECT id", "SELECT id, :day AS day")
    (first, *_) = rows(session.sql(sql, {"day": datetime.date(2024, 1, 2)}))
    assert first == (1, datetime.date(2024, 1, 2), 11)
