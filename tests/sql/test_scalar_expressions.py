"""Scalar expressions that are computed without Spark against Spark's own answers: 1,000 values each, edges included.

One Spark job for each group of functions. Rows for which ours is an error are left out of Spark's job, and a sample of
them is run alone: Spark's error has to come there too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.expressions.evaluation import evaluate_rows
from sqlext_operators.expressions.values import Values, plain_values
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.table import FUNCTIONS
from sqlext_planner.expressions.types import from_arrow
from sqlext_planner.relational.nodes import Project

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse
from tests.sql.scalar_cases import CALLS, casts, operators
from tests.sql.scalar_values import TYPES, table

pytestmark = pytest.mark.tidied

ROWS = 1000
#: Spark plans a hundred expressions in less time than a tenth of a thousand.
AT_ONCE = 100
KNOWN = {f"{name}{number}": dtype for name, (dtype, _) in TYPES.items() for number in "12"}
TIMES = {"year", "hour", "date_add", "date_trunc", "date_format", "to_date", "unix_timestamp", "from_unixtime"}
GROUPS = {
    "operators": tuple(operators()),
    "casts": tuple(casts()),
    "calls": tuple(text for texts in CALLS.values() for text in texts),
}


def selected(text: str) -> Expression:
    plan = analyze(parse(f"SELECT {text} AS x FROM a"), DictCatalog({"a": KNOWN}))
    return next(node.items[0].expression for node in plan.walk() if isinstance(node, Project))


def settings(spark: SparkSession, ansi: bool, zone: str) -> ScalarSettings:
    java = spark.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    conf = {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": zone}
    return ScalarSettings.of(conf, java=int(java.split(".")[0]))


def shown(array: pa.Array) -> list[Any]:
    """The values, so that NaN, -0.0 and times of any year are compared."""
    return [repr(value) if isinstance(value, float) else value for value in plain_values(array)]


def failing(values: Values) -> np.ndarray:
    rows = np.zeros(len(values.array), np.bool_)
    for failure in values.failures:
        rows |= failure.rows
    return rows


def refused(values: Values) -> np.ndarray:
    """The rows that are left to Spark."""
    rows = np.zeros(len(values.array), np.bool_)
    for failure in values.failures:
        if failure.error.condition == "value-needs-spark":
            rows |= failure.rows
    return rows


@pytest.fixture
def interpreted(spark: SparkSession) -> SparkSession:
    """Spark without generated code: hundreds of expressions would take minutes to compile."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    return spark


def computed(texts: tuple[str, ...], known: ScalarSettings, rows: pa.Table) -> dict[str, tuple[str, Values]]:
    columns = {f"a.{name}": rows[name].combine_chunks() for name in rows.column_names}
    found = {}
    for text in texts:
        item = selected(text)
        mine = OperatorExpressions({c: KNOWN[c.name] for c in item.references}, known).required(item)
        found[text] = (mine.dtype, evaluate_rows(mine.expression, columns.__getitem__, rows.num_rows))
    return found


@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize(("ansi", "zone"), [(True, "Europe/Berlin"), (False, "America/New_York")])
def test_as_spark(group: str, ansi: bool, zone: str, interpreted: SparkSession, tmp_path: Path) -> None:
    spark, rows = interpreted, table(ROWS, seed=ansi)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    spark.conf.set("spark.sql.session.timeZone", zone)
    mine = computed(GROUPS[group], settings(spark, ansi, zone), rows)
    texts = []
    for number, (text, (_, values)) in enumerate(mine.items()):
        rows = rows.append_column(f"fails{number}", pa.array(failing(values)))
        texts.append(f"CASE WHEN NOT fails{number} THEN {text} END AS c{number}")
    pq.write_table(rows.append_column("place", pa.array(range(ROWS))), tmp_path / "rows.parquet")
    given = spark.read.parquet(str(tmp_path / "rows.parquet")).alias("a").coalesce(1)
    given = given.orderBy("place")
    wanted = [
        column
        for start in range(0, len(texts), AT_ONCE)
        for column in given.selectExpr(*texts[start : start + AT_ONCE]).toArrow().columns
    ]
    wrong = []
    for (text, (dtype, values)), column in zip(mine.items(), wanted, strict=True):
        told = failing(values)
        theirs, ours = shown(column.combine_chunks()), shown(values.array)
        if from_arrow(column.type) != dtype:
            wrong.append(f"{text}: {dtype} is {from_arrow(column.type)}")
        places = [i for i in range(ROWS) if not told[i] and ours[i] != theirs[i]]
        if places:
            inputs = {name: rows[name][places[0]] for name in KNOWN if f"a.{name}" in text}
            wrong.append(f"{text}: {len(places)} rows, {ours[places[0]]!r} is {theirs[places[0]]!r} of {inputs}")
    assert wrong == []


def test_every_function_is_compared() -> None:
    assert sorted(CALLS) == sorted(FUNCTIONS)
