"""Rules keep the rows of WINDOW UNION queries: each query of ``window_union.sql`` runs with the rules and without."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.optimizer.executor import PlanTrace, RuleExecutor
from sqlext_planner.relational.physical_plan import ExecutionContext, execute_cached
from sqlext_planner.strategies import plan_physical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.tidied

TYPES = {"k": "int", "ts": "timestamp", "v": "int", "n": "string"}
#: table -> rows (k, seconds, v, n), with ties inside tables and between them.
ROWS = {
    "a": [(1, 1, 1, "p"), (1, 5, 2, "q"), (1, 5, 3, "p"), (2, 5, 4, None), (None, 6, 5, "p"), (2, 30, 6, "q")],
    "b": [(1, 1, 10, "p"), (1, 5, 20, "q"), (2, 4, 40, None), (None, 2, 50, "p"), (3, 1, 60, "p")],
    "c": [(1, 5, 100, "q"), (1, 5, 200, "p"), (2, 5, 400, "p"), (None, 6, 500, None)],
}
TEXT = (Path(__file__).parent / "window_union.sql").read_text(encoding="utf-8")
CASES = re.findall(r"-- name: ([^\n]*), expect (\w+)\n(.*?)(?=\n-- name|\Z)", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> None:
    for name, rows in ROWS.items():
        values = [(k, f"2024-01-01 00:00:{second:02d}", v, n) for k, second, v, n in rows]
        frame = spark.createDataFrame(values, "k int, ts string, v int, n string").coalesce(1)
        frame.selectExpr("k", "timestamp(ts) AS ts", "v", "n").createOrReplaceTempView(name)


def run(sql: str, optimizer: RuleExecutor, spark: SparkSession) -> tuple[PlanTrace, DataFrame]:
    from sqlext.analyzer.queries import analyze
    from sqlext.catalog import DictCatalog
    from sqlext.syntax.parser import parse

    trace = optimizer.optimize(analyze(parse(sql), DictCatalog(dict.fromkeys(ROWS, TYPES))))
    return trace, execute_cached(plan_physical(trace.final, Config()), ExecutionContext(spark))


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "rule", "sql"), CASES, ids=[re.sub(r"\W+", "-", case[0]) for case in CASES])
def test_rules_keep_the_rows(name: str, rule: str, sql: str, spark: SparkSession, tables: None) -> None:
    (_, plain), (trace, optimized) = run(sql, RuleExecutor(()), spark), run(sql, RuleExecutor(BATCHES), spark)
    assert rule in trace.rules
    assert optimized.schema == plain.schema
    assert Counter(map(repr, optimized.collect())) == Counter(map(repr, plain.collect()))
