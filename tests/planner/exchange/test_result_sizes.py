"""What the sizes of operators' results are taken to be, and so the partitions of the next exchange."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType
from sqlext_planner.exchange.arrow_scan import plain_files
from sqlext_planner.exchange.wire import Size, row_by_row, row_bytes

from sqlext import Session

pytestmark = pytest.mark.tidied


def test_rows_have_the_widths_of_their_types() -> None:
    schema = StructType().add("a", IntegerType()).add("b", LongType()).add("c", StringType())
    assert row_bytes(schema) == 4 + 8 + 20
    assert row_bytes(StructType().add("d", ArrayType(LongType()))) == 20


def test_a_result_has_its_sources_rows() -> None:
    narrow = StructType().add("a", LongType())
    wide = StructType([*narrow.fields, *(StructType().add(f"c{i}", LongType())[0] for i in range(9))])
    assert row_by_row(None, narrow, wide) is None
    assert row_by_row(Size(1_000, 50), narrow, wide) == Size(50 * 80, 50)
    assert row_by_row(Size(1_000), narrow, wide) == Size(10_000)


def test_literals_beside_a_scan_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array(range(1_000), pa.int64())}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    files = [plain_files(each) for each in (frame, frame.selectExpr("a", "'four' AS b", "1 AS c"))]
    plain, more = (each.scan(2) for each in files if each is not None)
    assert (plain.rows, plain.bytes) == (1_000, 8_000)
    assert more.bytes == 8_000 + 1_000 * (8 + 8)


def test_many_results_of_a_window_make_more_partitions_for_the_next_exchange(spark: SparkSession) -> None:
    spark.range(100_000).selectExpr("id % 7 AS k", "id AS ts", "id AS v").createOrReplaceTempView("sizes_t")
    calls = ", ".join(f"sum(v + {i}) OVER w AS s{i}" for i in range(30))
    text = (
        f"SELECT * FROM (SELECT k, ts, {calls} FROM sizes_t WINDOW w AS (PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)) q LAST JOIN sizes_t b ORDER BY b.ts ON q.ts = b.v"
    )
    spark.conf.set("sqlext.exchange.targetPartitionBytes", str(4 << 20))
    spark.conf.set("sqlext.lastJoin.strategy", "exchange")
    try:
        partitions = Session(spark).sql(text).rdd.getNumPartitions()
    finally:
        spark.conf.unset("sqlext.exchange.targetPartitionBytes")
        spark.conf.unset("sqlext.lastJoin.strategy")
    assert partitions >= 100_000 * 32 * 8 // (4 << 20)
