"""Joins on ordinary inequalities: exactly Spark's rows, whatever the rows are, where the sweep computes them.

Empty and reversed periods, NULLs, NaN, infinities and negative zeros are in the tables: comparisons know no periods.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.interval_join.relations import RELATIONS

from sqlext import Session

from .intervals import TYPES, Predicate, random_periods
from .test_interval_joins import Rows, ours, sweeping, union


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    rng = random.Random(7)
    for name, count in (("ineq_r", 45), ("ineq_s", 55)):
        table = random_periods(rng, count)
        odd = [
            rng.choice([None, float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -1.5]) for _ in range(count)
        ]
        table = table.append_column("odd", pa.array(odd, pa.float64()))
        table = table.append_column("single", pa.array(odd, pa.float32()))
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield
    for name in ("ineq_r", "ineq_s"):
        spark.catalog.dropTempView(name)


CONDITIONS = [
    "r.int_ts < s.int_te AND s.int_ts < r.int_te",
    "r.stamp_ts <= s.stamp_te AND s.stamp_ts <= r.stamp_te",
    "s.int_ts BETWEEN r.int_ts AND r.int_te",
    "s.int_ts BETWEEN r.int_ts - 2 AND r.int_ts + 3",
    "s.stamp_ts BETWEEN r.stamp_ts - INTERVAL 2 MICROSECONDS AND r.stamp_ts + INTERVAL 1 MICROSECOND",
    "s.date_ts >= r.date_ts - INTERVAL 2 DAYS AND s.date_ts < r.date_te + INTERVAL 1 DAY AND r.k = s.k",
    "s.date_ts BETWEEN date_sub(r.date_ts, 1) AND date_add(r.date_ts, 4)",
    "r.ntz_ts <= s.ntz_ts AND s.ntz_ts < r.ntz_te AND s.ntz_te <= r.ntz_te + INTERVAL '2' HOUR",
    "r.double_ts - 0.5D < s.double_ts AND s.double_ts <= r.double_ts + 0.75D",
    "r.money_ts <= s.money_ts AND s.money_te <= r.money_te + 0.25",
    "r.odd <= s.odd AND s.odd < r.double_te",
    "r.odd >= s.odd AND s.double_te > r.double_ts AND r.k2 <=> s.k2",
    "r.single <= s.odd AND s.single < r.odd + 2",
    "r.int_ts <= s.long_ts AND s.long_ts < r.int_te + 3000000000",
    "r.int_ts < s.double_ts * 4 AND s.double_te * 4 < r.int_te",
    "r.date_ts <= s.ntz_ts AND s.ntz_ts < r.date_te",
    "r.money_ts < s.double_ts AND s.money_ts < r.double_te",
    "r.k2 < s.k2 AND s.k2 <= concat(r.k2, 'b')",
    "r.int_ts < s.int_te AND s.int_ts < r.int_te AND r.v <> s.v",
    "r.int_ts < s.int_te AND s.int_ts < r.int_te AND (r.v < s.v OR s.v IS NULL)",
    "r.int_ts <= s.int_ts AND s.int_te <= r.int_te AND r.k = s.k AND r.k2 = s.k2",
    "s.int_ts >= r.int_ts AND s.int_ts >= r.int_te AND s.int_ts <= r.int_te + 4 AND s.int_ts < r.int_ts + 9",
    "r.int_ts + s.v < s.int_te AND s.int_ts < r.int_te AND r.k = s.k",
    "abs(r.int_ts - s.int_ts) <= 2",
    "NOT (r.int_te <= s.int_ts OR s.int_te <= r.int_ts)",
    "s.int_ts - r.int_ts BETWEEN 0 AND 3",
    "s.int_ts + 2 > r.int_te - 1 AND s.int_ts - 3 <= 1 + r.int_ts",
    "r.int_ts < s.int_te AND r.int_te < 5 AND s.int_ts < r.int_te AND s.int_ts > -5",
    "r.valid.ts < s.valid.te AND s.valid.ts < r.valid.te",
    "r.int_ts < s.int_te AND s.int_ts < NULL",
    "r.int_ts < s.int_te AND s.int_ts < r.int_te AND r.id % 3 = s.id % 3",
]
KINDS = ["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"]


def same_as_spark(
    spark: SparkSession,
    session: Session,
    queries: list[str],
    *,
    swept: int | None = None,
    plain: Callable[[str], str] = str,
) -> None:
    """The rows are those of spark.sql for the `plain` form of the text; `swept` is how many interval joins the plan has
    at least."""
    text = union(queries)
    if swept is not None:
        plan = session.plan(text)
        assert plan.physical is not None
        assert len([node for node in plan.physical.walk() if type(node).__name__ == "IntervalJoinExec"]) >= swept
    want: Rows = sorted((tuple(row) for row in spark.sql(plain(text)).collect()), key=repr)
    assert ours(session, text) == want


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("form", "share"),
    [("broadcast", 3), *(pytest.param(form, 1, marks=pytest.mark.slow) for form in ("exchange", "broadcast"))],
)
@pytest.mark.parametrize("kind", KINDS)
def test_conditions_by_kind(kind: str, form: str, share: int, spark: SparkSession, tables: None) -> None:
    """Quickly each condition with two kinds."""
    right = "r.v" if kind in ("LEFT SEMI", "LEFT ANTI") else "s.id"
    some = CONDITIONS[KINDS.index(kind) % share :: share]
    queries = [f"SELECT r.id AS a, {right} AS b FROM ineq_r r {kind} JOIN ineq_s s ON {on}" for on in some]
    swept = len(queries) * (3 if kind == "INNER" else 2) // 4
    same_as_spark(spark, sweeping(spark, form), queries, swept=swept)


def test_conditions_in_where_and_exists(spark: SparkSession, tables: None) -> None:
    forms = [
        "SELECT r.id AS a, s.id AS b FROM ineq_r r, ineq_s s WHERE {}",
        "SELECT r.id AS a, r.v AS b FROM ineq_r r WHERE EXISTS (SELECT 1 FROM ineq_s s WHERE {})",
        "SELECT r.id AS a, r.v AS b FROM ineq_r r WHERE NOT EXISTS (SELECT 1 FROM ineq_s s WHERE {})",
        "SELECT r.id AS a, count(*) AS b FROM ineq_r r CROSS JOIN ineq_s s WHERE {} GROUP BY r.id",
    ]
    queries = [forms[number % len(forms)].format(on) for number, on in enumerate(CONDITIONS[::3])]
    same_as_spark(spark, sweeping(spark, "auto"), queries)


@pytest.mark.parametrize("count", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_random_conjunctions(count: int, spark: SparkSession, tables: None) -> None:
    """Two to five comparisons of ends, with shifts, of which the sides and the directions are at random."""
    rng = random.Random(11)
    queries = []
    for _ in range(count):
        kind = rng.choice(TYPES)
        terms = []
        for _ in range(rng.randint(2, 5)):
            left, right = (f"{side}.{kind}_{rng.choice(['ts', 'te'])}" for side in "rs")
            if rng.random() < 0.4:
                left = f"{left} {rng.choice('+-')} {kind.amount(rng.randint(0, 4))}"
            first, second = (left, right) if rng.random() < 0.5 else (right, left)
            terms.append(f"{first} {rng.choice(['<', '<=', '>', '>=', '='])} {second}")
        on = " AND ".join([*terms, *rng.choice([(), (), ("r.k = s.k",)])])
        queries.append(f"SELECT r.id AS a, s.id AS b FROM ineq_r r {rng.choice(KINDS[:4])} JOIN ineq_s s ON {on}")
    same_as_spark(spark, sweeping(spark, "exchange"), queries)


@pytest.mark.slow
def test_a_relations_formula_on_valid_periods(spark: SparkSession) -> None:
    """On periods that are none empty, the inequalities say what the relation says."""
    rng = random.Random(3)
    names = ("full_r", "full_s")
    for name in names:
        spark.createDataFrame(random_periods(rng, 40, valid=True)).createOrReplaceTempView(name)
    session = sweeping(spark, "broadcast")
    query = "SELECT r.id AS a, s.id AS b FROM full_r r JOIN full_s s ON "
    items = [
        Predicate(relation, TYPES[number % len(TYPES)], **dict.fromkeys(relation.parameters, 2))
        for number, relation in enumerate(RELATIONS.values())
    ]
    try:
        want = ours(session, union([query + item.function() for item in items]))
        assert ours(session, union([query + item.inequalities(duck=False, valid=False) for item in items])) == want
        assert len({row[0] for row in want}) == len(RELATIONS)
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def test_small_inputs_stay_sparks(session: Session, tables: None) -> None:
    """Nothing of ours is left in the plan, so the text itself goes to Spark."""
    plan = session.plan("SELECT * FROM ineq_r r JOIN ineq_s s ON r.int_ts < s.int_te AND s.int_ts < r.int_te")
    assert plan.passthrough
