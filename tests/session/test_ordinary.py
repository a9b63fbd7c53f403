"""Ordinary statements that are lowered: what fails before a command has begun leaves it to Spark, what fails after that
has failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.relational.spark_exec import SparkExec

from sqlext import Session
from tests.spark_versions.older import TASK_ERRORS
from tests.told import bugs_noted


@pytest.fixture
def lowering(spark: SparkSession) -> Iterator[Session]:
    spark.sql("CREATE TABLE begun (a BIGINT) USING parquet")
    yield Session(spark, config={"sqlext.planner.alwaysLower": "true"})
    spark.sql("DROP TABLE begun")


def test_a_command_that_fails_is_not_run_again(
    lowering: Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    native = type(spark).sql

    def noted(self: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
        texts.append(text)
        return native(self, text, *args, **kwargs)

    monkeypatch.setattr(type(spark), "sql", noted)
    with pytest.raises(TASK_ERRORS, match="in the middle"):
        lowering.sql(
            "INSERT INTO begun SELECT IF(id < 0, id, CAST(raise_error('in the middle') AS BIGINT)) FROM range(3)"
        )
    assert sum(text.startswith("INSERT") for text in texts) == 1


def test_a_plan_that_fails_leaves_command_and_explain_to_spark(
    lowering: Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise IndexError("a bug of ours")

    monkeypatch.setattr(SparkExec, "execute", broken)
    monkeypatch.setattr("sqlext.run.statements._explain", broken)
    with bugs_noted():
        lowering.sql("INSERT INTO begun SELECT id + 1 FROM range(3)")
        text = lowering.sql(
            "EXPLAIN SELECT /*+ SWEEP */ count(*) FROM begun a JOIN begun b ON a.a < b.a + 2 AND b.a < a.a + 2"
        ).first()[0]
    assert sorted(row.a for row in spark.table("begun").collect()) == [1, 2, 3]
    assert "Physical Plan" in text
