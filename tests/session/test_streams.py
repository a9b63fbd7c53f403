"""Streams: refused below operators that keep no state, at their place in the text; Spark's own in plain statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, UnsupportedError

from sqlext import Session

pytestmark = pytest.mark.tidied

SCHEMA = "id bigint, k bigint, ts bigint, te bigint, v bigint"
FRAME = "ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW"
W = f"PARTITION BY k ORDER BY ts {FRAME}"


@pytest.fixture(scope="module")
def streams(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """s, a stream over 20 rows in 4 files; t, u: the same rows as tables; v: a view of s."""
    folder = tmp_path_factory.mktemp("stream") / "rows"
    rows = spark.range(20).selectExpr("id", "id % 3 k", "id ts", "id + 2 te", "id v")
    rows.repartition(4).write.parquet(str(folder))
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    frame.createOrReplaceTempView("s")
    frame.where("v >= 0").createOrReplaceTempView("s_view")
    for name in ("t", "u"):
        spark.read.parquet(str(folder)).createOrReplaceTempView(name)
    yield frame
    for name in ("s", "s_view", "t", "u"):
        spark.catalog.dropTempView(name)


def in_batches(frame: DataFrame, folder: Path, mode: str = "append") -> list[tuple[Any, ...]]:
    """All rows that a stream gives, several micro-batches together."""
    name = f"stream_result_{folder.name}".replace("-", "_")
    query = frame.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(tuple(row) for row in frame.sparkSession.table(name).collect())


REFUSED = {
    "sqlext function": "SELECT k, distinct_count(v) FROM [[s]] GROUP BY k",
    "table kept": "SELECT t.id FROM t LEFT JOIN [[s]] ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(t.ts, t.te)",
    "table kept, right": "SELECT t.id FROM [[s]] FULL JOIN t ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(t.ts, t.te)",
    "NOT EXISTS": (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM [[s]] WHERE PERIOD(s.ts, s.te) OVERLAPS PERIOD(t.ts, t.te))"
    ),
}

#: Windows and interval joins over a stream without a watermark.
WITHOUT_WATERMARK = {
    "window": f"SELECT id, sum(v) OVER w FROM [[s]] WINDOW w AS ({W})",
    "view": f"SELECT id, sum(v) OVER w FROM [[s_view]] WINDOW w AS ({W})",
    "CTE": f"WITH c AS (SELECT * FROM [[s]] WHERE v > 1) SELECT id, sum(v) OVER w FROM c WINDOW w AS ({W})",
    "derived table": f"SELECT id, sum(v) OVER w FROM (SELECT * FROM [[s]] s1) d WINDOW w AS ({W})",
    "text of Spark's": f"SELECT id, sum(v) OVER w FROM (SELECT * FROM [[s]] TABLESAMPLE (9 ROWS)) d WINDOW w AS ({W})",
    "STREAM": f"SELECT id, sum(v) OVER w FROM (SELECT * FROM [[STREAM s]]) d WINDOW w AS ({W})",
    "STREAM()": f"SELECT id, sum(v) OVER w FROM [[STREAM(s) d]] WINDOW w AS ({W})",
    "in a subquery": f"SELECT id, sum(v) OVER w FROM t WHERE k IN (SELECT k FROM [[s]]) WINDOW w AS ({W})",
    "set operation": f"SELECT id, sum(v) OVER w FROM (SELECT * FROM t EXCEPT SELECT * FROM [[s]]) d WINDOW w AS ({W})",
    "below a join": (
        f"SELECT a.id, sum(a.v) OVER w FROM t a JOIN [[s]] ON a.k = s.k "
        f"WINDOW w AS (PARTITION BY a.k ORDER BY a.ts {FRAME})"
    ),
    "interval join": "SELECT s.id FROM [[s]] JOIN u ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(u.ts, u.te)",
    "interval join, left": "SELECT s.id FROM [[s]] LEFT JOIN u ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(u.ts, u.te)",
    "interval count": "SELECT count(*) FROM t JOIN [[s]] ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(t.ts, t.te)",
    "interval EXISTS": (
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM [[s]] WHERE PERIOD(s.ts, s.te) OVERLAPS PERIOD(t.ts, t.te))"
    ),
    "hinted interval join": "SELECT /*+ SWEEP */ t.id FROM t JOIN [[s]] ON t.ts < s.te AND s.ts < t.te",
    "in a statement": f"CREATE TEMPORARY VIEW stream_view AS SELECT id, sum(v) OVER w FROM [[s]] WINDOW w AS ({W})",
}


def unmarked(text: str) -> tuple[str, tuple[int, int]]:
    """The statement without its marks, and the place between them."""
    start, end = text.index("[["), text.index("]]") - len("[[")
    return text.replace("[[", "").replace("]]", ""), (start, end)


@pytest.mark.parametrize("name", list(REFUSED))
def test_an_operator_over_a_stream_is_refused_at_the_stream(session: Session, streams: DataFrame, name: str) -> None:
    sql, place = unmarked(REFUSED[name])
    before = set(session.spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    with pytest.raises(UnsupportedError) as caught:
        session.sql(sql)
    assert (caught.value.span.start, caught.value.span.end) == place  # type: ignore[union-attr]
    assert "stream" in caught.value.message
    assert "foreachBatch" in str(caught.value.help)
    assert set(session.spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before


@pytest.mark.parametrize("items", ["t.id", "count(*)"])
def test_a_hint_for_a_join_of_one_stream_is_refused(session: Session, streams: DataFrame, items: str) -> None:
    sql, place = unmarked(f"SELECT /*+ [[UMJOIN(t, u, s)]] */ {items} FROM t JOIN u ON t.k = u.k JOIN s ON u.k = s.k")
    with pytest.raises(UnsupportedError, match="only one of its inputs is a stream") as caught:
        session.sql(sql)
    assert (caught.value.span.start, caught.value.span.end) == place  # type: ignore[union-attr]
    assert "leave the hint out" in str(caught.value.help)


@pytest.mark.parametrize("condition", ["s.k = t.k", "s.k < t.k"])
def test_a_stream_on_the_right_of_a_last_join_is_refused_at_the_stream(
    session: Session, streams: DataFrame, condition: str
) -> None:
    sql, place = unmarked(f"SELECT t.id, s.v FROM t LAST JOIN [[s]] ORDER BY s.ts ON {condition}")
    with pytest.raises(UnsupportedError, match="its last row is never known") as caught:
        session.sql(sql)
    assert (caught.value.span.start, caught.value.span.end) == place  # type: ignore[union-attr]
    assert caught.value.help


@pytest.mark.few(4)
@pytest.mark.parametrize("name", list(WITHOUT_WATERMARK))
def test_an_operator_over_a_stream_without_a_watermark_is_refused_at_the_stream(
    session: Session, streams: DataFrame, name: str
) -> None:
    sql, place = unmarked(WITHOUT_WATERMARK[name])
    with pytest.raises(AnalysisError, match="no watermark") as caught:
        session.sql(sql)
    assert (caught.value.span.start, caught.value.span.end) == place  # type: ignore[union-attr]
    assert "withWatermark" in str(caught.value.help)
    assert not session.spark.catalog.tableExists("stream_view")


def test_a_stream_behind_a_reference_is_refused_where_the_reference_stands(
    session: Session, streams: DataFrame
) -> None:
    sql = f"SELECT id, sum(v) OVER w FROM {{df}} WINDOW w AS ({W})"
    with pytest.raises(AnalysisError, match="no watermark") as caught:
        session.sql(sql, df=streams)
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end] == "{df}"


PLAIN = {
    "filter": "SELECT id, v + 1 AS w FROM s WHERE k = 1",
    "join with a table": "SELECT s.id, u.v FROM s JOIN u ON s.id = u.id",
    "inequalities": "SELECT s.id, u.id AS i FROM s JOIN u ON s.k = u.k AND s.ts < u.te AND u.ts < s.te",
    "joins": "SELECT s.id, t.v, u.v AS x FROM s JOIN t ON s.id = t.id JOIN u ON u.k = t.k",
    "EXISTS beside": "SELECT id FROM s WHERE k = 2 OR id = 3",
    "union": "SELECT id FROM s UNION ALL SELECT v FROM s_view",
    "STREAM": "SELECT id FROM STREAM s",
    "values": "SELECT s.id FROM s JOIN VALUES 1, 2 AS d(x) ON s.id = d.x",
}


@pytest.mark.few(4)
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.spark_since("4.1", "STREAM")] if name == "STREAM" else [])
        for name in PLAIN
    ],
)
def test_a_plain_statement_over_a_stream_is_sparks(
    spark: SparkSession, streams: DataFrame, name: str, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(spark, config=Config(always_lower=always))
    called: list[str] = []
    real = type(spark).sql
    monkeypatch.setattr(
        type(spark), "sql", lambda self, text, *a, **k: called.append(text) or real(self, text, *a, **k)
    )
    frame = session.sql(PLAIN[name])
    assert frame.isStreaming
    assert any(text is PLAIN[name] for text in called)


@pytest.mark.every_spark("streams: tables beside a stream")
def test_a_static_operator_beside_a_stream_runs(session: Session, streams: DataFrame, tmp_path: Path) -> None:
    sums = f"SELECT id, sum(v) OVER w AS total FROM t WINDOW w AS ({W})"
    frame = session.sql(f"SELECT s.id, d.total FROM s JOIN ({sums}) d ON s.id = d.id")
    assert in_batches(frame, tmp_path) == sorted(tuple(row) for row in session.sql(sums).collect())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM {0} WHERE PERIOD(ts, te) OVERLAPS PERIOD(3L, 7L)",
        "SELECT id, PERIOD(ts, te) CONTAINS 5L AS c FROM {0}",
        "SELECT a.id, u.v FROM {0} a JOIN u ON a.id = u.id AND a.ts < u.te AND u.ts < a.te "
        "WHERE PERIOD(a.ts, a.te) OVERLAPS PERIOD(3L, 7L)",
        "SELECT a.id, u.v FROM {0} a JOIN u ON a.id = u.id JOIN t ON t.id = u.id "
        "WHERE PERIOD(a.ts, a.te) OVERLAPS PERIOD(3L, 7L)",
    ],
)
def test_a_period_predicate_on_the_rows_of_a_stream_runs(
    session: Session, streams: DataFrame, tmp_path: Path, sql: str
) -> None:
    expected = sorted(tuple(row) for row in session.sql(sql.format("t")).collect())
    assert expected
    assert in_batches(session.sql(sql.format("s")), tmp_path) == expected


def test_a_table_that_became_a_stream_after_planning_is_refused(
    session: Session, streams: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning took `s` for a table: what is built knows better."""
    from sqlext.run import pipeline

    real = pipeline.stage
    session.spark.table("t").createOrReplaceTempView("changes")

    def stage(*args: Any, **options: Any) -> Any:
        plan = real(*args, **options)
        streams.createOrReplaceTempView("changes")
        return plan

    monkeypatch.setattr(pipeline, "stage", stage)
    with pytest.raises(UnsupportedError, match="stream"):
        session.sql("SELECT c.id, u.v FROM changes c LAST JOIN u ORDER BY u.ts ON c.k = u.k")
