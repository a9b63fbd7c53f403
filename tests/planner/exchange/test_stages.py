"""An operator whose result the next exchange only selects columns of runs in that exchange's scatter task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlext_planner.exchange.driver import Shipment, run_stage, ship, staged_bytes, upstream_of
from sqlext_planner.exchange.wire import Size
from sqlext_planner.relational.physical_plan import ExecutionContext

from sqlext import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.tidied]


def doubled(factor: int, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns a (as given) and b (a times `factor`)."""
    for batch in batches:
        column = batch.column(0)
        yield pa.RecordBatch.from_arrays([column, pc.multiply(column, factor)], names=["a", "b"])


def operators_in(frame: DataFrame) -> int:
    """How many Python operators run one after another in a frame's plan."""
    return str(frame._jdf.queryExecution().optimizedPlan().toString()).count("MapInArrow")


def staged(spark: SparkSession, context: ExecutionContext) -> DataFrame:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("a", LongType()), StructField("b", LongType())])
    return run_stage(spark.range(10), partial(doubled, 3), schema, Size(12_345), context)


def test_a_selection_of_a_stages_columns_is_known(spark: SparkSession) -> None:
    context = ExecutionContext(spark)
    frame = staged(spark, context)
    for shape, places in ((frame, (0, 1)), (frame.selectExpr("b as x", "a", "b").toDF("p", "q", "r"), (1, 0, 1))):
        found = upstream_of(shape, context)
        assert found is not None
        assert found[1].columns == places
        assert found[1].types == (pa.int64(),) * len(places)
        assert found[0].size == Size(12_345)
        assert staged_bytes(shape, context) == 12_345


def test_anything_else_above_a_stage_is_spark_s(spark: SparkSession) -> None:
    context = ExecutionContext(spark)
    frame = staged(spark, context)
    for shape in (frame.selectExpr("a + 1 as a"), frame.where("a > 3"), frame.limit(2), frame.union(frame)):
        assert upstream_of(shape, context) is None
    assert staged_bytes(frame.where("a > 3"), context) == 12_345
    assert upstream_of(frame, ExecutionContext(spark)) is None
    assert staged_bytes(spark.range(3).toDF("a"), context) is None
    unknown = spark.range(3).mapInArrow(lambda batches: batches, "id long")
    assert upstream_of(unknown, context) is None


def test_the_scatter_task_runs_the_stage(spark: SparkSession) -> None:
    context = ExecutionContext(spark)
    frame = staged(spark, context).select("b")
    wire = ship([Shipment(0, frame, ("b",))], context)
    assert wire.sizes == (Size(12_345),)
    assert operators_in(wire.frame) == 1
    assert {row.pid for row in wire.frame.collect()} == {0}


WINDOWS = """
    SELECT id, s, sum(v) OVER w1 AS a, count(s) OVER w2 AS b, distinct_count(id) OVER w2 AS c, {extra} AS d
    FROM stage_input WINDOW
    w1 AS (PARTITION BY k1 ORDER BY ts ROWS_RANGE BETWEEN 30 PRECEDING AND CURRENT ROW),
    w2 AS (PARTITION BY k2 ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW),
    w3 AS (PARTITION BY k1, k2 ORDER BY ts ROWS_RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)
"""


@pytest.mark.parametrize(("extra", "fused_stages"), [("max(v) OVER w3", 2), ("max(v + 1) OVER w3", 1)])
def test_windows_of_several_partitionings_give_the_same(
    spark: SparkSession, extra: str, fused_stages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fused and through Spark's rows; where Spark has to compute an argument, the rows go through Spark."""
    rows = spark.range(0, 500, 1, 3).selectExpr(
        "id", "id * 7 % 5 k1", "cast(id % 11 as string) k2", "id div 9 ts", "id * 37 % 100 / 100D v", "'s' || id % 3 s"
    )
    rows.createOrReplaceTempView("stage_input")
    text = WINDOWS.format(extra=extra)
    fused = Session(spark).sql(text)
    with monkeypatch.context() as patch:
        patch.setattr("sqlext_planner.exchange.driver.upstream_of", lambda frame, context: None)
        plain = Session(spark).sql(text)
    assert operators_in(plain) - operators_in(fused) == fused_stages
    assert sorted(map(tuple, fused.collect())) == sorted(map(tuple, plain.collect()))
