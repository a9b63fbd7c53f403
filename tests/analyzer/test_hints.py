"""Hints: every odd one, in ordinary statements and in those of the extension."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import ParseError, SqlExtError, UnsupportedError

from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage
from sqlext.syntax.hint_nodes import HintCall
from sqlext.syntax.parser import parse

COLUMNS = {"k": "int", "ts": "timestamp", "v": "int"}
CATALOG = DictCatalog({"t": COLUMNS, "u": COLUMNS, "w": COLUMNS})
OURS = "SELECT {} t.k, sum(t.v) OVER (PARTITION BY t.k ORDER BY t.ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW) s"

#: Hints that are Spark's business, with what its DataFrame API is told of them where we lower the statement.
SPARKS = {
    "/*+ index */": ["INDEX"],
    "/*+ leading(t) index */": ["INDEX", "LEADING"],
    "/*+ set(t) */": ["SET"],
    "/*+ map(t), struct(1 + 1) */": ["STRUCT", "MAP"],
    "/*+ BROADCAST(t) it is small */": ["SMALL", "IS", "IT"],
    "/*+ BROADCAST(t) /* why */ */": [],
    "/*+ BROADCAST(t) -- why\n */": [],
    "/*+ a */ /*+ b(x) */": ["B", "A"],
    "/*+ `odd name`(x.y, 'z', f(1, 2)) */": ["ODD NAME"],
    "/*+ REPARTITION(4, k), b */": ["B", "REPARTITION(4, t.k)"],
    "/*+ é */": ["É"],
}
#: What is no hint in Spark's grammar either.
BROKEN = (
    "/*+ IDENTIFIER('BROADCAST')(t) */",
    "/*+ */ /*+ , */",
    "/*+ a( */",
    "/*+ 'x' */",
    "/*+ a,, b */",
    "/*+ REPARTITION(1 + 1) */",
    "/*+ COALESCE(99999999999) */",
    "/*+ ) */",
)


def planned(sql: str, *, lenient: bool = True) -> StagedPlan:
    return stage(sql, CATALOG, Config(), lenient=lenient)


@pytest.mark.parametrize("hint", [*SPARKS, *BROKEN, "/*+ a('*/') */"])
def test_hints_of_an_ordinary_statement_are_sparks_business(hint: str) -> None:
    for sql in (
        f"SELECT {hint} k FROM t",
        f"SELECT k FROM (SELECT {hint} k FROM t) WHERE k IN (SELECT {hint} k FROM u)",
        f"INSERT INTO t SELECT {hint} * FROM u",
        f"CREATE TABLE z AS SELECT {hint} * FROM u",
        f"EXPLAIN SELECT {hint} * FROM u",
    ):
        plan = planned(sql)
        assert plan.passthrough
        assert plan.sql is sql


@pytest.mark.parametrize(("hint", "told"), SPARKS.items())
def test_a_lowered_statement_hands_hints_on(hint: str, told: list[str]) -> None:
    physical = planned(OURS.format(hint) + " FROM t").physical
    assert physical is not None
    labels = [node.label().partition(": ")[2] for node in physical.walk() if node.node_name() == "HintExec"]
    assert [label for label in labels if label != "BROADCAST"] == told
    assert ("BROADCAST" in labels) == ("BROADCAST" in hint)


@pytest.mark.parametrize("hint", [hint for hint in BROKEN if "/*+ */" not in hint])
def test_what_spark_would_refuse_is_refused_at_its_place(hint: str) -> None:
    sql = OURS.format(hint) + " FROM t"
    with pytest.raises(UnsupportedError) as caught:
        planned(sql)
    span = caught.value.span
    assert span is not None
    assert sql.index("/*+") < span.start < span.end <= sql.index(hint) + len(hint)


@pytest.mark.parametrize(
    ("hint", "place", "message"),
    [
        ("/*+ UMJOIN(x y, z) */", "x y", "'x y' in the hint UMJOIN is not the name of a relation"),
        ("/*+ UMJOIN(t,, u) */", "UMJOIN(t,, u)", "is not the name of a relation"),
        ("/*+ umjoin(1 + 1) */", "1 + 1", "is not the name of a relation"),
        ("/*+ index NO_UMJOIN(t */", "NO_UMJOIN(t", "a parenthesis is not closed"),
        ("/*+ UMJOIN = 3 */", "=", "found '=' where a name is expected"),
        ("/*+ SWEEP(t) */", "SWEEP(t)", "the hint SWEEP takes no parameters"),
        ("/*+ NO_SWEEP('a' */", "NO_SWEEP('a'", "a parenthesis is not closed"),
        ("/*+ `umjoin`(/* c */ 'x') */", "'x'", "is not the name of a relation"),
    ],
)
@pytest.mark.parametrize("around", ["SELECT {} * FROM t", "INSERT INTO t SELECT {} * FROM u", "EXPLAIN SELECT {} 1"])
def test_hints_of_ours_that_are_malformed(hint: str, place: str, message: str, around: str) -> None:
    sql = around.format(hint)
    with pytest.raises(ParseError) as caught:
        planned(sql)
    error = caught.value
    assert message in error.message
    assert error.span is not None
    assert sql[error.span.start : error.span.end] == place
    assert error.help


def test_a_hint_of_ours_that_cannot_be_followed_is_told_and_other_mistakes_are_not() -> None:
    joined = "FROM t JOIN u ON t.k = u.k JOIN w ON u.k = w.k"
    for hint, place in (("UMJOIN(t, u, x)", "x"), ("UMJOIN(t, u)", "UMJOIN(t, u)")):
        sql = f"SELECT /*+ {hint} */ t.k FROM t JOIN u ON t.k = u.k"
        with pytest.raises(SqlExtError) as caught:
            planned(sql)
        assert caught.value.span is not None
        assert sql[caught.value.span.start : caught.value.span.end] == place
    assert planned(f"SELECT /*+ UMJOIN(t, u, w) */ t.nothing {joined}").passthrough  # Spark tells


def test_hints_are_written_back() -> None:
    tree = parse("SELECT /*+ BROADCAST(a), index */ k FROM t").query
    assert tree is not None
    assert [call.name for call in tree.find_all(HintCall)] == ["BROADCAST", "INDEX"]
    assert "/*+ BROADCAST(a), INDEX */" in tree.sql(dialect="sqlext")
