"""LAST JOIN in the analyzer: what its parts mean, and where its names are looked up."""

from __future__ import annotations

import pytest
from sqlext_planner.errors import SqlExtError
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.window.nodes import WindowUnion

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

T = {"id": "int", "k": "string", "v": "int", "f": "float", "ts": "timestamp"}
FRAME = "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"


class Databases(DictCatalog):
    """Tables `db1.t` and `db2.u` of databases; db1 is the current one."""

    def __init__(self) -> None:
        super().__init__({"t": T, "db1.t": T, "db2.u": T})

    def current_database(self) -> str | None:
        return "db1"


CATALOG = DictCatalog({"a": T, "b": T, "c": T})


def plan(sql: str, compat: str | None = None, catalog: DictCatalog = CATALOG) -> LogicalPlan:
    result = analyze(parse(sql, compat=compat), catalog)
    for node in result.walk():
        assert not node.missing_references(), node.label()
    return result


def label(condition: str, compat: str | None = None) -> str:
    """How the plan prints ``a LAST JOIN b`` with a clause."""
    (node,) = plan(f"SELECT * FROM a LAST JOIN b {condition}", compat).collect(LastJoin)
    return node.label().removeprefix("LastJoin: ")


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("ON a.k = b.k", "ON a.k = b.k"),
        ("ON b.k = a.k AND b.v <=> a.v", "ON a.k = b.k AND a.v <=> b.v"),
        ("ON (a.k = b.k AND (a.v > 1))", "ON a.k = b.k AND a.v > 1"),
        ("ON upper(a.k) = lower(b.k)", "ON upper(a.k) = lower(b.k)"),
        ("ON a.v = b.v + a.id", "ON a.v = b.v + a.id"),
        ("ON a.v + b.v = 3 AND a.k = 'x' AND b.k = 'y'", "ON a.v + b.v = 3 AND a.k = 'x' AND b.k = 'y'"),
        ("ON a.f = b.f", "ON a.f = b.f"),
        ("ON a.k = b.k OR a.v = b.v", "ON a.k = b.k OR a.v = b.v"),
        ("ON TRUE", "ON TRUE"),
        ("ON true AND a.k = b.k", "ON a.k = b.k"),
        ("ON FALSE", "ON FALSE"),
        ("ORDER BY ts ON a.k = b.k", "ORDER BY b.ts ON a.k = b.k"),
        ("ORDER BY b.v DESC ON a.k = b.k", "ORDER BY b.v DESC ON a.k = b.k"),
        ("ORDER BY b.v % 3 NULLS FIRST ON a.k = b.k", "ORDER BY b.v % 3 ON a.k = b.k"),
        ("x ORDER BY x.id ON a.k = x.k", "ORDER BY x.id ON a.k = x.k"),
    ],
)
def test_parts(clause: str, shown: str) -> None:
    assert label(clause) == shown


def test_equalities_are_keys_and_the_rest_is_the_residual() -> None:
    (node,) = plan("SELECT 1 FROM a LAST JOIN b ON b.v <=> a.id AND a.ts > b.ts AND a.k = b.k").collect(LastJoin)
    (match,) = node.matches
    assert list(map(str, match.left_keys)) == ["a.id", "a.k"]
    assert list(map(str, match.right_keys)) == ["b.v", "b.k"]
    assert match.null_safe == (True, False)
    assert str(match.residual) == "a.ts > b.ts"


def test_the_same_table_twice() -> None:
    (node,) = plan("SELECT a.v, x.v FROM a LAST JOIN a AS x ORDER BY ts ON a.id = x.v").collect(LastJoin)
    assert [column.relation for column in node.output_columns] == ["a"] * 5 + ["x"] * 5
    with pytest.raises(SqlExtError, match="ambiguous"):
        plan("SELECT a.v FROM a LAST JOIN a ON a.id = a.v")


@pytest.mark.parametrize("source", ["c", "(SELECT * FROM c)", "(SELECT a.*, b.* FROM a JOIN b ON a.id = b.id)"])
def test_a_union_source_has_the_left_columns_or_all(source: str) -> None:
    sql = (
        f"SELECT sum(a.v) OVER w AS s, max(b.v) OVER w AS m FROM a LAST JOIN b ON a.k = b.k WINDOW w AS (UNION {source}"
    )
    (node,) = plan(f"{sql} PARTITION BY a.k ORDER BY a.ts {FRAME})").collect(WindowUnion)
    assert len(node.unions[0].output) in (5, 10)
    assert str(node.tie_order) == "input_position"


def test_every_prefix_of_a_chain_may_be_a_union_source() -> None:
    sql = "SELECT count(*) OVER w FROM a LAST JOIN b ON a.k = b.k LAST JOIN c ON c.k = b.k WINDOW w AS (UNION {} "
    for source, fits in (("a", True), ("(SELECT * FROM a CROSS JOIN b)", True), ("(SELECT k, id FROM a)", False)):
        text = f"{sql.format(source)} PARTITION BY a.k ORDER BY a.ts {FRAME})"
        if fits:
            plan(text)
        else:
            with pytest.raises(SqlExtError, match="FROM has 5 or 10 or 15"):
                plan(text)


def test_a_plain_join_has_no_prefixes() -> None:
    with pytest.raises(SqlExtError, match="FROM has 10"):
        plan(
            "SELECT count(*) OVER w FROM a JOIN b ON a.k = b.k "
            f"WINDOW w AS (UNION c PARTITION BY a.k ORDER BY a.ts {FRAME})"
        )


def test_the_input_position_comes_from_below_subqueries() -> None:
    sql = (
        "SELECT first_value(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW), "
        "distinct_count(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) FROM "
        "(SELECT a.v, a.k, a.ts, b.v AS w FROM a LAST JOIN b ON a.k = b.k WHERE b.v > 1) x WHERE x.v > 2"
    )
    result = plan(sql, "openmldb")
    for node in result.collect(WindowUnion):
        assert str(node.tie_order) == "x.input_position"
    (join,) = result.collect(LastJoin)
    assert join.left.output_columns[-1].name == "input_position"
    assert "input_position" not in [column.name for column in result.output_columns]


def test_bare_keys_of_a_window_are_the_left_tables_in_openmldb_mode() -> None:
    sql = f"SELECT sum(b.v) OVER w FROM a LAST JOIN b ON a.k = b.k WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME} )"
    (node,) = plan(sql, "openmldb").collect(WindowUnion)
    assert (str(node.partition_by[0]), str(node.order_by)) == ("a.k", "a.ts")
    with pytest.raises(SqlExtError, match="'v' is ambiguous"):
        plan(sql.replace("b.v", "v"), "openmldb")
    with pytest.raises(SqlExtError, match="'k' is ambiguous"):
        plan(sql.replace("sum", "distinct_count"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT db1.t.v, u.v FROM db1.t LAST JOIN db2.u AS u ON t.k = u.k",
        "SELECT db1.t.v, db2.u.v FROM t LAST JOIN db2.u ORDER BY db2.u.ts ON db1.t.k = db2.u.k",
        "SELECT db1.x.*, db1.y.v FROM (SELECT * FROM t) x LAST JOIN (SELECT * FROM db2.u) y ON db1.x.k = db1.y.k",
    ],
)
def test_databases_in_openmldb_mode(sql: str) -> None:
    plan(sql, "openmldb", Databases())


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT u.v FROM t LAST JOIN db2.u ON t.k = db2.u.k", "table 'u' not found in FROM"),
        ("SELECT db2.t.v FROM t LAST JOIN db2.u ON t.k = db2.u.k", "table 'db2.t' not found in FROM"),
    ],
)
def test_other_databases_are_named_in_openmldb_mode(sql: str, message: str) -> None:
    with pytest.raises(SqlExtError, match=message):
        plan(sql, "openmldb", Databases())
    if "db2.t" not in sql:
        plan(sql, None, Databases())


def test_hints_reach_the_sides() -> None:
    text = tree_text(plan("SELECT /*+ BROADCAST(b) */ a.v FROM a LAST JOIN b ON a.k = b.k"), details=False)
    assert "Hint: BROADCAST" in text
