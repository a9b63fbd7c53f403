"""Runs one case through `Session(spark, compat="openmldb")` and judges the outcome."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlext_planner.errors import InternalError, SqlExtError

from .cases import ConformanceCase
from .compare import difference
from .tables import ZONE, collect, databases, views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlext import Session

#: Sums wrap (ANSI mode would raise), timestamps print in OpenMLDB's zone, a few rows need no parallelism.
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": ZONE,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}

_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What became of a case: `kind` is "pass" or says what went wrong, `detail` says how."""

    key: str
    kind: Literal["pass", "not refused", "refused", "no span", "error", "wrong rows", "wrong columns"]
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.kind == "pass"


@contextmanager
def openmldb_settings(spark: SparkSession) -> Iterator[None]:
    """SETTINGS for the time of a block."""
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is not None:
                spark.conf.set(key, value)


def run_case(spark: SparkSession, case: ConformanceCase) -> Outcome:
    """Run a case; call it within `openmldb_settings`. Never raises for what the product does wrong."""
    from sqlext import Session

    number = next(_numbers)
    names = [table.name or f"case{number}_{place}" for place, table in enumerate(case.inputs)]
    tables = [table.in_index_order() if case.index_order else table for table in case.inputs]
    with (databases if case.has_databases else views)(spark, names, tables, case.database):
        return _judge(case, Session(spark, compat="openmldb"), case.statement(names))


def _judge(case: ConformanceCase, session: Session, sql: str) -> Outcome:
    try:
        columns, types, rows = collect(session.sql(sql))
    except SqlExtError as error:
        return _judge_refusal(case, error)
    except InternalError as error:
        return Outcome(case.key, "error", f"InternalError: {_first_line(error)}")
    except Exception as error:  # whatever leaks out of Spark is a finding about the case
        return Outcome(case.key, "error", f"{type(error).__name__}: {_first_line(error)}")
    return judged(case, columns, types, rows)


def judged(case: ConformanceCase, columns: list[str], types: list[str], rows: list[tuple[Any, ...]]) -> Outcome:
    """The outcome of a case that gave rows."""
    if not case.succeeds:
        return Outcome(case.key, "not refused", f"{len(rows)} rows came back")
    if case.expected is None or case.columns is None:
        return Outcome(case.key, "pass")
    expected_types = [kind for _, kind in case.columns]
    if len(columns) != len(expected_types):
        return Outcome(case.key, "wrong columns", f"{columns} instead of {[name for name, _ in case.columns]}")
    wrong = difference(rows, case.expected)
    if wrong is not None:
        return Outcome(case.key, "wrong rows", wrong)
    if types != expected_types:
        return Outcome(case.key, "wrong columns", f"types {types} instead of {expected_types}")
    return Outcome(case.key, "pass")


def _judge_refusal(case: ConformanceCase, error: SqlExtError) -> Outcome:
    summary = f"{type(error).__name__}: {error.message}"
    if case.succeeds:
        return Outcome(case.key, "refused", summary)
    if error.span is None:
        return Outcome(case.key, "no span", summary)
    return Outcome(case.key, "pass", summary)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:300] if text else ""
