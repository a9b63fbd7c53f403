"""What aggregates are of no rows, and which types compare exactly."""

from __future__ import annotations

import pytest
from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal
from sqlext_planner.expressions.typed import NULL
from sqlext_planner.optimizer.correlation import compares_exactly
from sqlext_planner.relational.plan_patterns import at_no_rows, is_strict

from tests.planner.plans import written

X = Column("s", "x")


def expression(text: str) -> Expression:
    """`text` over the column s.x."""
    return written(text.replace("X", "x"), {"s": {"x": "int"}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum(X)", "NULL"),
        ("0.5 * sum(X)", "NULL"),
        ("max(X) - min(X) / 2e3", "NULL"),
        ("sum(X) / count(X)", "NULL"),
        ("avg(DISTINCT X) FILTER (WHERE X > 3)", "NULL"),
        ("count(*)", "0L"),
        ("count( DISTINCT X ) + 1", "(0L + 1)"),
        ("count(X) FILTER (WHERE X > 3)", "0L"),
        ("coalesce(sum(X), 0)", "(coalesce(NULL, 0))"),
        ("CAST(sum(X) AS DOUBLE)", "(CAST(NULL AS DOUBLE))"),
        ("CASE WHEN count(*) = 0 THEN 'none' ELSE max(X) END", "(CASE WHEN 0L = 0 THEN 'none' ELSE NULL END)"),
        ("concat('sum(1) it''s (', max(X))", "(concat('sum(1) it''s (', NULL))"),
        ("sum(length(concat(X, ')')))", "NULL"),
    ],
)
def test_known(text: str, value: str) -> None:
    found = at_no_rows(expression(text))
    assert found is not None
    assert found.sql() == value


@pytest.mark.parametrize(
    "text",
    [
        "collect_list(X)",
        "my_aggregate(X)",
        "my_aggregate(1) + sum(X)",
        "sum(X) + X",
        "listagg(X) WITHIN GROUP (ORDER BY X)",
    ],
)
def test_unknown(text: str) -> None:
    assert at_no_rows(expression(text)) is None


def test_comparisons_and_constants() -> None:
    found = at_no_rows(Compare(">", expression("count(X)"), Literal("3")))
    assert found is not None
    assert found.sql() == "(0L > 3)"
    assert at_no_rows(Literal("7")) == Literal("7")
    assert at_no_rows(X) is None
    assert at_no_rows(expression("sum(rand())")) is None
    assert at_no_rows(expression("NULL * max(X)")) == NULL


def test_strict() -> None:
    assert is_strict(X, X)
    assert is_strict(expression("2 * (X - 1.5e3) % 7"), X)
    assert is_strict(expression("0.2 * (X + 1)"), X)
    assert not is_strict(expression("coalesce(X, 0)"), X)
    assert not is_strict(expression("1 + 2"), X)
    assert not is_strict(expression("1 + coalesce(X, 0)"), X)
    assert not is_strict(Compare("=", X, X), X)


@pytest.mark.parametrize(
    ("inner", "outer", "exact"),
    [
        ("int", "int", True),
        ("bigint", "int", True),
        ("string", "string", True),
        ("double", "double", True),
        ("decimal(7,2)", "decimal(12,4)", True),
        ("int", "decimal(12,4)", True),
        ("int", "decimal(38,28)", True),
        ("bigint", "decimal(38,18)", True),
        ("bigint", "decimal(38,19)", False),
        ("decimal(38,10)", "decimal(38,0)", False),
        ("string", "int", False),
        ("bigint", "double", False),
        ("date", "timestamp", False),
        (None, "int", False),
        (None, None, False),
    ],
)
def test_types(inner: str | None, outer: str | None, exact: bool) -> None:
    assert compares_exactly(inner, outer) is exact
