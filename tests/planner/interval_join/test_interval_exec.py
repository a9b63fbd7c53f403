"""IntervalJoinExec on Spark: every form of every kind gives the rows of Spark's own join on the condition's text."""

from __future__ import annotations

import itertools
import random
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.interval_join.execution import IntervalJoinExec
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.spark.versions import to_arrow_schema
from sqlext_planner.strategies import plan_physical

from sqlext.analyzer.queries import analyze
from sqlext.catalog import SparkCatalog
from sqlext.syntax.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = pytest.mark.spark

_SCHEMA = "id int, k bigint, s string, ts bigint, te bigint, x double, t timestamp, d date"
_SWEEP = {"intervalJoin.leastPairs": "1"}
#: Settings for a form each: tiles, tiles with so little memory that everything goes to disk, one partition.
FORMS = {
    "tiles": {"intervalJoin.strategy": "exchange", "exchange.partitions": "2", "intervalJoin.tiles": "4"},
    "disk": {
        "intervalJoin.strategy": "exchange",
        "exchange.partitions": "2",
        "intervalJoin.tiles": "3",
        "exchange.targetPartitionBytes": "1",
    },
    "single": {"intervalJoin.strategy": "exchange", "exchange.partitions": "1"},
    "broadcast": {"intervalJoin.strategy": "broadcast"},
    "sweep": {"intervalJoin.strategy": "broadcast", "intervalJoin.algorithm": "lazy-join-by-s"},
    "auto": {},
}
KINDS = {
    "inner": "a JOIN b",
    "left": "a LEFT JOIN b",
    "right": "a RIGHT JOIN b",
    "full": "a FULL JOIN b",
    "semi": "a LEFT SEMI JOIN b",
    "anti": "a LEFT ANTI JOIN b",
}
CONDITIONS = {
    "overlap": "a.ts < b.te AND b.ts < a.te",
    "contains": "a.ts <= b.ts AND b.te <= a.te",
    "point": "a.ts BETWEEN b.ts AND b.te",
    "numbers": "b.ts BETWEEN a.ts - 2 AND a.ts + 3",
    "times": "b.t BETWEEN a.t - INTERVAL 2 HOURS AND a.t + INTERVAL 30 MINUTES",
    "days": "b.d > a.d - 2 AND b.d <= a.d + INTERVAL 1 DAY",
    "doubles": "a.x <= b.x AND b.x < a.x + 1.5D",
    "texts": "a.s <= b.s AND b.s <= a.s || 'b'",
    "guarded": "a.ts < b.te AND b.ts < a.te AND a.id % 3 > 0 AND b.id % 4 > 0",
}
KEYS = {"": "", "key": "a.k = b.k AND ", "safe": "a.s <=> b.s AND a.k = b.k AND "}


def rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Few values, so that ties abound; NULLs, reversed and empty periods."""
    import datetime as dt

    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return [
        (
            number,
            maybe(rng.randrange(3)),
            maybe(rng.choice(["", "a", "ab", "b"])),
            maybe(start := rng.randint(-9, 9)),
            maybe(start + rng.choice([-2, 0, 1, 2, 3, 8])),
            maybe(rng.choice([0.0, -0.0, 1.5, 2.0, -3.25, float("nan"), float("inf")])),
            maybe(dt.datetime(2024, 3, 1, 12) + dt.timedelta(minutes=30 * rng.randint(-9, 9))),
            maybe(dt.date(2024, 3, 1) + dt.timedelta(rng.randint(-4, 4))),
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def tables(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Iterable[SparkCatalog]:
    """Two tables in Parquet files, one whose file Spark reads (a repartitioned view), one without rows."""
    folder = tmp_path_factory.mktemp("interval_exec")
    schema = to_arrow_schema(StructType.fromDDL(_SCHEMA))
    for name, seed, count in (("a", 1, 40), ("b", 2, 55), ("nobody", 3, 0)):
        columns = list(zip(*rows(seed, count), strict=True)) or [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / f"{name}.parquet", row_group_size=16)
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    yield SparkCatalog(spark)
    for name in ("a", "b", "nobody"):
        spark.catalog.dropTempView(name)


def _settings(form: str | dict[str, str]) -> dict[str, str]:
    own = FORMS[form] if isinstance(form, str) else form
    return {f"sqlext.{key}": value for key, value in (_SWEEP | own).items()}


def planned(sql: str, catalog: SparkCatalog, settings: dict[str, str]) -> tuple[PhysicalPlan, Config]:
    config = Config.from_mapping(_settings(settings))
    trace = RuleExecutor(BATCHES).optimize(analyze(parse(sql), catalog))
    return plan_physical(trace.final, config, catalog), config


def ours(spark: Spark, sql: str, catalog: SparkCatalog, settings: dict[str, str]) -> list[str]:
    physical, config = planned(sql, catalog, settings)
    assert any(isinstance(node, IntervalJoinExec) for node in physical.walk()), sql
    return ordered(execute_cached(physical, ExecutionContext(spark, config)))


def ordered(frame: DataFrame) -> list[str]:
    """The rows as a bag, in which NaN is equal to itself."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def columns(kind: str) -> str:
    return "a.id, a.x, a.k AS other" if kind in ("semi", "anti") else "a.id, a.x, b.id AS other"


def union(texts: Iterable[str]) -> str:
    """One statement for all, told apart by a number: a query costs more than the join in it."""
    return " UNION ALL ".join(text.replace("SELECT ", f"SELECT {i} AS c, ", 1) for i, text in enumerate(texts))


# Every strategy is in `make test`; variations of the exchange on all kinds are for `make test-all`.
@pytest.mark.few(9)
@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.slow) if form in ("single", "disk") else form for form in FORMS]
)
def test_every_kind_with_and_without_keys(spark: Spark, tables: SparkCatalog, form: str) -> None:
    pairs = itertools.product(KINDS, ("", "safe"))
    sql = union(
        f"SELECT {columns(kind)} FROM {KINDS[kind]} ON {KEYS[key]}{CONDITIONS['guarded']}" for kind, key in pairs
    )
    assert ours(spark, sql, tables, FORMS[form]) == ordered(spark.sql(sql))


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["tiles", "broadcast"])
def test_every_type_and_condition(spark: Spark, tables: SparkCatalog, form: str) -> None:
    sql = union(
        f"SELECT {columns(kind)} FROM {KINDS[kind]} ON {CONDITIONS[name]}"
        for name, kind in itertools.product(CONDITIONS, ("inner", "anti"))
    )
    assert ours(spark, sql, tables, FORMS[form]) == ordered(spark.sql(sql))


@pytest.mark.parametrize("form", ["tiles", "broadcast", "auto"])
def test_counts_of_matches(spark: Spark, tables: SparkCatalog, form: str) -> None:
    """Aggregates over counts are those over pairs, types included; NULL where nothing matches."""
    over = "FROM a JOIN b ON a.ts < b.te AND b.ts < a.te"
    totals = "count(*) AS n, count(x) AS m, sum(id) AS i, sum(k) AS s, avg(k) AS v, min(d) AS lo, max(t) AS hi"
    for sql in (
        f"SELECT {re.sub(r'[(](?=[a-z])', '(a.', totals)} {over}",
        f"SELECT b.s, {re.sub(r'[(](?=[a-z])', '(b.', totals)} {over} AND a.k = b.k GROUP BY b.s",
        f"SELECT a.k, count(*) * 2 AS n, sum(a.id) / count(*) AS mean {over} AND a.k = b.k GROUP BY a.k",
        "SELECT count(*) AS n, sum(a.id) AS s FROM a JOIN nobody b ON a.ts < b.te AND b.ts < a.te",
    ):
        physical, _ = planned(sql, tables, FORMS[form])
        assert [node.node.kind for node in physical.walk() if isinstance(node, IntervalJoinExec)] == ["count"]
        expected = spark.sql(sql)
        frame = execute_cached(physical, ExecutionContext(spark, Config.from_mapping(_settings(form))))
        assert [item.dataType for item in frame.schema] == [item.dataType for item in expected.schema]
        assert ordered(frame) == ordered(expected)


def test_types_that_spark_converts_with_a_loss_are_sparks(spark: Spark, tables: SparkCatalog) -> None:
    sql = "SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.x <= b.ts AND b.ts < a.x + 2"
    assert ours(spark, sql, tables, FORMS["tiles"]) == ordered(spark.sql(sql))


def test_small_inputs_are_left_to_spark_when_it_runs(spark: Spark, tables: SparkCatalog) -> None:
    """Sizes that planning did not know."""
    sql = "SELECT a.id, b.id AS other FROM a JOIN b ON a.ts < b.te AND b.ts < a.te"
    physical, config = planned(sql, tables, {"intervalJoin.leastPairs": "1000000"})
    frame = execute_cached(physical, ExecutionContext(spark, config))
    assert "MapInArrow" not in str(frame._jdf.queryExecution().optimizedPlan())
    assert ordered(frame) == ordered(spark.sql(sql))


def test_copies_are_merged_behind_one_shuffle(spark: Spark, tables: SparkCatalog) -> None:
    sql = "SELECT a.id FROM a LEFT ANTI JOIN b ON a.ts < b.te AND b.ts < a.te"
    physical, config = planned(sql, tables, FORMS["tiles"])
    frame = execute_cached(physical, ExecutionContext(spark, config))
    assert ordered(frame) == ordered(spark.sql(sql))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReusedExchange" in plan
