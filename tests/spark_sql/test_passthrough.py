"""Every form of statement of Spark's SQL reference reaches spark.sql as the same string object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.spark_sql.corpus import QUERIES, STEP, statements


class StoppedError(Exception):
    """Raised instead of running a statement."""


class Gate:
    """A Spark session that answers questions and runs no statement."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.statement: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def sql(self, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803 - Spark's own name
        if sqlQuery is self.statement:
            raise StoppedError
        return self._spark.sql(sqlQuery, *args, **kwargs)


COMMANDS = Path(__file__).parent / "commands.sql"
AREAS = sorted(QUERIES.glob("*.sql"))


def held_back(texts: list[str], spark: SparkSession) -> list[str]:
    """The statements that do not reach Spark as they are, each with what happened instead."""
    gate = Gate(spark)
    session = Session(gate)  # type: ignore[arg-type]
    found = []
    for sql in texts:
        gate.statement = sql
        try:
            session.sql(sql)
        except StoppedError:
            continue
        except Exception as error:
            found.append(f"{type(error).__name__} for {sql}: {error}")
        else:
            found.append(f"not passed: {sql}")
    return found


def test_commands_pass_through_verbatim(spark: SparkSession, views: None) -> None:
    assert not held_back(statements(COMMANDS), spark)


@pytest.mark.few(3)
@pytest.mark.parametrize("area", AREAS, ids=lambda path: path.stem)
def test_queries_pass_through_verbatim(area: Path, spark: SparkSession, views: None) -> None:
    assert not held_back(statements(area)[::STEP], spark)


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS, ids=lambda path: path.stem)
def test_all_queries_pass_through_verbatim(area: Path, spark: SparkSession, views: None) -> None:
    assert not held_back(statements(area), spark)
