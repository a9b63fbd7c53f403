"""Lowering through our own nodes gives plain Spark's rows, names and types, for every query of ``lowering.sql``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.relational.physical_plan import ExecutionContext, execute_cached
from sqlext_planner.strategies import contains_extension, plan_physical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_planner.catalog import Catalog

TABLES = {
    "t": "SELECT * FROM VALUES (1, 10, 'x', 1.5D), (1, 10, 'x', 1.5D), (2, 20, 'y', NULL), (3, NULL, 'xy', 3D), "
    "(NULL, 30, NULL, 0D), (4, 5, 'x', -1D), (5, 40, NULL, double('NaN')) AS t(a, b, c, d)",
    "u": "SELECT * FROM VALUES (1, 100, 'x'), (2, 200, 'y'), (2, 201, 'y'), (7, 300, 'z'), "
    "(NULL, 400, NULL) AS u(x, y, z)",
    "e": "SELECT id, boss, name, CAST(pay AS DECIMAL(10, 2)) AS pay, DATE(hired) AS hired FROM VALUES "
    "(1, NULL, 'ann', 1000, '2015-01-31'), (2, 1, 'bob', 500.5, '2019-06-01'), (3, 1, 'cid', 700, '2020-02-29'), "
    "(4, 2, 'dee', 510, '2019-06-01'), (5, 2, 'eve', 5, '2021-12-31') AS e(id, boss, name, pay, hired)",
}


@dataclass(frozen=True)
class Query:
    name: str
    sql: str
    ordered: bool


def queries() -> list[Query]:
    text = (Path(__file__).parent / "lowering.sql").read_text(encoding="utf-8")
    found = []
    for block in text.split("-- name: ")[1:]:
        name, _, sql = block.partition("\n")
        found.append(Query(name.removesuffix(", ordered"), sql.strip(), name.endswith(", ordered")))
    return found


QUERIES = queries()


@pytest.fixture(scope="module")
def catalog(spark: SparkSession) -> Iterator[Catalog]:
    from sqlext.catalog import SparkCatalog

    for name, sql in TABLES.items():
        spark.sql(sql).createOrReplaceTempView(name)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield SparkCatalog(spark)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    for name in TABLES:
        spark.catalog.dropTempView(name)


def lower(sql: str, spark: SparkSession, catalog: Catalog, optimizer: RuleExecutor) -> DataFrame:
    from sqlext.analyzer.queries import analyze
    from sqlext.syntax.parser import parse

    statement = parse(sql)
    assert statement.kind == "query", "our parser leaves this text to Spark"
    physical = plan_physical(optimizer.optimize(analyze(statement, catalog)).final, Config(), catalog)
    assert contains_extension(physical) == []
    return execute_cached(physical, ExecutionContext(spark))


def rows(frame: DataFrame) -> list[str]:
    return [repr(tuple(row)) for row in frame.collect()]


def names(frame: DataFrame, like: DataFrame) -> list[str]:
    """Column names, without those that Spark makes of an expression without alias: ours are the user's text."""
    return [name for name, spark in zip(frame.columns, like.columns, strict=True) if re.fullmatch(r"[\w.]+", spark)]


def types(frame: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in frame.schema]


def test_there_are_many_queries_with_names_of_their_own() -> None:
    assert len(QUERIES) >= 60
    assert len({query.name for query in QUERIES}) == len(QUERIES)


@pytest.mark.few(6)
@pytest.mark.parametrize("query", QUERIES, ids=[re.sub(r"\W+", "-", query.name) for query in QUERIES])
def test_lowered_rows_are_sparks(query: Query, spark: SparkSession, catalog: Catalog) -> None:
    """With all rules and with none, so that a failure shows whether a rule or the lowering is wrong."""
    expected = spark.sql(query.sql)
    wanted = rows(expected)
    for optimizer in (RuleExecutor(()), RuleExecutor(BATCHES)):
        actual = lower(query.sql, spark, catalog, optimizer)
        assert names(actual, like=expected) == names(expected, like=expected)
        assert types(actual) == types(expected)
        if query.ordered:
            assert rows(actual) == wanted
        else:
            assert Counter(rows(actual)) == Counter(wanted)


def test_keys_are_told_from_items_where_spark_does_not_return_them(spark: SparkSession, catalog: Catalog) -> None:
    spark.conf.set("spark.sql.retainGroupColumns", "false")
    try:
        frame = lower("SELECT c, sum(b) AS s FROM t GROUP BY c", spark, catalog, RuleExecutor(BATCHES))
        assert frame.columns == ["c", "s"]
        assert Counter(rows(frame)) == Counter(rows(spark.sql("SELECT c, sum(b) FROM t GROUP BY c")))
    finally:
        spark.conf.unset("spark.sql.retainGroupColumns")
