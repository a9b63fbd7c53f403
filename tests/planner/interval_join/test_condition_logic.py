"""Logic in conditions of joins: exactly the pairs for which the condition is true have an alternative of the join, and
none has two. All NULLs, empty and reversed periods and equal ends of a small line are tried, in DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import duckdb
import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.interval_join.rules import reason
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.periods.functions import PeriodFunction
from sqlext_planner.periods.predicates import AllenRelation, PeriodPredicate
from sqlext_planner.periods.relation_sets import ALLEN
from sqlext_planner.relational.logical_plan import LogicalPlan

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse
from tests.planner.duck_plans import duck_sql

_COLUMNS = {"s": "bigint", "e": "bigint", "x": "bigint"}
TABLES = {"a": _COLUMNS, "b": _COLUMNS}
P, Q = "PERIOD(a.s, a.e)", "PERIOD(b.s, b.e)"
ENDS = "a.s, a.e, b.s, b.e"


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """Both tables hold each pair of ends of a line of three points and NULL, with some value x or none."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO try_subtract(one, other) AS one - other")
    connection.execute("CREATE MACRO named_struct(one, x, other, y) AS {'start': x, 'end': y}")
    rows = list(product((None, 0, 1, 2), repeat=2))
    for name, seed in (("a", 1), ("b", 2)):
        rng = random.Random(seed)
        texts = [f"({s}, {e}, {rng.choice((None, 0, 1))})".replace("None", "NULL") for s, e in rows]
        connection.execute(f"CREATE TABLE {name} AS FROM (VALUES {', '.join(texts)}) AS t(s, e, x)")
    yield connection
    connection.close()


def optimized(condition: str, join: str = "JOIN") -> tuple[LogicalPlan, LogicalPlan]:
    """The plan of a join as it is written, and what the rules make of it."""
    text = f"SELECT a.s, a.e, a.x, b.s AS s2, b.e AS e2, b.x AS x2 FROM a {join} b ON {condition}"
    analyzed = analyze(parse(text), DictCatalog(TABLES))
    return analyzed.children[0], RuleExecutor(BATCHES).optimize(analyzed).final.children[0]  # type: ignore[return-value]


def _holds_periods(plan: LogicalPlan) -> bool:
    """Whether a join's condition holds a period predicate, or a function of periods."""
    kinds = (PeriodPredicate, PeriodFunction, AllenRelation)
    parts = (part for node in plan.walk() for item in node.expressions() for part in item.walk())
    return any(isinstance(part, kinds) for part in parts)


def same_pairs(duck: duckdb.DuckDBPyConnection, condition: str) -> bool:
    """Whether the condition becomes an interval join. Fails unless both plans have the same rows, and if there is no
    reason why it has not become one although it holds a period predicate."""
    before, after = optimized(condition)
    assert any(isinstance(node, IntervalJoin) or reason(node) for node in after.walk()) or not _holds_periods(before)
    want, got = (sorted(duck.execute(duck_sql(plan)).fetchall(), key=repr) for plan in (before, after))
    assert got == want, condition
    return any(isinstance(node, IntervalJoin) for node in after.walk())


#: All of these were compared pair by pair.
FOUND = [
    f"{P} MEETS {Q} OR {Q} MEETS {P}",
    f"{P} OVERLAPS {Q} OR {P} MEETS {Q} OR {P} MET BY {Q}",
    f"NOT ({P} PRECEDES {Q} OR {P} SUCCEEDS {Q})",
    f"NOT {P} STRICTLY PRECEDES {Q} AND NOT {Q} STRICTLY PRECEDES {P}",
    f"({P} OVERLAPS {Q}) IS TRUE",
    f"{P} OVERLAPS {Q} = true",
    f"({P} NOT OVERLAPS {Q}) = false",
    f"({P} OVERLAPS {Q}) <=> true",
    f"({P} OVERLAPS {Q}) <> false",
    f"coalesce({P} OVERLAPS {Q}, false)",
    f"NOT coalesce({P} NOT OVERLAPS {Q}, true)",
    f"nvl({P} OVERLAPS {Q} AND a.x < b.x, false)",
    f"NOT (({P} OVERLAPS {Q}) IS NOT TRUE)",
    f"NOT NOT {P} OVERLAPS {Q}",
    f"period_intersect({ENDS}) IS NOT NULL",
    f"isnotnull(period_union({ENDS}))",
    f"NOT (period_gap({ENDS}) IS NULL)",
    f"allen_relation({ENDS}) NOT IN ('before', 'after')",
    f"allen_relation({ENDS}) <> 'meets' AND NOT allen_relation({ENDS}) = 'before'",
    f"allen_relation({ENDS}) = 'none'",
    f"{P} OVERLAPS {Q} AND NOT {Q} CONTAINS {P}",
    f"{P} OVERLAPS {Q} AND (a.x = 1 OR b.x = 0)",
    f"{P} OVERLAPS {Q} OR a.x = 1",
    f"{P} STARTS {Q} OR {P} PRECEDES {Q} OR (a.x = b.x AND b.s IS NULL)",
    f"{P} OVERLAPS {Q} OR PERIOD(a.s, a.x) OVERLAPS PERIOD(b.s, b.x)",
    f"{P} CONTAINS b.x OR {Q} CONTAINS a.x",
    f"{P} START PRECEDING {Q} WITHIN 1 OR b.e IS NULL",
    "NOT (a.s >= b.e OR a.e <= b.s)",
    "NOT (a.s >= b.e OR a.e <= b.s OR a.x = 1)",
    "NOT NOT (a.s < b.e AND a.e > b.s)",
    "(a.s < b.e AND a.e > b.s) IS TRUE",
    "NOT (a.s NOT BETWEEN b.s AND b.e)",
    "a.s >= b.s AND (a.s < b.e OR b.e IS NULL)",
    "a.s >= b.s AND (b.e IS NULL OR a.s < b.e) AND a.x = b.x",
    "a.s < b.e AND (b.s < a.e OR a.e IS NULL)",
    "(a.s < b.e OR b.e IS NULL) AND (b.s < a.e OR a.e IS NULL)",
    "NOT (a.s < b.s OR (a.s >= b.e AND b.e IS NOT NULL))",
    "greatest(a.s, b.s) < least(a.e, b.e)",
    "least(a.e, b.e) >= greatest(a.s, b.s)",
    "greatest(a.s, b.s) <= least(a.e, b.e) AND a.x = b.x",
    "a.s >= b.s AND a.s < least(b.e, b.x)",
    "a.s BETWEEN b.s AND b.e OR b.s BETWEEN a.s AND a.e",
    "a.s BETWEEN b.s AND b.e OR a.e BETWEEN b.s AND b.e OR (a.s < b.s AND a.e > b.e)",
    "(a.s >= b.s AND a.s < b.e) OR (a.s = b.s AND a.e = b.e)",
]


@pytest.mark.few(3)
@pytest.mark.parametrize("condition", FOUND)
def test_logic_is_found_by_windows(duck: duckdb.DuckDBPyConnection, condition: str) -> None:
    assert same_pairs(duck, condition)


def random_condition(rng: random.Random, depth: int) -> str:
    """A condition over two periods, their ends and a value of each side."""
    if depth == 0:
        return _leaf(rng)
    parts = [random_condition(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return rng.choice(
        (
            f"({' OR '.join(parts)})",
            f"({' AND '.join(parts)})",
            f"NOT {parts[0]}",
            f"({parts[0]}) IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE'))}",
            f"coalesce({parts[0]}, {rng.choice(('true', 'false'))})",
            f"({parts[0]}) {rng.choice(('=', '<=>', '<>'))} {rng.choice(('true', 'false'))}",
        )
    )


def _leaf(rng: random.Random) -> str:
    one, other = rng.sample(("a.s", "a.e", "b.s", "b.e", "a.x", "b.x"), 2)
    op = rng.choice(("<", "<=", "=", ">=", ">"))
    names = ", ".join(f"'{name}'" for name in rng.sample(ALLEN, rng.randint(1, 6)))
    return rng.choice(
        (
            f"{one} {op} {other}",
            f"{one} {op} {other}",
            f"{one} IS {rng.choice(('', 'NOT '))}NULL",
            f"{one} BETWEEN {other} AND {rng.choice(('a.e', 'b.e'))}",
            f"greatest(a.s, b.s) {op} least(a.e, b.e)",
            f"allen_relation({ENDS}) {rng.choice(('', 'NOT '))}IN ({names})",
            rng.choice((f"{P} OVERLAPS {Q}", f"{Q} CONTAINS {P}", f"{Q} PRECEDES {P}", f"{P} START PRECEDING {Q}")),
            f"period_{rng.choice(('intersect', 'union', 'gap'))}({ENDS}) IS {rng.choice(('', 'NOT '))}NULL",
        )
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_logic(duck: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed)
    found = [same_pairs(duck, random_condition(rng, rng.randint(1, 3))) for _ in range(15)]
    assert any(found)
