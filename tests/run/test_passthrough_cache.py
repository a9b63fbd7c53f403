"""Queries that passed through once need no planning the next time, until what they read has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.run.passthrough_cache import PassthroughCache

PLAIN = "SELECT k, count(*) AS n FROM cached_t GROUP BY k"
WINDOW = """SELECT sum(k) OVER w AS s FROM cached_t
WINDOW w AS (UNION cached_t PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"""


class Counting(Session):
    """A Session that counts how many statements it plans."""

    planned = 0

    def _stage(self, *args: Any, **kwargs: Any) -> Any:
        self.planned += 1
        return super()._stage(*args, **kwargs)


def write(path: Path, rows: int, dtype: pa.DataType) -> Path:
    numbers = list(range(rows))
    pq.write_table(pa.table({"k": pa.array(numbers).cast(dtype), "ts": pa.array(numbers, pa.int64())}), path)
    return path


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[Counting]:
    """A Session with the view `cached_t` of three rows."""
    counting = Counting(spark)
    counting.register("cached_t", write(tmp_path / "t.parquet", 3, pa.int32()))
    yield counting
    spark.catalog.dropTempView("cached_t")


def test_the_same_query_is_planned_once(session: Counting) -> None:
    first = session.sql(PLAIN)
    again = session.sql(PLAIN)
    assert session.planned == 1
    assert sorted(first.collect()) == sorted(again.collect()) == [(0, 1), (1, 1), (2, 1)]


@pytest.mark.spark_since("4.1", "numbers of queries of WITH that can be told")
def test_a_query_with_names_of_its_own_is_planned_once(session: Counting) -> None:
    """Spark numbers the queries of WITH anew each time."""
    text = "WITH c AS (SELECT k, count(*) AS n FROM cached_t GROUP BY k) SELECT * FROM c a JOIN c b ON a.k = b.k"
    for _ in range(3):
        assert session.sql(text).count() == 3
    assert session.planned == 1


def test_values_in_place_of_markers_are_part_of_the_query(session: Counting) -> None:
    text = "SELECT count(*) FROM cached_t WHERE k < :most"
    for most in (1, 2, 1):
        assert session.sql(text, args={"most": most}).collect()[0][0] == most
    assert session.planned == 2


@pytest.mark.parametrize(("rows", "dtype"), [(3, pa.string()), (500, pa.int32())], ids=["types", "size"])
def test_a_view_of_other_data_is_planned_for(session: Counting, tmp_path: Path, rows: int, dtype: pa.DataType) -> None:
    session.sql(PLAIN)
    session.register("cached_t", write(tmp_path / "other.parquet", rows, dtype))
    assert session.sql(PLAIN).count() == rows
    assert session.planned == 2
    session.sql(PLAIN)
    assert session.planned == 2


def test_files_that_grew_are_planned_for(session: Counting, tmp_path: Path) -> None:
    session.sql(PLAIN)
    session.register("cached_t", write(tmp_path / "t.parquet", 5_000, pa.int32()))
    assert session.sql(PLAIN).count() == 5_000
    assert session.planned == 2


def test_settings_are_part_of_the_query(session: Counting) -> None:
    session.sql(PLAIN)
    session.spark.conf.set("sqlext.planner.alwaysLower", "true")
    try:
        assert session.sql(PLAIN).count() == 3
        session.sql(PLAIN)
        assert session.planned == 3  # what is lowered is planned every time
    finally:
        session.spark.conf.unset("sqlext.planner.alwaysLower")


def test_statements_of_the_extension_are_planned_every_time(session: Counting) -> None:
    for number in (1, 2):
        assert sorted(session.sql(WINDOW).collect()) == [(0,), (2,), (4,)]
        assert session.planned == number


def test_commands_run_once_each_time(session: Counting) -> None:
    session.sql("CREATE TABLE cached_c (k INT, ts BIGINT) USING parquet")
    try:
        for number in (1, 2, 3):
            session.sql("INSERT INTO cached_c SELECT * FROM cached_t")
            assert session.spark.table("cached_c").count() == 3 * number
    finally:
        session.sql("DROP TABLE cached_c")


def test_explain_and_dataframes_in_the_text_are_not_kept(session: Counting) -> None:
    frame = session.spark.table("cached_t")
    for _ in range(2):
        assert session.sql("SELECT count(*) FROM {t}", t=frame).collect()[0][0] == 3
        assert "cached_t" not in session.sql("EXPLAIN " + WINDOW).columns
        session.sql("EXPLAIN " + PLAIN)
    assert session.planned == 6
    assert not session._passed.passed


def test_a_dropped_view_is_sparks_error(session: Counting) -> None:
    from pyspark.errors import AnalysisException

    session.sql(PLAIN)
    session.spark.catalog.dropTempView("cached_t")
    with pytest.raises(AnalysisException, match="cached_t"):
        session.sql(PLAIN)


def test_the_query_not_used_for_longest_goes_first(spark: SparkSession) -> None:
    from sqlext_planner.config import Config

    cache = PassthroughCache(capacity=2)
    frames = {text: spark.sql(text) for text in ("SELECT 1", "SELECT 2", "SELECT 3")}
    keys = {text: (text, Config(), None) for text in frames}
    cache.remember(keys["SELECT 1"], frames["SELECT 1"])
    cache.remember(keys["SELECT 2"], frames["SELECT 2"])
    assert cache.holds(keys["SELECT 1"], spark.sql("SELECT 1"))
    assert not cache.holds(keys["SELECT 1"], frames["SELECT 2"])
    cache.remember(keys["SELECT 3"], frames["SELECT 3"])
    assert [text for text in frames if keys[text] in cache.passed] == ["SELECT 1", "SELECT 3"]


def test_streams_are_not_kept(spark: SparkSession) -> None:
    from sqlext_planner.config import Config

    cache, key = PassthroughCache(), ("SELECT * FROM s", Config(), None)
    cache.remember(key, spark.readStream.format("rate").load())
    assert key not in cache.passed


def test_a_source_that_cannot_tell_its_size_is_planned_every_time() -> None:
    from py4j.protocol import Py4JError
    from sqlext_planner.config import Config

    class Frame:
        isStreaming = False  # noqa: N815 - Spark's own name

        @property
        def _jdf(self) -> Frame:
            return self

        def queryExecution(self) -> None:  # noqa: N802 - Spark's own name
            raise Py4JError("no statistics")

    cache, key = PassthroughCache(), ("SELECT * FROM s", Config(), None)
    cache.remember(key, Frame())  # type: ignore[arg-type]
    assert key not in cache.passed
