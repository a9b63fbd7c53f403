"""EMIT AFTER over windows of rows on Spark: early rows within a trigger, final rows are those of batch, restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from tests.sql.early_rows import BOUNDS, TRIGGER, Run, arriving, early_views, found_rows, run_whole
from tests.sql.streams import (
    SECOND,
    START,
    check_refused,
    drop_views,
    register,
    rounded,
    sorted_rows,
    started,
    write_batches,
)

pytestmark = pytest.mark.tidied

#: Seconds of all rows, and from a row to its early answer.
SECONDS, AFTER = 44, 2
BATCHES = [arriving(number, SECONDS, keys=3) for number in range(2)]
EMIT = "EMIT AFTER DELAY INTERVAL '2' SECONDS"
QUERY = (
    "SELECT k, ts, v, k + 1 AS more, count(*) OVER w AS n, sum(v) OVER w AS s, avg(x) OVER u AS a FROM l{0} WINDOW "
    "w AS (UNION r{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW), "
    "u AS (UNION r{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5s PRECEDING AND 1s FOLLOWING)"
)
VALUES = ("k", "ts", "v", "more", "n", "s", "a")


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with early_views(spark, tmp_path_factory.mktemp("early_windows"), BATCHES) as folder:
        yield folder


@pytest.fixture(scope="module")
def whole(session: Session, views: Path) -> Run:
    return run_whole(session.sql(f"{QUERY.format('')} {EMIT}"), views / "checkpoint", "ts")


def values(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(rounded(row[name]) for name in VALUES) for row in rows), key=repr)


def test_early_rows_come_within_a_trigger_and_final_rows_are_those_of_batch(session: Session, whole: Run) -> None:
    assert whole.frame.columns == [*VALUES, *(f"{name}_{bound}" for name in "nsa" for bound in BOUNDS), "phase"]
    batch = session.sql(QUERY.format("_t"))
    assert whole.frame.dtypes[: len(VALUES)] == batch.dtypes
    expected = sorted_rows(batch)
    assert values(whole.of("final")) == sorted(expected, key=repr)
    times = whole.when
    early = whole.of("early")
    closing = {row["ts"] for row in early if row["ts"].timestamp() > START // SECOND + SECONDS}
    # the last rows are due when they are final: the next row of all comes much later
    in_time = Counter(row[1] for row in expected if row[1].timestamp() < START // SECOND + SECONDS - AFTER - 1)
    answered = Counter(row["ts"] for row in early if row["ts"] not in closing)
    assert in_time <= answered <= Counter(row[1] for row in expected)
    comes = {time: number for number, one in enumerate(BATCHES[0]) for _, time, *_ in one}
    for (time, phase), number in times.items():
        if phase == "early" and time in in_time:
            micros = round(time.timestamp() * SECOND)
            due = max(comes[micros], int((micros - START) / SECOND + AFTER) // TRIGGER)
            assert due <= number <= due + 1
            assert times[time, "final"] > number
    # the last third, when the shares are known
    exact = {row[1]: dict(zip(VALUES, row, strict=True)) for row in expected}
    for name in "nsa":
        last = [row for row in early if row["ts"] not in closing and row["ts"] >= sorted(exact)[len(exact) * 2 // 3]]
        known = [row for row in last if row[f"{name}_lower"] is not None and exact[row["ts"]][name] is not None]
        held = [row[f"{name}_lower"] <= exact[row["ts"]][name] <= row[f"{name}_upper"] for row in known]
        assert len(known) > 50
        assert sum(held) >= 0.85 * len(held)
        assert sum(row[f"{name}_reliable"] for row in known) > len(known) // 2
        assert sum(row[f"{name}_coverage"] < 1 for row in known) > len(known) // 2


@pytest.mark.slow
def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path, whole: Run) -> None:
    batches = dict(zip("lr", BATCHES, strict=True))
    sql = f"{QUERY.format('')} {EMIT}".replace("FROM l ", "FROM {l} ").replace("UNION r ", "UNION {r} ")

    def frame(text: str = sql) -> DataFrame:
        for name in "lr":
            register(spark, f"grown_{name}", tmp_path / name)
        return session.sql(text, l=spark.table("grown_l"), r=spark.table("grown_r"))

    cut = 15
    for part, first in ((slice(cut), 0), (slice(cut, None), cut)):
        for name in "lr":
            write_batches(tmp_path / name, batches[name][part], first=first)
        started(frame(), tmp_path).awaitTermination()
    rows = found_rows(spark, tmp_path, whole.frame)
    assert values([row for row in rows if row["phase"] == "final"]) == values(whole.of("final"))
    early = [row for row in rows if row["phase"] == "early"]
    assert Counter(row["ts"] for row in early) == Counter(row["ts"] for row in whole.of("early"))
    # what was learned before is known behind the cut
    begin = START // SECOND + cut * TRIGGER
    behind = [row for row in early if begin <= row["ts"].timestamp() < begin + TRIGGER]
    assert sum(row["n_reliable"] for row in behind) > len(behind) // 2
    for changed, message in (
        (sql + " COMPENSATE USING none", "estimator was shrink, and is none"),
        (sql.replace("'2'", "'1'"), "delay was 2s, and is 1s"),
    ):
        for name in "lr":
            write_batches(tmp_path / name, [batches[name][-1]], first=100)
        query = started(frame(changed), tmp_path)
        with pytest.raises(SqlExtError, match=f"belongs to another query: {message}"):
            query.awaitTermination()


def test_what_only_spark_knows_is_refused_at_its_place(session: Session, spark: SparkSession, views: Path) -> None:
    window = "WINDOW w AS (UNION r PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND 1s FOLLOWING)"
    check_refused(
        session,
        f"SELECT count(*) OVER w AS n FROM l {window} EMIT AFTER DELAY [[INTERVAL 6 SECONDS]]",
        "rows are final 6s after their time",
    )
    spark.table("l").selectExpr("k", "ts", "cast(v AS decimal(30, 2)) AS v", "x", "s").createOrReplaceTempView("p")
    alone = window.replace("UNION r ", "")
    check_refused(session, f"SELECT [[sum(v)]] OVER w AS n FROM p {alone} {EMIT}", "values of the type decimal")
    check_refused(
        session, f"SELECT count(*) OVER w AS n FROM [[l_t]] {window.replace('r ', 'r_t ')} {EMIT}", "FROM is a table"
    )
    check_refused(
        session, f"SELECT count(*) OVER w AS n FROM l {window.replace('UNION r', 'UNION [[r_t]]')} {EMIT}", "a table"
    )
    stream = spark.readStream.schema("k int, ts timestamp, v bigint, x double, s string").parquet(str(views / "l"))
    stream.createOrReplaceTempView("p")
    check_refused(session, f"SELECT count(*) OVER w AS n FROM [[p]] {alone} {EMIT}", "has no watermark")
    drop_views(spark, "p")
