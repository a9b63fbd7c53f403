"""Every form of statement of Spark's SQL reference reaches spark.sql as the same string object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.spark_sql.corpus import QUERIES, statements


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


@pytest.mark.parametrize(
    "path", [Path(__file__).parent / "commands.sql", *sorted(QUERIES.glob("*.sql"))], ids=lambda path: path.stem
)
def test_statements_pass_through_verbatim(path: Path, spark: SparkSession, views: None) -> None:
    gate = Gate(spark)
    session = Session(gate)  # type: ignore[arg-type]
    held = []
    for sql in statements(path):
        gate.statement = sql
        try:
            session.sql(sql)
        except StoppedError:
            continue
        except Exception as error:
            held.append(f"{type(error).__name__} for {sql}: {error}")
        else:
            held.append(f"not passed: {sql}")
    assert not held
