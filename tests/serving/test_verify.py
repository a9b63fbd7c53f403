"""Replaying a table through a deployment finds whether each answer is batch's."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.serving.verify import Verification, verify, with_row

from .test_deployments import START, STATEMENTS, TABLES


def tables(spark: SparkSession) -> None:
    """Rows that are not in the order of their times, with ties."""
    rng = random.Random(3)
    for name, columns in TABLES.items():
        rows = []
        for number in range(60):
            time = START + timedelta(minutes=rng.randrange(0, 120, 2))
            values = {"id": number, "k": rng.randrange(3), "c": rng.choice("ab"), "ts": time, "seen": time}
            values |= {"v": float(rng.randrange(9)), "name": f"n{number}", "rank": rng.randrange(8)}
            rows.append(tuple(values[column] for column in columns))
        schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        spark.createDataFrame(rows, schema).coalesce(1).createOrReplaceTempView(name)


def verified(spark: SparkSession, title: str, rows: int, spoiled: bool = False) -> Verification:
    """What verifying a statement finds."""
    tables(spark)
    try:
        session = Session(spark)
        deployment = session.deploy(STATEMENTS[title], request="sv_views")
        if spoiled:
            deployment.push("sv_orders", [{"k": 1, "ts": START + timedelta(minutes=1), "v": 1e6}])
        return verify(session, deployment, rows)
    finally:
        for name in TABLES:
            spark.catalog.dropTempView(name)


@pytest.mark.spark
@pytest.mark.parametrize("title", ["a union", "rows to come", "windows below a join"])
def test_answers_are_those_of_batch(spark: SparkSession, title: str) -> None:
    found = verified(spark, title, 12)
    assert str(found) == "12 of 12 rows equal", found.differences


@pytest.mark.spark
def test_other_answers_are_found(spark: SparkSession) -> None:
    found = verified(spark, "a union", 60, spoiled=True)
    assert 0 < len(found.differences) < 60
    assert {difference.request["k"] for difference in found.differences} == {1}
    assert found.differences[0].answer != found.differences[0].batch


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT a.v AS x FROM t a -- end", "SELECT a.v AS x, a.__sqlext_row FROM t a -- end"),
        (
            "SELECT q.s FROM (SELECT k, sum(v) OVER w AS s FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)) q",
            "SELECT q.s, q.__sqlext_row FROM (SELECT k, sum(v) OVER w AS s, t.__sqlext_row FROM t WINDOW w AS "
            "(PARTITION BY k ORDER BY ts)) q",
        ),
    ],
)
def test_the_column_of_rows_is_written_into_the_text(sql: str, written: str) -> None:
    assert with_row(sql, None) == written
