"""Interval joins of every kind with conditions that no window finds: exactly Spark's rows, and the operator makes them.

NULLs, NaN, empty sides, a key that most rows have, and rows whose candidates all fail the residual are in the tables.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.interval_join.execution import IntervalJoinExec

from .test_interval_inequalities import same_as_spark, tables
from .test_interval_joins import sweeping

__all__ = ["tables"]

KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
OVERLAP = "PERIOD(r.stamp_ts, r.stamp_te) OVERLAPS PERIOD(s.stamp_ts, s.stamp_te)"
#: The same in plain Spark: periods that are empty or reversed overlap nothing.
COMPARED = " AND ".join(
    f"{a} < {b}"
    for a, b in (
        ("r.stamp_ts", "s.stamp_te"),
        ("s.stamp_ts", "r.stamp_te"),
        ("r.stamp_ts", "r.stamp_te"),
        ("s.stamp_ts", "s.stamp_te"),
    )
)
WINDOWS = (
    "r.int_ts < s.int_te AND s.int_ts < r.int_te",
    "r.k = s.k AND s.int_ts BETWEEN r.int_ts - 2 AND r.int_te",
    OVERLAP,
)
#: Residuals, and who tests them.
RESIDUALS = {
    "r.v <> s.v": "operator",
    "r.id <> s.id AND r.v + s.v < 3": "operator",
    "r.v * s.v IN (4, s.id, NULL)": "operator",
    "r.v NOT IN (s.v, 3)": "operator",
    "r.odd <> s.odd AND r.single >= -1e300": "operator",
    "r.single + s.odd <> 0.0D": "operator",
    "r.money_ts + s.money_te > 1.5 AND r.money_ts * s.v <> 2": "operator",
    "upper(r.k2) <> s.k2": "operator",
    "r.valid.ts <> s.valid.te AND r.date_ts <> s.date_te": "operator",
    "r.k2 LIKE concat(s.k2, '%')": "Spark",
    "abs(r.v - s.v) > 1": "operator",
    "r.v <> s.v AND r.k2 || s.k2 <> 'ab'": "both",
    "CASE WHEN r.v > 0 THEN s.v > 0 ELSE s.v IS NULL END": "operator",
    "least(r.int_te, s.int_te) - greatest(r.int_ts, s.int_ts) >= 2": "operator",
    "(r.v < s.v OR s.v IS NULL)": "operator",
    "(r.v > 1 OR s.v > 1) AND NOT (r.id > 40 OR s.id % 2 = 0 AND r.v = 1)": "operator",
    "hash(r.v, s.v) % 3 <> 0": "Spark",
    "CASE WHEN r.v > 0 THEN r.k2 LIKE concat(s.k2, '%') ELSE s.v IS NULL END": "Spark",
}


def statements(kinds: tuple[str, ...], every: int) -> list[str]:
    """Each residual with some kinds, and with EXISTS or NOT EXISTS."""
    found = []
    for number, residual in enumerate(RESIDUALS):
        on = f"{WINDOWS[number % len(WINDOWS)]} AND {residual}"
        for place, kind in enumerate(kinds):
            if (number + place) % every == 0:
                right = "r.v" if kind in ("LEFT SEMI", "LEFT ANTI") else "s.id"
                found.append(f"SELECT r.id AS a, {right} AS b FROM ineq_r r {kind} JOIN ineq_s s ON {on}")
        if number % every == 0:
            word = "NOT EXISTS" if number % 2 else "EXISTS"
            found.append(f"SELECT r.id AS a, r.v AS b FROM ineq_r r WHERE {word} (SELECT 1 FROM ineq_s s WHERE {on})")
    return found


@pytest.mark.few(9)
@pytest.mark.every_spark("interval joins with further conditions")
@pytest.mark.parametrize(
    ("form", "every"),
    [
        ("broadcast", 8),
        ("exchange", 8),
        *(pytest.param(form, 1, marks=pytest.mark.slow) for form in ("broadcast", "exchange")),
    ],
)
def test_residuals_by_kind(form: str, every: int, spark: SparkSession, tables: None) -> None:
    queries = statements(KINDS, every)
    same_as_spark(
        spark, sweeping(spark, form), queries, swept=len(queries), plain=lambda text: text.replace(OVERLAP, COMPARED)
    )


@pytest.mark.parametrize("kind", ["LEFT", "LEFT SEMI"])
def test_who_tests_a_residual(kind: str, spark: SparkSession, tables: None) -> None:
    session = sweeping(spark, "exchange")
    for residual, who in RESIDUALS.items():
        plan = session.plan(f"SELECT r.id FROM ineq_r r {kind} JOIN ineq_s s ON {WINDOWS[0]} AND {residual}")
        assert plan.physical is not None
        line = next(item.details()["residual"] for item in plan.physical.walk() if isinstance(item, IntervalJoinExec))
        said = {"operator": ": by the operator", "Spark": ": by Spark", "both": "the rest by the operator"}[who]
        assert said in line, residual
