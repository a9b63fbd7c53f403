"""TPC-H against the generator's own reference answers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.tpc import BENCHMARKS
from sqlext.tpc.benchmark import connect
from tests.tpc.conftest import SCALE

TPCH = BENCHMARKS["tpch"]
#: One of each kind: LIMIT with dates, a cycle of joins, decimals of every sign, a subquery. The others are slow tests.
QUICK = (3, 5, 9, 18)
NUMBERS = [pytest.param(number, marks=[] if number in QUICK else pytest.mark.slow) for number in TPCH.numbers]


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tables: Callable[[str], Path]) -> Iterator[Session]:
    """A Session of its own over the tables of TPC-H; views of other tests are not seen in it."""
    session = Session(spark.newSession())
    for name in TPCH.tables:
        session.register(name, tables("tpch") / f"{name}.parquet")
    yield session
    for name in TPCH.tables:
        session.spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def answers() -> dict[int, list[list[str]]]:
    """The rows of each answer as the generator prints them."""
    with connect(TPCH) as connection:
        found = connection.execute(
            f"SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = {SCALE}"
        ).fetchall()
    return {number: [line.split("|") for line in text.splitlines()[1:]] for number, text in found}


@pytest.mark.few(2)
@pytest.mark.parametrize("number", NUMBERS)
def test_answer(number: int, tpch: Session, answers: dict[int, list[list[str]]]) -> None:
    rows = tpch.sql(TPCH.query(number)).collect()
    expected = answers[number]
    assert len(rows) == len(expected)
    for row, texts in zip(rows, expected, strict=True):
        assert len(row) == len(texts)
        for value, text in zip(row, texts, strict=True):
            assert agrees(value, text), f"{tuple(row)}, the reference has {texts}"


def agrees(value: Any, text: str) -> bool:
    """Whether a value is what the text says; a decimal to its last digit, to which Spark rounds averages and shares."""
    match value:
        case None:
            return text in ("", "NULL")
        case datetime.date():
            return value.isoformat() == text
        case Decimal():
            last = Decimal(1).scaleb(int(value.as_tuple().exponent))
            return abs(value - Decimal(text)) <= last
        case float():
            return value == pytest.approx(float(text), rel=1e-9)
    return str(value) == text
