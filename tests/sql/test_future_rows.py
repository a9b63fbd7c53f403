"""`sqlext.stream.future`: a row from far in the future, and what it does to the others of its stream."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.streams import bounded_future

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    SECOND,
    START,
    Row,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    write_batches,
)

#: After any clock that runs the tests.
FUTURE = START + 200 * 366 * 86_400 * SECOND
WINDOW = (
    "SELECT k, ts, sum(v) OVER w AS s FROM {} WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE "
    "BETWEEN 20s PRECEDING AND CURRENT ROW)"
)


def rows_at(*seconds: int) -> list[Row]:
    return [(1, START + second * SECOND, second, 0.5, "a") for second in seconds]


WILD: Row = (1, FUTURE, 7, 0.5, "wild")
CLOSING: Row = (0, START + 100_000 * SECOND, 0, 0.0, "")


def batches(*wild: Row) -> list[list[Row]]:
    return [rows_at(1, 2), [*rows_at(3), *wild], rows_at(4), rows_at(5, 6), [CLOSING]]


def streamed_with(session: Session, text: str, folder: Path) -> tuple[list[Any], dict[str, int]]:
    query = started(session.sql(text), folder)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert ("future rows" in str(figures)) == ("future_rows" in figures.figures)
    return sorted_rows(session.spark.read.parquet(str(folder / "out"))), dict(figures.figures)


@pytest.fixture
def fresh(spark: SparkSession) -> Session:
    return Session(spark)


@pytest.mark.every_spark("streams: rows of the future")
def test_rows_of_the_future_are_left_out_below_the_watermark(fresh: Session, tmp_path: Path) -> None:
    spark = fresh.spark
    write_batches(tmp_path / "wild", batches(WILD))
    write_batches(tmp_path / "tame", batches())
    with stream_conf(spark):
        register(spark, "wild", tmp_path / "wild")
        register(spark, "tame", tmp_path / "tame")
        wanted = sorted_rows(fresh.sql(WINDOW.format("tame_t")))
        late, _ = streamed_with(fresh, WINDOW.format("wild"), tmp_path / "kept")
        assert len(late) < len(wanted)  # the rows after it are late, as in Spark
        bounded = Session(spark, config={"sqlext.stream.future": "drop"})
        rows, figures = streamed_with(bounded, WINDOW.format("wild"), tmp_path / "dropped")
        assert rows == wanted
        assert (figures["future_rows"], figures["late_rows"]) == (1, 0)
        # above the watermark there may be what the statement and its views add
        spark.sql("SELECT *, k + 1 AS more FROM wild WHERE s <> 'b'").createOrReplaceTempView("wild_view")
        rows, figures = streamed_with(bounded, WINDOW.format("(SELECT * FROM wild_view)"), tmp_path / "view")
        assert (rows, figures["future_rows"]) == (wanted, 1)
    drop_views(spark, "wild", "tame")
    spark.catalog.dropTempView("wild_view")


@pytest.mark.slow
def test_joins_of_two_streams(fresh: Session, tmp_path: Path) -> None:
    spark = fresh.spark
    join = (
        "SELECT a.v AS x, b.v AS y FROM {0} a JOIN {1} b "
        "ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts"
    )
    write_batches(tmp_path / "wild", batches(WILD))
    write_batches(tmp_path / "tame", batches())
    with stream_conf(spark):
        register(spark, "wild", tmp_path / "wild")
        register(spark, "tame", tmp_path / "tame")
        bounded = Session(spark, config={"sqlext.stream.future": "drop"})
        text = "SELECT /*+ SWEEP */" + join.removeprefix("SELECT")
        rows, figures = streamed_with(bounded, text.format("wild", "wild"), tmp_path / "join")
        wanted = sorted_rows(fresh.sql(join.format("tame_t", "tame_t")))
    drop_views(spark, "wild", "tame")
    assert [row for row in rows if row != (0, 0)] == [row for row in wanted if row != (0, 0)]
    assert figures["future_rows"] == 2  # one a side


def test_the_query_fails_at_such_a_row(fresh: Session, tmp_path: Path) -> None:
    spark = fresh.spark
    write_batches(tmp_path / "wild", batches(WILD))
    with stream_conf(spark):
        register(spark, "wild", tmp_path / "wild")
        bounded = Session(spark, config={"sqlext.stream.future": "fail"})
        query = started(bounded.sql(WINDOW.format("wild")), tmp_path / "fails")
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination()
        assert "a row of a stream has a time in ts that is more than 3,600 seconds after now" in str(caught.value)
        wide = Session(
            spark, config={"sqlext.stream.future": "fail", "sqlext.stream.futureBound": str(100 * 366 * 86_400)}
        )
        with pytest.raises(StreamingQueryException):
            started(wide.sql(WINDOW.format("wild")), tmp_path / "still").awaitTermination()
    drop_views(spark, "wild")


@pytest.mark.slow
def test_the_bound_counts_from_now(fresh: Session, tmp_path: Path) -> None:
    """Rows of the past stay, whatever the bound, and tables know no future."""
    spark = fresh.spark
    write_batches(tmp_path / "tame", batches())
    with stream_conf(spark):
        register(spark, "tame", tmp_path / "tame")
        bounded = Session(spark, config={"sqlext.stream.future": "fail", "sqlext.stream.futureBound": "0"})
        rows, figures = streamed_with(bounded, WINDOW.format("tame"), tmp_path / "all")
        assert rows == sorted_rows(bounded.sql(WINDOW.format("tame_t")))
        assert figures["future_rows"] == 0
    drop_views(spark, "tame")


@pytest.mark.slow
def test_watermarks_of_the_statement(fresh: Session, tmp_path: Path) -> None:
    spark = fresh.spark
    write_batches(tmp_path / "wild", batches(WILD))
    with stream_conf(spark):
        register(spark, "bare", tmp_path / "wild", delay=None)
        bounded = Session(spark, config={"sqlext.stream.future": "drop"})
        source = "(SELECT * FROM STREAM bare WATERMARK ts DELAY OF INTERVAL 5 SECONDS)"
        rows, figures = streamed_with(bounded, WINDOW.format(source), tmp_path / "out")
        assert len(rows) == 6
        assert (figures["future_rows"], figures["late_rows"]) == (1, 0)
    drop_views(spark, "bare")


@pytest.mark.slow
def test_a_query_goes_on_with_another_setting(fresh: Session, tmp_path: Path) -> None:
    """The checkpoint holds nothing of it."""
    spark = fresh.spark
    write_batches(tmp_path / "in", batches()[:2])
    with stream_conf(spark):
        register(spark, "wild", tmp_path / "in")
        started(fresh.sql(WINDOW.format("wild")), tmp_path).awaitTermination()
        write_batches(tmp_path / "in", [[*rows_at(4), WILD], rows_at(5, 6), [CLOSING]], first=2)
        bounded = Session(spark, config={"sqlext.stream.future": "drop"})
        rows, figures = streamed_with(bounded, WINDOW.format("wild"), tmp_path)
    drop_views(spark, "wild")
    assert len(rows) == 6
    assert (figures["future_rows"], figures["late_rows"]) == (1, 0)


def test_under_connect_rows_of_the_future_are_refused() -> None:
    """Where plans are out of reach."""
    frame: Any = SimpleNamespace(isStreaming=True, sparkSession=SimpleNamespace())
    with pytest.raises(ConfigurationError, match="under Spark Connect") as caught:
        bounded_future(frame, Config(stream_future="drop"))
    assert caught.value.condition == "spark-connect"


@pytest.mark.parametrize("value", ["often", ""])
def test_values(fresh: Session, value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"keep\|drop\|fail"):
        Session(fresh.spark, config={"sqlext.stream.future": value})
