"""FEBench's feature queries, as they are written, on small tables of their schemas against a plain-Python twin."""

from __future__ import annotations

import csv
import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from sqlext import Session

from .scripts import QUERIES, Table, generate, read_script
from .twin import Relation, run
from .values import Moment, parse_moment

Shared = Callable[[str], Path]


@contextmanager
def registered(spark: SparkSession, tables: Mapping[str, Table]) -> Iterator[None]:
    """The tables as views, and NULL for a division by zero, as OpenMLDB users expect no error there."""
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    for name, table in tables.items():
        spark.createDataFrame(table.to_arrow()).createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in tables:
            spark.catalog.dropTempView(name)
        spark.conf.set("spark.sql.ansi.enabled", str(ansi))


def same_rows(result: pa.Table, expected: Relation) -> None:
    """The same names (of items that have one) and the same rows in any order; floats to nine digits."""
    names = [field.name for field in expected.fields]
    assert len(result.column_names) == len(names)
    assert all(name in ("", got.lower()) for got, name in zip(result.column_names, names, strict=True))
    columns = [column.to_pylist() for column in result.columns]
    got = Counter(tuple(map(_shown, row)) for row in zip(*columns, strict=True))
    wanted = Counter(tuple(map(_shown, row)) for row in expected.rows)
    assert got.total() == wanted.total()
    for odd, theirs in zip(sorted((got - wanted), key=repr), sorted((wanted - got), key=repr), strict=True):
        wrong = [(n, a, b) for n, a, b in zip(result.column_names, odd, theirs, strict=True) if a != b]
        raise AssertionError(f"(column, got, expected): {wrong}")


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    if isinstance(value, dt.datetime):
        return ("time", int((value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) / dt.timedelta(microseconds=1)))
    return ("time", int(value)) if isinstance(value, Moment) else value


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", QUERIES)
def test_script_on_generated_tables(spark: SparkSession, shared: Shared, number: int, seed: int) -> None:
    script = read_script(shared, number)
    tables = generate(script, seed)
    with registered(spark, tables):
        result = (
            Session(spark, compat="openmldb", config={"spark.sql.session.timeZone": "UTC"}).sql(script.sql).toArrow()
        )
    same_rows(result, run(script.sql, tables))


def test_q1_on_covid_data(spark: SparkSession, shared: Shared) -> None:
    """23,562 rows, NULL provinces in one partition of 13,000; every 90th row is compared, all are counted.

    tests/sql/test_real_data.py compares the windows of all rows with DuckDB.
    """
    script = read_script(shared, 1)
    table = _covid(script.schemas["train"], shared("data/febench/q1_covid.csv"))
    with registered(spark, {"train": table}):
        result = (
            Session(spark, compat="openmldb", config={"spark.sql.session.timeZone": "UTC"}).sql(script.sql).toArrow()
        )
    assert result.num_rows == len(table.rows) == 23_562
    wanted = range(0, len(table.rows), 90)
    chosen = pa.array([table.rows[place][0] for place in wanted], pa.int32())
    same_rows(result.filter(pc.is_in(result["Id_1"], chosen)), run(script.sql, {"train": table}, wanted))


def _covid(schema: dict[str, str], path: Path) -> Table:
    """The CSV in the columns of the script's schema; its times are UTC, an empty field is NULL."""
    read: dict[str, Callable[[str], Any]] = {"int": int, "double": float, "string": str, "timestamp": parse_moment}
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [
            tuple(read[dtype](line[name]) if line[name] else None for name, dtype in schema.items())
            for line in csv.DictReader(stream)
        ]
    return Table(tuple(schema.items()), tuple(rows))
