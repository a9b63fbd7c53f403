"""EMIT AFTER on Spark: final rows are those of batch, early rows come before them, restarts are exact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from tests.sql.early_rows import BOUNDS, TRIGGER, Run, arriving, early_views, found_rows, run_whole
from tests.sql.streams import (
    check_refused,
    drop_views,
    register,
    started,
    write_batches,
)

pytestmark = pytest.mark.tidied

#: Seconds of a window, and from its start to its early answer; how many windows there are.
LENGTH, AFTER, COUNT = 10, 7, 5
BATCHES = [arriving(number, COUNT * LENGTH, keys=6) for number in range(2)]
BATCH = (
    "SELECT l.w.start AS start, count(*) AS n, sum(l.v) AS s, avg(r.x) AS a, count(l.v) AS m "
    "FROM (SELECT *, window(ts, '10 seconds') AS w FROM l{0}) l "
    "JOIN (SELECT *, window(ts, '10 seconds') AS w FROM r{0}) r "
    "ON l.k = r.k AND l.w = r.w AND l.v > -3 GROUP BY l.w"
)
EMIT = "EMIT AFTER DELAY INTERVAL '7' SECONDS"
VALUES = ("n", "s", "a", "m")


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with early_views(spark, tmp_path_factory.mktemp("early"), BATCHES) as folder:
        yield folder


def of_phase(rows: list[dict[str, Any]], phase: str) -> dict[Any, dict[str, Any]]:
    found = {row["start"]: row for row in rows if row["phase"] == phase}
    assert len(found) == sum(row["phase"] == phase for row in rows)
    return found


@pytest.fixture(scope="module")
def whole(session: Session, views: Path) -> Run:
    return run_whole(session.sql(f"{BATCH.format('')} {EMIT}"), views / "checkpoint", "start")


@pytest.mark.slow
def test_final_rows_are_those_of_batch_and_early_rows_come_before(session: Session, whole: Run) -> None:
    frame, rows, when = whole.frame, whole.rows, whole.when
    assert frame.columns == ["start", *VALUES, *(f"{v}_{b}" for v in VALUES for b in BOUNDS), "phase"]
    assert frame.dtypes[:5] == session.sql(BATCH.format("_t")).dtypes
    early, final = of_phase(rows, "early"), of_phase(rows, "final")
    expected = {row["start"]: row.asDict() for row in session.sql(BATCH.format("_t")).collect()}
    closing = max(expected)
    del expected[closing]
    assert early.keys() == final.keys() == expected.keys() | (early.keys() & {closing})
    for start, row in expected.items():
        assert {name: final[start][name] for name in VALUES} == pytest.approx(
            {name: row[name] for name in VALUES}, nan_ok=True
        )
    first = min(expected)
    for start in expected:
        seconds = (start - first).total_seconds()
        # a file brings what has come in two seconds: the clock passes start + 7 s in this one or, by chance, the next
        due = (seconds + AFTER) // TRIGGER
        assert due <= when[start, "early"] <= due + 1
        assert when[start, "final"] > when[start, "early"]
    held = sum(early[s]["n_lower"] <= expected[s]["n"] <= early[s]["n_upper"] for s in expected)
    assert held >= len(expected) - 2
    assert early[max(expected)]["n_coverage"] < 1
    assert whole.state_rows <= 12


@pytest.mark.slow
def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path, whole: Run) -> None:
    batches = dict(zip("lr", BATCHES, strict=True))
    sql = BATCH.format("").replace("FROM l)", "FROM {l})").replace("FROM r)", "FROM {r})") + " " + EMIT

    def frame(text: str = sql) -> DataFrame:
        for name in "lr":
            register(spark, f"grown_{name}", tmp_path / name)
        return session.sql(text, l=spark.table("grown_l"), r=spark.table("grown_r"))

    cut = 16
    for name in "lr":
        write_batches(tmp_path / name, batches[name][:cut])
    started(frame(), tmp_path).awaitTermination()
    for name in "lr":
        write_batches(tmp_path / name, batches[name][cut:], first=cut)
    started(frame(), tmp_path).awaitTermination()
    rows = found_rows(spark, tmp_path, frame())
    assert sorted(map(repr, rows)) == sorted(map(repr, whole.rows))
    for changed, message in (
        (sql + " COMPENSATE USING none", "estimator was shrink, and is none"),
        (sql.replace("'7'", "'8'"), "delay was 7s, and is 8s"),
        (sql + " CONFIDENCE 0.9", "confidence was 0.95, and is 0.9"),
    ):
        for name in "lr":
            write_batches(tmp_path / name, [batches[name][-1]], first=100)
        query = started(frame(changed), tmp_path)
        with pytest.raises(SqlExtError, match=f"belongs to another query: {message}"):
            query.awaitTermination()


@pytest.mark.every_spark("streams: early answers")
def test_a_stream_of_three_files(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Half of the rows, the others, the row that closes."""
    half = len(BATCHES[0]) // 2
    for name, batches in zip("lr", BATCHES, strict=True):
        parts = (batches[:half], batches[half:-1], batches[-1:])
        write_batches(tmp_path / name, [[row for batch in part for row in batch] for part in parts])
        register(spark, f"short_{name}", tmp_path / name)
    frame = session.sql(f"{BATCH.format('').replace('FROM ', 'FROM short_').replace('short_(', '(')} {EMIT}")
    started(frame, tmp_path).awaitTermination()
    final = of_phase(found_rows(spark, tmp_path, frame), "final")
    counts = {row["start"]: row["n"] for row in session.sql(BATCH.format("_t")).collect()}
    del counts[max(counts)]  # the closing row's is never final
    assert {start: row["n"] for start, row in final.items()} == counts
    drop_views(spark, "short_l", "short_r")


@pytest.mark.slow
def test_another_operator_may_read_final_rows(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    inner = f"{BATCH.format('')} {EMIT}"
    frame = session.sql(
        f"SELECT start, n, phase, sum(n) OVER w AS total FROM ({inner}) WHERE phase = 'final' WINDOW w AS "
        "(PARTITION BY phase ORDER BY start ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"
    )
    started(frame, tmp_path).awaitTermination()
    found = {row["start"]: row for row in found_rows(spark, tmp_path, frame)}
    counts = {row["start"]: row["n"] for row in session.sql(BATCH.format("_t")).collect()}
    assert len(found) >= COUNT - 3  # the last ones wait for rows after them
    for start, row in found.items():
        near = [n for other, n in counts.items() if 0 <= (start - other).total_seconds() <= 20]
        assert (row["n"], row["total"]) == (counts[start], sum(near))


def test_what_only_spark_knows_is_refused_at_its_place(session: Session, spark: SparkSession, views: Path) -> None:
    windows = [f"window({name}.ts, '10 seconds')" for name in "lr"]
    on = f"JOIN r ON l.k = r.k AND {windows[0]} = {windows[1]} GROUP BY {windows[0]}"
    check_refused(
        session, f"SELECT count(*) AS n FROM l {on} EMIT AFTER DELAY [[INTERVAL 15 SECONDS]]", "final 15s after their"
    )
    spark.table("l").selectExpr("*", "cast(v AS decimal(30, 2)) AS d", "array(k) AS ks").createOrReplaceTempView("p")
    check_refused(
        session, f"SELECT [[sum(p.d)]] AS n FROM p {on.replace('l.', 'p.')} {EMIT}", "values of the type decimal"
    )
    check_refused(
        session, f"SELECT count(*) AS n FROM p {on.replace('l.k', '[[p.s]]').replace('l.', 'p.')} {EMIT}", "the types"
    )
    check_refused(session, f"SELECT sum([[abs(p.ks)]]) AS n FROM p {on.replace('l.', 'p.')} {EMIT}", "abs")
    stream = spark.readStream.schema("k int, ts timestamp, x timestamp").parquet(str(views / "l"))
    stream.createOrReplaceTempView("p")
    check_refused(session, f"SELECT count(*) AS n FROM [[p]] {on.replace('l.', 'p.')} {EMIT}", "has no watermark")
    stream.withWatermark("x", "1 second").createOrReplaceTempView("p")
    check_refused(session, f"SELECT count(*) AS n FROM [[p]] {on.replace('l.', 'p.')} {EMIT}", "has its watermark on x")
    drop_views(spark, "p")
