"""Which calls without OVER are ours, what is refused beside GROUP BY, and which nested counts need no lists of rows."""

from __future__ import annotations

import re

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.window.group_aggregate import GroupAggregate
from sqlext_planner.window.nodes import WindowUnion

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import stage
from sqlext.syntax.parser import Statement, parse

CATALOG = DictCatalog(
    {
        "a": {"k": "string", "v": "int", "w": "int", "big": "bigint", "d": "double", "m": "map<string,int>"}
        | {"c": "string collate utf8_lcase", "ts": "timestamp", "b": "boolean"},
    }
)
MARK = "/*a*/"

SPARK = [
    "SELECT k, sum(v), stddev(d), median(d), first_value(v) FROM a GROUP BY k",
    "SELECT top(v, 3), sum(v) FROM a GROUP BY k",
    "SELECT at(v) FROM a",
    "SELECT * FROM at(3)",
    "SELECT mine.top(v, 3) FROM a",
    "SELECT x FROM a LATERAL VIEW top(m) AS x",
]
OURS = [
    "SELECT distinct_count(v) FROM a",
    "SELECT k FROM a GROUP BY k HAVING count_where(v, d > 0) > 1",
    "SELECT k FROM a GROUP BY k ORDER BY DISTINCT_COUNT(v)",
    "SELECT k FROM (SELECT k, distinct_count(v) FROM a GROUP BY k)",
    "WITH c AS (SELECT distinct_count(v) AS d FROM a) SELECT d FROM c",
    "CREATE TABLE t AS SELECT distinct_count(v) AS d FROM a",
    "SELECT v FROM a WHERE v > (SELECT distinct_count(v) FROM a)",
    "SELECT 1 UNION SELECT distinct_count(v) FROM a",
]


def parsed(sql: str, *, mine: tuple[str, ...] = ()) -> Statement:
    return parse(sql, is_user_function=lambda name: name in mine)


@pytest.mark.parametrize("sql", SPARK)
def test_statements_that_stay_sparks(sql: str) -> None:
    """Spark's aggregates, and functions of the user's that are called like ours."""
    assert not parsed(sql, mine=("top", "at")).uses_extension


@pytest.mark.parametrize("sql", OURS)
def test_statements_that_are_ours(sql: str) -> None:
    assert parsed(sql).uses_extension


def test_the_catalog_is_asked_only_for_names_of_ours() -> None:
    asked: list[str] = []

    def known(name: str) -> bool:
        asked.append(name)
        return False

    parse("SELECT sum(v), upper(k), Distinct_Count(v), at(v, 1) OVER w FROM a WINDOW w AS (PARTITION BY k)")
    parse("SELECT sum(v), upper(k), Distinct_Count(v) FROM a GROUP BY k", is_user_function=known)
    assert asked == ["distinct_count"]


@pytest.mark.parametrize(
    ("compat", "sql", "kind"),
    [
        (None, "SELECT sum(v) FROM a GROUP BY k", Aggregate),
        ("openmldb", "SELECT sum(v) FROM a GROUP BY k", GroupAggregate),
        ("openmldb", "SELECT count(*), min(v) FROM a GROUP BY k", Aggregate),
        ("openmldb", "SELECT count(*), median(v) FROM a GROUP BY k", GroupAggregate),
        (None, "SELECT count(*), distinct_count(v) FROM a", GroupAggregate),
    ],
)
def test_whose_aggregate_it_is(compat: str | None, sql: str, kind: type) -> None:
    nodes = [node for node in analyze(parse(sql, compat=compat), CATALOG).walk() if "Aggregate" in type(node).__name__]
    assert [type(node) for node in nodes] == [kind]


def test_types_of_openmldb() -> None:
    sql = "SELECT sum(v), sum(big), avg(v), distinct_count(k), count(*) FROM a GROUP BY k"
    (node,) = analyze(parse(sql, compat="openmldb"), CATALOG).collect(GroupAggregate)
    assert [item.dtype for item in node.output] == ["string", "int", "bigint", "double", "bigint", "bigint"]


REFUSED = [
    ("SELECT /*a*/at(v, 1)/*a*/ FROM a GROUP BY k", "at() needs an order of the rows", "at(x[, n][, default]) OVER w"),
    ("SELECT k, /*a*/ew_avg(v, 0.5)/*a*/ FROM a GROUP BY k", "ew_avg() needs an order", "OVER w"),
    (
        "SELECT count_where(/*a*/DISTINCT v, b/*a*/) FROM a",
        "DISTINCT cannot be used with count_where()",
        "distinct_count",
    ),
    ("SELECT max(/*a*/distinct_count(v)/*a*/) FROM a", "distinct_count() is inside another", "subquery of FROM"),
    ("SELECT distinct_count(1 + /*a*/sum(v)/*a*/) FROM a", "sum() is inside another aggregate", "subquery of FROM"),
    (
        "SELECT distinct_count(/*a*/rank() OVER (ORDER BY v)/*a*/) FROM a",
        "a window is inside another",
        "subquery",
    ),
    ("SELECT /*a*/distinct_count(v) FILTER (WHERE b)/*a*/ FROM a", "FILTER cannot be used with", "count_where"),
    ("SELECT k, /*a*/distinct_count(v)/*a*/ FROM a GROUP BY ROLLUP(k)", "cannot be used with ROLLUP", "UNION ALL"),
    ("SELECT /*a*/distinct_count(v)/*a*/ FROM a GROUP BY GROUPING SETS ((k), ())", "GROUPING SETS", "UNION ALL"),
    ("SELECT /*a*/v/*a*/, distinct_count(v) FROM a GROUP BY k", "'v' is neither grouped", "GROUP BY"),
    ("SELECT /*a*/*/*a*/, distinct_count(v) FROM a GROUP BY k", "is neither grouped", "GROUP BY"),
    ("SELECT k FROM a WHERE /*a*/distinct_count(v)/*a*/ > 1", "WHERE cannot contain an aggregate", "HAVING"),
    ("SELECT k FROM a GROUP BY /*a*/distinct_count(v)/*a*/", "GROUP BY cannot contain an aggregate", "HAVING"),
    ("SELECT /*a*/count_where(v)/*a*/ FROM a", "does not take 1 argument", "count_where(x or *, condition)"),
    ("SELECT count_where(v, /*a*/w/*a*/) FROM a", "must be boolean, not int", "comparison"),
    ("SELECT distinct_count(/*a*/m/*a*/) FROM a", "does not take map", "cast"),
    ("SELECT sum_where(/*a*/k/*a*/, b) FROM a GROUP BY k", "does not take string", "cast"),
    ("SELECT top(v, /*a*/w/*a*/) FROM a GROUP BY k", "must be a literal integer", "top(x, n)"),
    ("SELECT v, (SELECT /*a*/distinct_count(v)/*a*/ FROM a) FROM a", "cannot be used in a subquery of an", "WITH"),
]


@pytest.mark.parametrize(("sql", "message", "help"), REFUSED)
def test_refusals(sql: str, message: str, help: str) -> None:
    first, second = (match.span() for match in re.finditer(re.escape(MARK), sql))
    with pytest.raises(SqlExtError) as caught:
        analyze(parse(sql), CATALOG)
    error = caught.value
    assert message in error.message
    assert help in (error.help or "")
    assert error.span is not None
    assert first[0] <= error.span.start <= first[1]
    assert second[0] <= error.span.end <= second[1]


def test_openmldb_refuses_what_it_refuses_over_windows() -> None:
    for sql in ("SELECT min(b) FROM a", "SELECT sum(k) FROM a", "SELECT first_value(v) FROM a GROUP BY k"):
        with pytest.raises(SqlExtError):
            analyze(parse(sql, compat="openmldb"), CATALOG)


def window_nodes(condition: str, value: str = "v") -> list[WindowUnion]:
    sql = (
        f"SELECT count_where({value}, {condition}) OVER w AS n, sum(v) OVER w AS s FROM a "
        "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"
    )
    plan = stage(sql, CATALOG, Config()).optimized
    assert plan is not None
    return plan.collect(WindowUnion)


@pytest.mark.parametrize(
    ("condition", "call"),
    [
        ("v = at(v, 0)", "count_where_at(a.v, a.v, a.v, 0, False)"),
        ("((at(w, 2)) = v + 1)", "count_where_at(a.v, a.v + 1, a.w, 2, False)"),
        ("k <=> lag(k)", "count_where_at(a.v, a.k, a.k, 1, True)"),
        ("'x' = at(upper(k), 0)", "count_where_at(a.v, 'x', upper(a.k), 0, False)"),
        ("ts = at(ts, 0)", "count_where_at(a.v, a.ts, a.ts, 0, False)"),
    ],
)
def test_counts_like_the_newest_row_need_no_lists(condition: str, call: str) -> None:
    """One node, beside its neighbours."""
    (node,) = window_nodes(condition)
    assert str(node.windows[0].calls[0]) == f"{call} AS n"
    assert len(node.windows[0].calls) == 2


def test_counts_of_rows_like_the_newest() -> None:
    (node,) = window_nodes("v = at(v, 0)", "*")
    assert str(node.windows[0].calls[0]) == "count_where_at(a.v, a.v, 0, False) AS n"


@pytest.mark.parametrize(
    "condition",
    [
        "v = at(big, 0)",  # Spark compares them as bigint
        "c = at(c, 0)",  # equal strings of this collation differ
        "v > at(v, 0)",
        "v = at(v, 0) + 1",
        "v = at(v, 0) AND b",
        "at(v, 1) = at(v, 0)",
        "v = at(sum(v), 0)",
        "v = max(v)",
        "abs(w) = at(v, 0)",  # not certain to be an int
    ],
)
def test_other_nested_counts_take_the_general_way(condition: str) -> None:
    assert len(window_nodes(condition)) == 2 + (condition == "v = at(sum(v), 0)")


def test_the_place_of_a_nested_count_is_checked() -> None:
    with pytest.raises(SqlExtError, match="n of lag"):
        window_nodes("v = at(v, -1)")
