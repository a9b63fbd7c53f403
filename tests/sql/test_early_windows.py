"""EMIT AFTER over windows of rows on Spark: early rows within a trigger, final rows are those of batch, restarts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from tests.sql.streams import (
    CLOSING,
    SECOND,
    START,
    Row,
    check_refused,
    drop_views,
    register,
    rounded,
    sorted_rows,
    started,
    stream_conf,
    write_batches,
)

#: Seconds: of all rows, from a row to its early answer, of a micro-batch; rows are up to 4 seconds late.
SECONDS, AFTER, TRIGGER = 44, 2, 2
EMIT = "EMIT AFTER DELAY INTERVAL '2' SECONDS"
QUERY = (
    "SELECT k, ts, v, k + 1 AS more, count(*) OVER w AS n, sum(v) OVER w AS s, avg(x) OVER u AS a FROM l{0} WINDOW "
    "w AS (UNION r{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW), "
    "u AS (UNION r{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5s PRECEDING AND 1s FOLLOWING)"
)
VALUES = ("k", "ts", "v", "more", "n", "s", "a")
BOUNDS = ("lower", "upper", "coverage", "reliable")


def arriving(seed: int) -> list[list[Row]]:
    """Rows of a stream by the micro-batch that brings them; the last one brings a row that closes it."""
    rng = random.Random(seed)
    batches: list[list[Row]] = [[] for _ in range(SECONDS // TRIGGER + 3)]
    for _ in range(10 * SECONDS):
        time = rng.random() * SECONDS
        value = rng.choice([None, *range(-3, 9)])
        row: Row = (rng.choice([None, 0, 1, 2]), START + int(time * SECOND), value, value and value / 4, "")
        batches[int((time + 4 * rng.random()) / TRIGGER)].append(row)
    return [*batches, [(0, START + CLOSING * SECOND, 0, 0.0, "")]]


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams l, r and tables l_t, r_t of the same rows; a file is what a trigger brings."""
    folder = tmp_path_factory.mktemp("early_windows")
    with stream_conf(spark):
        for number, name in enumerate("lr"):
            write_batches(folder / name, arriving(number))
            register(spark, name, folder / name)
        yield folder
        drop_views(spark, "l", "r", "grown_l", "grown_r")


@dataclass(frozen=True)
class Run:
    """The rows of a query that ran from start to end, and the micro-batch of each."""

    frame: DataFrame
    rows: list[dict[str, Any]]
    when: dict[tuple[Any, str], int]

    def of(self, phase: str) -> list[dict[str, Any]]:
        """The rows of a phase."""
        return [row for row in self.rows if row["phase"] == phase]


@pytest.fixture(scope="module")
def whole(session: Session, views: Path) -> Run:
    frame = session.sql(f"{QUERY.format('')} {EMIT}")
    seen: list[tuple[dict[str, Any], int]] = []

    def write(rows: DataFrame, number: int) -> None:
        seen.extend((row.asDict(), number) for row in rows.collect())

    query = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(views / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return Run(frame, [row for row, _ in seen], {(row["ts"], row["phase"]): number for row, number in seen})


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
    comes = {time: number for number, one in enumerate(arriving(0)) for _, time, *_ in one}
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


def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path, whole: Run) -> None:
    batches = {name: arriving(number) for number, name in enumerate("lr")}
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
    found = spark.read.parquet(str(tmp_path / "out")).toDF(*whole.frame.columns)
    rows = [row.asDict() for row in found.collect()]
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
