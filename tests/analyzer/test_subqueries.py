"""Subqueries of expressions as the analyzer gives them: form, plan, text, what they read of the outer query."""

from __future__ import annotations

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Literal, conjuncts
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.logical_plan import LogicalPlan, SubqueryExpression, subqueries
from sqlext_planner.relational.nodes import Aggregate, Filter, Project, SubqueryAlias

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

CATALOG = DictCatalog(
    {
        "t": {"a": "int", "b": "int", "k": "int"},
        "s": {"x": "int", "y": "int", "k": "int"},
        "u": {"k": "int", "v": "decimal(7,2)"},
    }
)


def plan(sql: str) -> LogicalPlan:
    return analyze(parse(sql), CATALOG)


def found(sql: str) -> list[SubqueryExpression]:
    return list(subqueries(plan(sql)))


def only(sql: str) -> SubqueryExpression:
    (item,) = found(sql)
    return item


@pytest.mark.parametrize(
    ("term", "kind", "negated", "operands"),
    [
        ("EXISTS (SELECT 1 FROM s)", "exists", False, ()),
        ("NOT EXISTS (SELECT 1 FROM s)", "exists", True, ()),
        ("(NOT (EXISTS (SELECT 1 FROM s)))", "exists", True, ()),
        ("NOT NOT EXISTS (SELECT 1 FROM s)", "exists", False, ()),
        ("a IN (SELECT x FROM s)", "in", False, ("t.a",)),
        ("a NOT IN (SELECT x FROM s)", "in", True, ("t.a",)),
        ("NOT (a IN (SELECT x FROM s))", "in", True, ("t.a",)),
        ("(a, b + 1) IN (SELECT x, y FROM s)", "in", False, ("t.a", "t.b + 1")),
        ("a IN ((SELECT x FROM s))", "in", False, ("t.a",)),
        ("a IN (WITH c AS (SELECT x FROM s) SELECT x FROM c UNION SELECT y FROM s)", "in", False, ("t.a",)),
        ("a = (SELECT max(x) FROM s)", "scalar", False, ()),
        ("a BETWEEN 1 AND (SELECT max(x) FROM s)", "scalar", False, ()),
        ("abs(a) > 2 * ((SELECT max(x) FROM s))", "scalar", False, ()),
        ("CASE WHEN a = 1 THEN EXISTS (SELECT 1 FROM s) END", "exists", False, ()),
        ("a = 1 OR a IN (SELECT x FROM s)", "in", False, ("t.a",)),
    ],
)
def test_forms(term: str, kind: str, negated: bool, operands: tuple[str, ...]) -> None:
    item = only(f"SELECT a FROM t WHERE {term}")
    assert (item.kind, item.negated) == (kind, negated)
    assert tuple(map(str, item.operands)) == operands


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT max(x) FROM s) AS m FROM t",
        "SELECT k, sum(a) + (SELECT max(x) FROM s) AS m FROM t GROUP BY k",
        "SELECT k FROM t GROUP BY k HAVING sum(a) > (SELECT max(x) FROM s)",
        "SELECT t.a FROM t JOIN u ON t.k = u.k AND t.a IN (SELECT x FROM s)",
        "SELECT a FROM t ORDER BY (SELECT max(x) FROM s), a",
    ],
)
def test_every_place(sql: str) -> None:
    item = only(sql)
    assert item.plan.output_columns
    assert str(item) in ("(SELECT max(x) FROM s)", "t.a IN (SELECT x FROM s)")


def test_the_text_is_what_spark_gets() -> None:
    item = only("SELECT a FROM t WHERE a IN (SELECT x FROM s WHERE s.k = t.k)")
    assert item.sql() == "(`t.a` IN (SELECT x FROM s WHERE s.k = `t.k`))"
    assert item.references == {Column("t", "a"), Column("t", "k")}
    assert item.plan.free_columns == {Column("t", "k")}


def test_types() -> None:
    (node,) = plan("SELECT (SELECT v FROM u LIMIT 1) AS v, EXISTS (SELECT 1 FROM u) AS e FROM t").collect(Project)[:1]
    assert [field.dtype for field in node.output] == ["decimal(7,2)", "boolean"]


def test_equal_texts_are_equal_subqueries() -> None:
    first, second = found("SELECT (SELECT max(x) FROM s) AS m, (SELECT max(x) FROM s) + 1 AS n FROM t")
    assert first == second
    assert hash(first) == hash(second)
    assert tree_text(first.plan, details=False) != tree_text(
        second.plan, details=False
    )  # each relation of a statement has one name
    assert first.relation != second.relation


def test_a_common_table_expression_is_one_plan() -> None:
    root = plan("WITH c AS (SELECT k, sum(a) AS n FROM t GROUP BY k) SELECT k FROM c WHERE n = (SELECT max(n) FROM c)")
    (item,) = subqueries(root)
    (outer,) = root.collect(SubqueryAlias)
    (inner,) = item.plan.collect(SubqueryAlias)
    assert outer.child is inner.child


def test_nested_ones_are_listed_with_those_around_them() -> None:
    texts = [str(i) for i in found("SELECT a FROM t WHERE a IN (SELECT x FROM s WHERE y = (SELECT max(k) FROM u))")]
    assert texts == ["t.a IN (SELECT x FROM s WHERE y = (SELECT max(k) FROM u))", "(SELECT max(k) FROM u)"]


def test_a_name_means_the_nearest_column() -> None:
    item = only("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM s WHERE k = a AND x = t.k)")
    (condition,) = [node.condition for node in item.plan.collect(Filter)]
    assert [str(term) for term in conjuncts(condition)] == ["s.k = t.a", "s.x = t.k"]


def test_ctes_do_not_see_the_outer_query() -> None:
    with pytest.raises(AnalysisError, match="table 't' not found"):
        plan("SELECT a FROM t WHERE EXISTS (WITH d AS (SELECT x FROM s WHERE y = t.b) SELECT x FROM d)")


def test_derived_tables_see_the_outer_query_as_text() -> None:
    """Spark looks for outer columns in the queries of FROM too; there is no plan for that."""
    root = plan("SELECT a FROM t WHERE EXISTS (SELECT * FROM (SELECT x FROM s WHERE y = t.b) d)")
    assert not list(subqueries(root))
    (condition,) = [node.condition for node in root.collect(Filter)]
    assert Column("t", "b") in condition.references


def test_having_sees_the_keys_that_are_columns() -> None:
    item = only("SELECT count(*) AS n FROM t GROUP BY k, a + 1 HAVING EXISTS (SELECT 1 FROM s WHERE s.k = t.k)")
    assert item.plan.free_columns == {Column("t", "k")}
    with pytest.raises(AnalysisError, match="'b' not found"):
        plan("SELECT count(*) AS n FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM s WHERE s.k = b)")


def test_what_has_no_plan_stays_text() -> None:
    assert not found("SELECT a FROM t WHERE a IN (SELECT x FROM s LATERAL VIEW explode(array(1)) e AS y)")
    (node,) = plan("SELECT a FROM t WHERE a IN (SELECT x FROM s SORT BY x)").collect(Filter)
    assert "SORT BY" in str(node.condition)


def test_a_name_of_the_select_list_is_text_to_a_subquery_two_queries_down() -> None:
    inner = "SELECT s.k + 1 AS a, (SELECT max(v) FROM u WHERE u.k = a) AS m FROM s WHERE s.k = t.k"
    assert [item.kind for item in found(f"SELECT a FROM t WHERE EXISTS ({inner})")] == ["exists"]


def test_substitution_reaches_the_plan() -> None:
    item, _ = found(
        "SELECT a FROM t WHERE EXISTS (SELECT t.k FROM s WHERE s.k = t.k AND s.x IN (SELECT v FROM u WHERE u.k = t.k))"
    )
    new = item.substitute({Column("t", "k"): Column("d", "key"), Column("s", "k"): Literal("1")})
    assert isinstance(new, SubqueryExpression)
    assert new.plan.free_columns == {Column("d", "key")}
    assert new.references == {Column("d", "key")}
    assert "s.k = d.key" in tree_text(new.plan, details=False)
    assert item.substitute({Column("t", "b"): Literal("1")}) is item


def test_an_operator_of_ours_in_a_subquery_that_is_a_join() -> None:
    sql = "SELECT a FROM t WHERE b < 2 * (SELECT sum(u.v) FROM s LAST JOIN u ON s.k = u.k WHERE s.x = t.a)"
    item = only(sql)
    assert item.refusal is not None
    assert item.references == {Column("t", "a")}
    with pytest.raises(UnsupportedError, match="LAST JOIN cannot be used in a subquery"):
        item.sql()
    final = RuleExecutor(BATCHES).optimize(plan(sql)).final
    assert len(final.collect(LastJoin)) == len(final.collect(Aggregate)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE a = 1 OR EXISTS (SELECT 1 FROM s LAST JOIN u ON s.k = u.k)",
        "SELECT (SELECT sum(u.v) FROM s LAST JOIN u ON s.k = u.k) AS m FROM t",
        "SELECT k, sum(a) AS n FROM t GROUP BY k ORDER BY k IN (SELECT s.k FROM s LAST JOIN u ON s.k = u.k)",
    ],
)
def test_elsewhere_it_is_refused_by_the_analyzer(sql: str) -> None:
    with pytest.raises(UnsupportedError, match="LAST JOIN cannot be used in a subquery"):
        plan(sql)


@pytest.mark.parametrize(
    "term",
    [
        "b > (SELECT s.x FROM s LAST JOIN u ON s.k = u.k)",
        "b > (SELECT sum(s.x) FROM s LAST JOIN u ON s.k = u.k WHERE s.y > t.a)",
        "EXISTS (SELECT max(s.x) FROM s LAST JOIN u ON s.k = u.k WHERE s.y = t.a)",
    ],
)
def test_one_that_is_no_join_is_refused_by_the_optimizer(term: str) -> None:
    with pytest.raises(UnsupportedError, match="LAST JOIN cannot be used in a subquery"):
        RuleExecutor(BATCHES).optimize(plan(f"SELECT a FROM t WHERE {term}"))


def test_the_error_of_a_name_says_more_than_that_text_cannot_hold_it() -> None:
    with pytest.raises(AnalysisError, match="'nosuch' not found"):
        plan("SELECT a FROM t WHERE a IN (SELECT nosuch FROM s LAST JOIN u ON s.k = u.k)")


def test_a_star_inside_a_subquery_is_no_star_of_the_list() -> None:
    """``(SELECT * FROM one)`` is one value, as an item and as a field of a struct."""
    query = "(SELECT * FROM (SELECT max(x) AS m FROM s) d)"
    first, _, last = (column.name for column in plan(f"SELECT a, {query}, b FROM t").output_columns)
    assert (first, last) == ("a", "b")
    assert [part.kind for part in found(f"SELECT a, {query}, b FROM t")] == ["scalar"]
    texts = [plan(f"SELECT struct({text}, a) AS z FROM t") for text in (query, f"({query})")]
    assert [len(list(subqueries(text))) for text in texts] == [1, 1]
