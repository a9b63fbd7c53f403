"""What factorised aggregates look like, which root they take, what they are refused for. No Spark."""

from __future__ import annotations

import re

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.expressions.aggregates import aggregate_calls, function_of
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.umjoin.factorised.plan import factorise
from sqlext_planner.umjoin.nodes import UMJoin

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse
from tests.planner.plans import written

COLUMNS = {"k": "bigint", "j": "bigint", "v": "int", "m": "decimal(15,2)", "fine": "decimal(20,8)", "s": "string"}
TABLES = dict.fromkeys(("a", "b", "c", "d", "e"), COLUMNS) | {
    "ints": {"k": "int", "v": "int"},
    "texts": {"k": "string", "v": "int"},
}
CHAIN = "FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j AND c.k = d.k"
ONE_KEY = "FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


def aggregate(sql: str) -> Aggregate:
    plan = RuleExecutor(BATCHES).optimize(analyze(parse(sql), DictCatalog(TABLES))).final
    return next(node for node in plan.collect(Aggregate) if node.collect(UMJoin))


def factorised(sql: str, *sizes: float) -> str:
    """The plan, node by node."""
    found = factorise(aggregate(sql), sizes or None)
    assert not isinstance(found, str), found
    return str(tree_text(found, details=False))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT count(*) FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND c.k = a.j", "the inputs form a cycle: "),
        (
            "SELECT count(*) FROM a, b, c, d WHERE a.k = b.k AND b.j = c.j AND c.k = d.k AND d.j = a.j",
            "the inputs form a cycle: ",
        ),
        (f"SELECT count(*) {CHAIN} AND a.v < c.v", "the term a.v < c.v needs rows of a, c together"),
        (f"SELECT sum(a.v * b.v) {CHAIN}", "sum(a.v * b.v) needs rows of a, b together"),
        (f"SELECT avg(a.m) {CHAIN}", "avg(a.m): Spark rounds averages of decimal(15,2) on the way"),
        (f"SELECT sum(a.fine) {CHAIN}", "sum(a.fine): decimal(20,8) times a number of rows may lose digits"),
        (f"SELECT sum(a.s) {CHAIN}", "sum(a.s): the argument is string"),
        (f"SELECT sum(length(a.s) % 3) {CHAIN}", "sum(length(a.s) % 3): the argument is of an unknown type"),
        (f"SELECT stddev(a.v) {CHAIN}", "stddev(a.v) contains more than count, sum, avg, min and max"),
        (
            f"SELECT count(*) + first(a.v) {CHAIN}",
            "count(*) + first(a.v) contains more than count, sum, avg, min and max",
        ),
        (f"SELECT sum(rand() * a.v) {CHAIN}", "sum(rand() * a.v) contains more than count, sum, avg, min and max"),
        (f"SELECT count(*) {CHAIN} GROUP BY ROLLUP (a.s)", "GROUPING SETS are several aggregates"),
        (
            "SELECT count(*) FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.j = c.j AND a.v = c.v",
            "left input c is matched with columns of several inputs",
        ),
        (
            "SELECT count(*) FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.j = c.j AND b.v < c.v",
            "the term b.v < c.v needs rows of b, c together",
        ),
        (
            "SELECT count(*) FROM ints, a, texts WHERE ints.k = a.k AND texts.k = a.k",
            "the types of ints.k, a.k, texts.k differ: what equals one of them need not equal the others",
        ),
    ],
)
def test_reasons(sql: str, reason: str) -> None:
    found = factorise(aggregate(sql))
    assert isinstance(found, str)
    assert found.startswith(reason)


def test_columns_and_types_stay() -> None:
    node = aggregate(
        f"SELECT a.s, a.k + 1 AS k1, count(*) AS n, sum(b.m) AS t, avg(c.v) AS g {CHAIN} GROUP BY a.s, a.k"
    )
    found = factorise(node)
    assert not isinstance(found, str)
    assert found.output == node.output


def nodes(text: str) -> list[str]:
    """The joins, aggregates and scans of a plan without what they compute, with their depths."""
    found = re.findall(r"^( *)(?:(Join): inner ON (.*)|(Aggregate): (\[.*?\]).*|(Scan): (\w+).*)$", text, re.MULTILINE)
    return [f"{len(blanks) // 2} {' '.join(filter(None, parts))}" for blanks, *parts in found]


def root_of(text: str) -> str:
    """The input from which the tree hangs: the first one of the joins."""
    return re.findall(r"Scan: (\w+)", text)[0]


def test_inputs_on_one_key_are_a_star() -> None:
    found = factorised("SELECT count(*) FROM a, b, c, d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k", 1, 2, 9, 3)
    assert nodes(found) == [
        "1 Aggregate []",
        "3 Join c.k = d.k",
        "4 Join c.k = b.k",
        "5 Join c.k = a.k",
        "6 Aggregate [c.k]",
        "7 Scan c",
        "6 Aggregate [a.k]",
        "7 Scan a",
        "5 Aggregate [b.k]",
        "6 Scan b",
        "4 Aggregate [d.k]",
        "5 Scan d",
    ]


def test_a_chain_starts_in_its_middle_and_grouping_columns_draw_the_root() -> None:
    assert root_of(factorised(f"SELECT count(*) {CHAIN}", 1, 1, 2, 9)) == "c"
    assert root_of(factorised(f"SELECT count(*) {CHAIN} GROUP BY d.s", 9, 9, 9, 1)) == "d"
    assert root_of(factorised(f"SELECT count(*) {CHAIN} GROUP BY a.k", 1, 1, 1, 1)) in ("a", "b")


def test_merges_happen_where_a_class_ends() -> None:
    found = nodes(factorised(f"SELECT a.s, count(*) {CHAIN} GROUP BY a.s"))
    assert [line for line in found if "Aggregate" in line] == [
        "1 Aggregate [a.s]",
        "4 Aggregate [a.k, a.s]",
        "4 Aggregate [b.k]",
        "7 Aggregate [c.j]",
        "10 Aggregate [d.k]",
    ]


def test_a_key_of_another_input_is_the_roots_own() -> None:
    """Grouping by the column of a class carries nothing: the root has it."""
    found = nodes(factorised(f"SELECT b.k, count(*) {ONE_KEY} GROUP BY b.k", 1, 1, 9))
    assert [line.partition(" ")[2] for line in found if "Aggregate" in line] == [
        "Aggregate [c.k]",
        "Aggregate [c.k]",
        "Aggregate [a.k]",
        "Aggregate [b.k]",
    ]


def test_extremes_and_keys_multiply_nothing() -> None:
    text = factorised(f"SELECT a.s, max(b.v) {CHAIN} GROUP BY a.s")
    assert " * " not in text
    assert " * " in factorised(f"SELECT a.s, count(b.v) {CHAIN} GROUP BY a.s")


def test_semi_and_anti_inputs_filter_what_they_are_looked_up_from() -> None:
    found = factorised(
        "SELECT count(*) FROM a, b WHERE a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.j = b.j AND c.v > b.v) "
        "AND NOT EXISTS (SELECT 1 FROM d WHERE d.k = b.k)"
    )
    joins = dict(re.findall(r"Join: (\w+) ON (.*)", found))
    assert set(joins) == {"inner", "semi", "anti"}
    assert "c.v > b.v" in joins["semi"]


def test_terms_meet_in_one_input_through_a_key() -> None:
    """a.k is b.k in every joined row, so a.k < b.v is b.k < b.v."""
    text = factorised("SELECT count(*) FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND a.k < b.v")
    assert "Filter: b.k < b.v" in text


def calls(text: str) -> list[str] | None:
    found = aggregate_calls(written(text, {"a": COLUMNS}))
    return None if found is None else [function_of(call) + str(len(call.arguments)) for call in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count(*)", ["count0"]),
        ("SUM ( v )  / count( /* all) */ * )", ["sum1", "count0"]),
        ("sum(CASE WHEN v = 'it''s )' THEN 1 END)", ["sum1"]),
        ("count(DISTINCT v, v) + mean(v)", ["count2", "avg1"]),
        ("min(v) FILTER (WHERE v > 0)", ["min1"]),
        ("sum(ALL v)", ["sum1"]),
        ("round(coalesce(sum(greatest(v, 0)), 0), 2)", ["sum1"]),
        ("sum(v) > 3 AND count(*) BETWEEN 1 AND 2", ["sum1", "count0", "count0"]),
        ("my_sum(v)", None),
        ("sum(v) + my.scalar(1)", None),
        ("sum(v) + collect_list(v)", None),
        ("count(v, v)", None),
        ("sum(*)", None),
        ("'sum(x)' ", []),
    ],
)
def test_calls_of_an_expression(text: str, expected: list[str] | None) -> None:
    assert calls(text) == expected
