"""Suite `choices` at small size: the contestants' answers, what a lie is, and the check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.choices import ChoicesOptions, choices_suite, drawn, lied
from benchmarks.harness.engines import Engines
from sqlext import Session
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.spark
def test_all_strategies_agree_whatever_the_statistics_say(spark: SparkSession, tmp_path: Path) -> None:
    suite = choices_suite(ChoicesOptions(statements=4, data=tmp_path), Engines(cores=2))
    kinds = [drawn(number, 1, 1000.0).kind for number in range(4)]
    assert kinds == ["multi-way"] * 3 + ["interval"]
    agreed(replace(suite, cases=suite.cases[2:]))


@pytest.mark.spark
def test_the_plan_is_made_of_the_lies(spark: SparkSession, tmp_path: Path) -> None:
    suite = choices_suite(ChoicesOptions(statements=1, data=tmp_path), Engines(cores=2))
    names = drawn(0, 1, 1000.0).tables
    session = Session(spark)
    for name in names:
        session.register(name, tmp_path / "choices-1" / f"{name}.parquet")
    text = f"EXPLAIN {suite.cases[0].parameters['sql']}"
    with lied(dict.fromkeys(names, 1000.0)):
        wrong = session.sql(text).first()[0]  # type: ignore[index]
    assert wrong != session.sql(text).first()[0]  # type: ignore[index]


def test_the_check_is_about_the_best_strategy(tmp_path: Path) -> None:
    checks = choices_suite(ChoicesOptions(statements=1, data=tmp_path), Engines(cores=2)).checks
    slow = case_result({}, {"ours": 4.0, "cascade": 9.0, "operator": 1.0}, "x")
    assert outcome(checks, [slow]) == [("at most 3 times the best strategy", False, "1 above; the worst: 4.00 (x)")]
    right = case_result({}, {"ours": 2.0, "cascade": 1.0}, "y")
    assert outcome(checks, [right]) == [("at most 3 times the best strategy", True, "0 above; the worst: 2.00 (y)")]
