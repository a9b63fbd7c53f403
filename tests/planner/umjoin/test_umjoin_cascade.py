"""The order of a multi-way join's binary joins, as the plans print. Needs no Spark."""

from __future__ import annotations

import textwrap

from sqlext_planner.expressions.nodes import Column, Compare, Expression, SparkExpr, conjunction
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.umjoin.execute.cascade import cascade
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin


def fields(name: str) -> tuple[Field, ...]:
    return tuple(Field(Column(name, column), "bigint") for column in "xyv")


def equal(left: str, right: str) -> Compare:
    """`equal("a.x", "b.x")`"""
    return Compare("=", Column(*left.split(".")), Column(*right.split(".")))


def joined(
    names: str,
    *terms: Expression,
    members: dict[str, tuple[MemberKind, Expression | None]] | None = None,
    count: Column | None = None,
    payload: tuple[Column, ...] | None = None,
) -> str:
    """The cascade of a join of scans, a line each."""
    known = members or {}
    every = [*names]
    node = UMJoin(
        tuple(Scan(name, name, fields(name)) for name in every),
        tuple(known[name][0] if name in known else "inner" for name in every),
        conjunction(terms),
        tuple(known[name][1] if name in known else None for name in every),
        count,
        payload,
    )
    plan = cascade(node, [SparkExec(Scan(name, name, fields(name))) for name in every])
    assert plan.output_columns == node.output_columns
    return tree_text(plan, details=False)


def lines(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_the_next_input_is_one_that_a_term_connects() -> None:
    assert joined("abc", equal("a.x", "c.x"), equal("c.y", "b.y")) == lines(
        """
        ProjectExec: a.x, a.y, a.v, b.x, b.y, b.v, c.x, c.y, c.v
          JoinExec: inner ON c.y = b.y
            JoinExec: inner ON a.x = c.x
              ScanExec: a [x, y, v]
              ScanExec: c [x, y, v]
            ScanExec: b [x, y, v]
        """
    )


def test_a_term_stands_where_its_columns_are_there() -> None:
    over_three = SparkExpr((Column("a", "v"), " + ", Column("b", "v"), " > ", Column("c", "v")))
    own = Compare(">", Column("b", "v"), Column("b", "x"))
    plan = joined("abc", equal("a.x", "b.x"), over_three, own, equal("b.y", "c.y"), equal("a.y", "c.y"))
    assert plan == lines(
        """
        JoinExec: inner ON a.v + b.v > c.v AND b.y = c.y AND a.y = c.y
          JoinExec: inner ON a.x = b.x
            ScanExec: a [x, y, v]
            FilterExec: b.v > b.x
              ScanExec: b [x, y, v]
          ScanExec: c [x, y, v]
        """
    )


def test_inputs_without_a_term_are_a_product() -> None:
    plan = joined("abc", equal("b.x", "c.x"))
    assert [line.strip() for line in plan.splitlines() if "Join" in line] == [
        "JoinExec: inner ON b.x = c.x",
        "JoinExec: cross",
    ]


def test_other_inputs_follow_once_their_columns_are_there() -> None:
    late = Compare("<", Column("d", "v"), Column("a", "v"))
    plan = joined(
        "abcd",
        equal("a.x", "d.x"),
        Compare("=", Column("c", "v"), Column("d", "v")),
        members={"b": ("semi", equal("b.y", "c.y")), "c": ("left", conjunction((equal("c.x", "a.x"), late)))},
    )
    assert plan == lines(
        """
        ProjectExec: a.x, a.y, a.v, c.x, c.y, c.v, d.x, d.y, d.v
          FilterExec: c.v = d.v
            JoinExec: semi ON b.y = c.y
              JoinExec: left ON c.x = a.x AND d.v < a.v
                JoinExec: inner ON a.x = d.x
                  ScanExec: a [x, y, v]
                  ScanExec: d [x, y, v]
                ScanExec: c [x, y, v]
              ScanExec: b [x, y, v]
        """
    )


def test_random_terms_stay_above() -> None:
    chance = SparkExpr(("rand() < ", Column("a", "v")), deterministic=False)
    plan = joined("abc", equal("a.x", "b.x"), chance, members={"c": ("anti", equal("a.x", "c.x"))})
    assert [line.strip() for line in plan.splitlines()[:2]] == [
        "FilterExec: rand() < a.v",
        "JoinExec: anti ON a.x = c.x",
    ]


def test_every_row_counts_one() -> None:
    plan = joined("ab", equal("a.x", "b.x"), count=Column("", "n"), payload=(Column("b", "v"),))
    assert plan.splitlines()[0] == "ProjectExec: b.v, 1L AS n"
