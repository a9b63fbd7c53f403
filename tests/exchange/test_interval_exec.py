"""IntervalJoinExec on Spark: every form of every kind gives the rows of Spark's own join on the condition's text."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.optimizer import Optimizer
from sqlext_planner.physical.base import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.physical.interval_join import IntervalJoinExec
from sqlext_planner.strategies import plan_physical

from sqlext.analyzer import analyze
from sqlext.catalog import SparkCatalog
from sqlext.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = pytest.mark.spark

_SCHEMA = "id int, k bigint, s string, ts bigint, te bigint, x double, t timestamp, d date"
_SWEEP = {"intervalJoin.leastPairs": "1"}
#: Settings for a form each: tiles, tiles with so little memory that everything goes to disk, one partition.
FORMS = {
    "tiles": {"intervalJoin.strategy": "exchange", "exchange.partitions": "3", "intervalJoin.tiles": "5"},
    "disk": {
        "intervalJoin.strategy": "exchange",
        "exchange.partitions": "2",
        "intervalJoin.tiles": "3",
        "exchange.targetPartitionBytes": "1",
    },
    "single": {"intervalJoin.strategy": "exchange", "exchange.partitions": "1"},
    "broadcast": {"intervalJoin.strategy": "broadcast"},
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
def tables(spark: Spark) -> Iterable[SparkCatalog]:
    for name, seed, count in (("a", 1, 40), ("b", 2, 55), ("nobody", 3, 0)):
        spark.createDataFrame(rows(seed, count), _SCHEMA).repartition(2).createOrReplaceTempView(name)
    yield SparkCatalog(spark)
    for name in ("a", "b", "nobody"):
        spark.catalog.dropTempView(name)


def planned(sql: str, catalog: SparkCatalog, settings: dict[str, str]) -> tuple[PhysicalPlan, Config]:
    config = Config.from_mapping({f"sqlext.{key}": value for key, value in (_SWEEP | settings).items()})
    trace = Optimizer().optimize(analyze(parse(sql), catalog))
    return plan_physical(trace.final, config, catalog), config


def ours(spark: Spark, sql: str, catalog: SparkCatalog, settings: dict[str, str]) -> list[str]:
    physical, config = planned(sql, catalog, settings)
    assert any(isinstance(node, IntervalJoinExec) for node in physical.walk()), sql
    return ordered(execute_cached(physical, ExecutionContext(spark, config)))


def ordered(frame: DataFrame) -> list[str]:
    """The rows as a bag, in which NaN is equal to itself."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def columns(kind: str) -> str:
    return "a.id, a.x" if kind in ("semi", "anti") else "a.id, b.id AS other, b.s"


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_with_and_without_keys(spark: Spark, tables: SparkCatalog, form: str) -> None:
    """One statement for all, as a query costs more than the join in it."""
    for kind, condition in itertools.product(KINDS, ("overlap", "guarded")):
        texts = [
            f"SELECT {number} AS c, {columns(kind)} FROM {KINDS[kind]} ON {key}{CONDITIONS[condition]}"
            for number, key in enumerate(KEYS.values())
        ]
        sql = " UNION ALL ".join(texts)
        assert ours(spark, sql, tables, FORMS[form]) == ordered(spark.sql(sql)), (kind, condition)


@pytest.mark.parametrize("form", ["tiles", "broadcast"])
@pytest.mark.parametrize("kind", ["inner", "anti"])
def test_every_type_and_condition(spark: Spark, tables: SparkCatalog, form: str, kind: str) -> None:
    texts = [
        f"SELECT {number} AS c, {columns(kind)} FROM {KINDS[kind]} ON {key}{CONDITIONS[name]}"
        for number, (name, key) in enumerate(itertools.product(CONDITIONS, KEYS.values()))
    ]
    sql = " UNION ALL ".join(texts)
    assert ours(spark, sql, tables, FORMS[form]) == ordered(spark.sql(sql))
