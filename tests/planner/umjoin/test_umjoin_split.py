"""What of a multi-way join is the operator's, in which types, and how it prints. Needs no Spark."""

from __future__ import annotations

import textwrap
from itertools import product

import pytest
from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, NamedExpr, SparkExpr, conjunction
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.umjoin.execute.execution import UMJoinExec
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.nodes import KeyLayout, UMJoin, class_type, compared_type

from tests.planner.umjoin.umjoin_plans import TYPES, column, equal, scan, scans, term, umjoin

CHAIN = (equal("a.i", "b.i"), equal("b.j", "c.j"))


def layout(node: UMJoin) -> KeyLayout:
    return UMJoinSplit.of(node).layout


def test_classes_are_numbered_in_order_of_the_inputs() -> None:
    found = layout(umjoin("a=t0 b=t1 c=t2", equal("b.j", "c.j"), equal("a.i", "b.i"), equal("c.h", "a.i")))
    assert found.names == ("a.i = b.i = c.h", "b.j = c.j")
    assert found.classes == ((0,), (0, 1), (0, 1))
    assert found.shared == (0,)


def test_matches_connect_no_classes() -> None:
    """d's key is compared with two classes, which stay two: rows without d need not be equal in both."""
    match = conjunction((equal("d.i", "b.i"), equal("d.i", "b.j")))
    node = umjoin("a=t0 b=t1 c=t2 d=t0", *CHAIN, members={"d": ("left", match)})
    assert layout(node).names == ("a.i = b.i = d.i", "b.j = c.j = d.i")
    assert layout(node).classes == ((0,), (0, 1), (1,), (0, 1))


def test_members_whose_keys_may_be_null_are_joined_above() -> None:
    for kind in ("left", "anti"):
        node = umjoin("a=t0 b=t1 d=t0", equal("a.i", "b.i"), members={"d": (kind, equal("d.s", "a.s"))})
        assert UMJoinSplit.of(node).members == (2,)
    node = umjoin("a=t0 b=t1 d=t0", equal("a.i", "b.i"), members={"d": ("semi", equal("d.s", "a.s"))})
    assert UMJoinSplit.of(node).members == ()
    assert layout(node).names == ("a.i = b.i", "a.s = d.s")


def test_a_semi_input_binds_for_the_others() -> None:
    members = {"d": ("left", equal("d.s", "a.s")), "e": ("semi", equal("a.s", "e.s"))}
    node = umjoin("a=t0 b=t1 d=t0 e=t2", equal("a.i", "b.i"), members=members)  # type: ignore[arg-type]
    assert UMJoinSplit.of(node).members == ()


def test_the_plan_around_the_operator() -> None:
    more = conjunction((equal("e.i", "a.i"), term("{e.id} > {c.id}")))
    own = conjunction((equal("d.i", "b.i"), term("{d.id} > 4")))
    node = umjoin(
        "a=t0 b=t1 c=t2 d=t0 e=t1",
        *CHAIN,
        term("{a.id} < {c.h}"),
        term("{b.id} <> 3"),
        members={"d": ("left", own), "e": ("semi", more)},
        payload="a.s d.id",
        columns="id i j h s",
    )
    plan = operator_plan(node, scans(node), "hypercube")
    assert tree_text(plan, details=False) == textwrap.dedent(
        """\
        ProjectExec: a.s, d.id
          FilterExec: a.id < c.h
            JoinExec: semi ON e.i = a.i AND e.id > c.id
              UMJoinExec: [hypercube] a, b, c, left d ON a.i = b.i = d.i, b.j = c.j \
PAYLOAD [a.id, a.i, a.s, c.id, c.h, d.id]
                ScanExec: t0 AS a [id, i, j, h, s]
                FilterExec: b.id <> 3
                  ScanExec: t1 AS b [id, i, j, h, s]
                ScanExec: t2 AS c [id, i, j, h, s]
                FilterExec: d.id > 4
                  ScanExec: t0 AS d [id, i, j, h, s]
              ScanExec: t1 AS e [id, i, j, h, s]"""
    )
    (core,) = plan.collect(UMJoinExec)
    assert core.details() == {
        "runs": "UMJoin (hypercube)",
        "strategy": "hypercube",
        "key classes": ["a.i = b.i = d.i", "b.j = c.j"],
        "shares": "by the inputs' sizes when it runs",
    }
    assert core.is_extension


def test_a_join_without_columns_has_its_first_key() -> None:
    plan = operator_plan(node := umjoin("a=t0 b=t1 c=t2", *CHAIN, payload=""), scans(node), "hypercube")
    assert plan.output == ()
    assert [str(item.column) for core in plan.collect(UMJoinExec) for item in core.output] == ["a.i"]


def test_why_a_join_is_not_the_operators() -> None:
    rand = SparkExpr(("rand() < ", column("a.id")), deterministic=False)
    reasons = {
        "only Spark can evaluate rand() < a.id": umjoin("a=t0 b=t1", equal("a.i", "b.i"), rand),
        "no two of its inputs are joined on equal columns": umjoin("a=t0 b=t1", term("{a.i} < {b.i}")),
        "no column of c must be equal to another input's": umjoin("a=t0 b=t1 c=t2", equal("a.i", "b.i")),
        "the operator has no common type for the keys a.i = b.s (int, string)": umjoin(
            "a=t0 b=t1 c=t2", equal("a.i", "b.s"), equal("b.i", "c.i")
        ),
    }
    for reason, node in reasons.items():
        assert ineligible(node) == reason


def test_an_aggregate_over_everything_is_one_row() -> None:
    most = NamedExpr(term("max({c.id})"), Column("", "most"))
    total = Aggregate((), None, (most,), scan("c", "t2"))
    by_key = Aggregate((column("c.i"),), None, (most,), scan("c", "t2"))
    for last, reason in ((total, None), (by_key, "no column of c must be equal to another input's")):
        inputs = (scan("a", "t0"), scan("b", "t1"), last)
        assert ineligible(UMJoin(inputs, ("inner",) * 3, equal("a.i", "b.i"), (None,) * 3)) == reason


def test_types_that_no_operator_gets() -> None:
    from sqlext_planner.relational.logical_plan import Field
    from sqlext_planner.relational.nodes import Scan

    odd = Scan("o", "o", (Field(Column("o", "i"), "int"), Field(Column("o", "v"), "variant")))
    node = UMJoin((odd, scan("a", "t0")), ("inner", "inner"), equal("o.i", "a.i"), (None, None))
    assert ineligible(node) == "o.v has the type variant, which Spark cannot pass to an operator"
    months = Scan("o", "o", (Field(Column("o", "i"), "int"), Field(Column("o", "v"), "interval year to month")))
    assert ineligible(UMJoin((months, scan("a", "t0")), ("inner", "inner"), equal("o.i", "a.i"), (None, None))) is None


def test_strategies_need_their_keys() -> None:
    node = umjoin("a=t0 b=t1 c=t2", *CHAIN)
    with pytest.raises(InternalError, match="a key class that all inputs have"):
        operator_plan(node, scans(node), "shared key")


def test_one_type_stands_for_all_comparisons_of_a_class() -> None:
    assert class_type([("int", "bigint"), ("bigint", "smallint")]) == "bigint"
    assert class_type([("int", "decimal(10,2)"), ("decimal(10,2)", "bigint")]) == "decimal(22,2)"
    assert class_type([("decimal(38,0)", "int"), ("int", "decimal(10,2)")]) is None
    assert class_type([("float", "double"), ("float", "float")]) == "double"
    assert class_type([("bigint", "double"), ("double", "decimal(5,1)")]) == "double"
    assert class_type([("bigint", "double"), ("bigint", "bigint")]) is None
    assert class_type([("date", "timestamp"), ("date", "date")]) is None
    assert class_type([("date", "timestamp"), ("timestamp", "date")]) == "timestamp"
    assert class_type([("int", "void")]) == "bigint"
    assert class_type([("void", "void")]) is None
    assert class_type([("string", "string collate UTF8_LCASE")]) is None
    assert class_type([("array<int>", "array<int>")]) is None


def test_comparison_is_symmetric() -> None:
    for left, right in product([*TYPES.values(), "void", "time(6)", "array<int>"], repeat=2):
        assert compared_type(left, right) == compared_type(right, left)
