"""Suite `choices` at small size: the contestants' answers, what a lie is, and the check."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.choices import ChoicesOptions, Drawn, analyzed_table, choices_suite, drawn, lied
from benchmarks.harness.engines import Engines
from sqlext.catalog.spark import SparkCatalog
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.spark
def test_all_strategies_agree_whatever_the_statistics_say(spark: SparkSession, tmp_path: Path) -> None:
    suite = choices_suite(ChoicesOptions(statements=4, data=tmp_path), Engines(cores=2))
    kinds = [drawn(number, 1, 1000.0).kind for number in range(4)]
    assert kinds == ["multi-way"] * 3 + ["interval"]
    agreed(replace(suite, cases=suite.cases[2:]))


@pytest.mark.spark
@pytest.mark.parametrize("number", [0, 4])
def test_statistics_are_wrong_and_estimates_are_not(spark: SparkSession, tmp_path: Path, number: int) -> None:
    choices_suite(ChoicesOptions(statements=number + 1, data=tmp_path), Engines(cores=2))
    drawn_one = drawn(number, 1, 1000.0)
    kind = "parquet" if drawn_one.is_parquet else "csv"
    for name in drawn_one.tables:
        analyzed_table(spark, name, tmp_path / "choices-1" / f"{name}.{kind}")
    try:
        right = _told(spark, drawn_one)
        for name in drawn_one.tables:
            lied(spark, name, 0.01)
        table = drawn_one.tables[0]
        told = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}["Statistics"]
        assert int(re.findall(r"(\d+) rows", told)[0]) == pytest.approx(drawn_one.rows[0] / 100, abs=1)
        assert _told(spark, drawn_one) == pytest.approx(right, rel=0.02)
    finally:
        for name in drawn_one.tables:
            spark.sql(f"DROP TABLE {name}")


def _told(spark: SparkSession, asked: Drawn) -> list[int]:
    found = [SparkCatalog(spark).key_statistics(name, []) for name in asked.tables]
    return [0 if item is None else item.rows for item in found]


def test_the_check_is_about_the_best_strategy(tmp_path: Path) -> None:
    checks = choices_suite(ChoicesOptions(statements=1, data=tmp_path), Engines(cores=2)).checks
    slow = case_result({}, {"ours": 4.0, "cascade": 9.0, "operator": 1.0}, "x")
    assert outcome(checks, [slow]) == [("at most 3 times the best strategy", False, "1 above; the worst: 4.00 (x)")]
    right = case_result({}, {"ours": 2.0, "cascade": 1.0}, "y")
    assert outcome(checks, [right]) == [("at most 3 times the best strategy", True, "0 above; the worst: 2.00 (y)")]
