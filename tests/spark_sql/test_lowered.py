"""Ordinary queries that are lowered all the same give what spark.sql gives: rows, names, types, and errors."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.spark_sql.corpus import QUERIES, STEP, difference, outcome, statements

AREAS = sorted(path for path in QUERIES.glob("*.sql") if path.stem != "views")
#: ORDER BY outside of parentheses: the last of a query that orders its result.
ORDERED = re.compile(r"\border\s+by\b[^()]*(\([^()]*(\([^()]*\)[^()]*)*\)[^()]*)*$", re.IGNORECASE)


def differences(area: Path, spark: SparkSession, step: int, caplog: pytest.LogCaptureFixture) -> tuple[list[str], int]:
    """What differs, and how many of the queries that ran were left to Spark after all."""
    lowered = Session(spark, config={"sqlext.planner.alwaysLower": "true"})
    found, left, ran = [], 0, 0
    for sql in statements(area)[::step]:
        native = outcome(spark.sql, sql)
        caplog.clear()
        ours = outcome(lowered.sql, sql)
        left += native.error is None and bool(caplog.records)
        ran += native.error is None
        kind = difference(native, ours, ordered=ORDERED.search(sql) is not None and not sql.startswith("("))
        if kind is not None or any(record.levelno > logging.INFO for record in caplog.records):
            found.append(f"{kind}: {sql}\n  Spark   {native}\n  lowered {ours}\n  {caplog.text}")
    assert left <= ran / 4, f"{left} of {ran} queries were not lowered"
    return found, left


@pytest.mark.few(3)
@pytest.mark.parametrize("area", AREAS, ids=lambda path: path.stem)
def test_lowered_queries_are_sparks(
    area: Path, spark: SparkSession, views: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sqlext")
    found, _ = differences(area, spark, STEP, caplog)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS, ids=lambda path: path.stem)
def test_all_lowered_queries_are_sparks(
    area: Path, spark: SparkSession, views: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sqlext")
    found, _ = differences(area, spark, 1, caplog)
    assert not found, "\n".join(found)
