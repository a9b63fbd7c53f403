"""Expressions keep the user's text for Spark, whatever is known of their structure."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.arithmetic import arithmetic_type, common_decimal, decimal_shape
from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr
from sqlext_planner.expressions.typed import (
    MOST_OPTIONS,
    Arithmetic,
    Case,
    Cast,
    FunctionCall,
    Interval,
    Operation,
    Paren,
    plain_number,
)

from tests.planner.plans import written

TABLES = {"a": {"x": "int", "y": "bigint", "m": "decimal(7,2)", "t": "string", "ts": "timestamp", "s": "struct<f:int>"}}
NAMES = re.compile(r"\ba\.([a-z]+)\b")


def expression(text: str) -> Expression:
    return written(text, TABLES)


def shape(item: Expression) -> str:
    """The classes of an expression and of its operands."""
    name = type(item).__name__.lower().removeprefix("function")
    if isinstance(item, (Column, Literal)):
        return str(item)
    own = {FunctionCall: "name", Cast: "to", Arithmetic: "signs", Interval: "unit", Operation: "name"}.get(type(item))
    named = name if own is None else f"{name} {getattr(item, own)}"
    named = f"not {named}" if getattr(item, "negated", False) else named
    assert isinstance(item, SparkExpr)
    return f"{named}[{', '.join(map(shape, item.operands))}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x + 1 - a.y", "arithmetic ('+', '-')[a.x, 1, a.y]"),
        ("a.x + 1 * a.y", "arithmetic ('+',)[a.x, arithmetic ('*',)[1, a.y]]"),
        ("(a.x + 1) % a.y", "arithmetic ('%',)[paren[arithmetic ('+',)[a.x, 1]], a.y]"),
        ("- a.x", "arithmetic ('-',)[a.x]"),
        ("a.x DIV 2", "operation div[a.x, 2]"),
        ("3L * 1.5BD", "arithmetic ('*',)[3L, 1.5BD]"),
        ("CAST(a.x AS Decimal ( 10 , 2 ))", "cast decimal(10,2)[a.x]"),
        ("a.t::bigint", "cast bigint[a.t]"),
        ("CASE a.x WHEN 1 THEN a.y ELSE 0 END", "case[a.x, 1, a.y, 0]"),
        (
            "CASE WHEN a.x > 1 AND f(a.y) THEN if(a.x = 1, 2, 3) END",
            "case[operation and[operation >[a.x, 1], call f[a.y]], call if[operation =[a.x, 1], 2, 3]]",
        ),
        ("Coalesce( a.x ,  1)", "call coalesce[a.x, 1]"),
        ("a.x > 1 OR sqrt(a.y) > 2", "operation or[operation >[a.x, 1], operation >[call sqrt[a.y], 2]]"),
        ("a.x + 1 IN (a.y, 2)", "in[arithmetic ('+',)[a.x, 1], a.y, 2]"),
        ("a.x NOT IN (1, 2)", "paren[not in[a.x, 1, 2]]"),
        ("if(a.x NOT IN (1), 1, 2)", "call if[paren[not in[a.x, 1]], 1, 2]"),
        ("if(NOT a.x IN (1), 1, 2)", "call if[operation not[in[a.x, 1]], 1, 2]"),
        ("a.ts - INTERVAL '5' MINUTES", "arithmetic ('-',)[a.ts, interval minute[]]"),
        ("a.ts + INTERVAL 1 MONTH", "arithmetic ('+',)[a.ts, sparkexpr[]]"),
        ("upper(a.t || 'x')", "call upper[operation ||[a.t, 'x']]"),
        ("!(a.x IS NULL)", "operation not[paren[operation is null[a.x]]]"),
        ("a.x IS NOT NULL", "operation is not null[sparkexpr[a.x]]"),
        ("(a.x > 1) IS NOT TRUE", "paren[operation is not true[paren[operation >[a.x, 1]]]]"),
        ("a.t NOT LIKE 'x%'", "operation not like[a.t, 'x%']"),
        ("a.t NOT RLIKE 'x'", "paren[operation not rlike[a.t, 'x']]"),
        ("a.t LIKE 'x%' ESCAPE '!'", "sparkexpr[a.t]"),
        ("if(a.x NOT BETWEEN 1 AND 2, 1, 2)", "call if[paren[operation not between[a.x, 1, 2]], 1, 2]"),
        ("TRY_CAST(a.t AS int)", "cast int[a.t]"),
        ("a.s.f + 1", "arithmetic ('+',)[sparkexpr[a.s], 1]"),
        ("other.function(a.x) + 1", "arithmetic ('+',)[sparkexpr[call [a.x]], 1]"),
        ("filter(array(a.x), e -> e > 1)", "call filter[call array[a.x], sparkexpr[]]"),
    ],
)
def test_structure(text: str, expected: str) -> None:
    assert shape(expression(text)) == expected


def test_long_lists_are_text() -> None:
    numbers = [str(number) for number in range(MOST_OPTIONS)]
    assert shape(expression(f"a.x IN ({', '.join(numbers)})")).startswith("in[a.x, 0, 1")
    assert shape(expression(f"a.x IN ({', '.join([*numbers, '7'])})")) == "sparkexpr[a.x]"


def test_parts_of_calls() -> None:
    call = expression("sum(DISTINCT a.x + 1) FILTER (WHERE a.y > 2)")
    assert isinstance(call, FunctionCall)
    assert (call.distinct, call.filtered, call.modifier) == (True, True, "")
    assert [item.sql() for item in call.arguments] == ["(`a.x` + 1)"]
    assert call.condition is not None
    assert call.condition.sql() == "(`a.y` > 2)"
    first = expression("first(a.x) IGNORE NULLS")
    assert isinstance(first, FunctionCall)
    assert (first.name, first.modifier) == ("first", "ignore nulls")
    case = expression("CASE a.x WHEN 1 THEN a.y WHEN 2 THEN 3 ELSE a.m END")
    assert isinstance(case, Case)
    assert [str(item) for item in case.values] == ["a.y", "3", "a.m"]


def test_an_operand_elsewhere_gets_parentheses() -> None:
    product = expression("(a.x + 1) * (a.y)")
    assert isinstance(product, Arithmetic)
    paren = product.operands[0]
    assert isinstance(paren, Paren)
    assert SparkExpr(("2 * ", paren.operands[0])).sql() == "(2 * (`a.x` + 1))"
    assert product.sql() == "((`a.x` + 1) * (`a.y`))"


LEAVES = st.sampled_from(
    ["a.x", "a.y", "a.m", "1", "0.5", "3L", "2.5BD", "1e3", "NULL", "'x''y'", "(a.x)", "INTERVAL 2 DAYS"]
)


def composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", " - ", "*", " /  ", "%", " || ", " DIV ", " > ", " AND "]), inner).map(
            "".join
        ),
        inner.map("({})".format),
        inner.map("- {}".format),
        inner.map("CAST({} AS  INT)".format),
        inner.map("NOT {}".format),
        inner.map("{} IS  NULL".format),
        st.tuples(inner, inner).map(lambda pair: "coalesce({} ,{})".format(*pair)),
        st.tuples(inner, inner).map(lambda pair: "CASE WHEN {} THEN {}  END".format(*pair)),
        st.tuples(inner, inner).map(lambda pair: "if({}, {}, 1)".format(*pair)),
        st.tuples(inner, inner).map(lambda pair: "CASE {} WHEN 1 THEN 2 ELSE {} END".format(*pair)),
    )


@given(st.recursive(LEAVES, composed, max_leaves=12))
def test_spark_gets_the_text_as_it_was_written(text: str) -> None:
    """Even where sqlglot makes nodes of its own."""
    try:
        found = expression(f"greatest(1, {text})")
    except InternalError as error:  # sqlglot does not read it, as with `x IS NULL + 1`
        assume("Spark's own" not in str(error))
        raise
    expected = NAMES.sub(r"`a.\1`", text)
    assert found.sql() == f"(greatest(1, {expected}))"
    assert isinstance(found, FunctionCall)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("a.m * 5", "decimal(9,2)"),
        ("a.m * (5)", "decimal(9,2)"),
        ("a.m * abs(5)", "decimal(18,2)"),
        ("a.m * a.x", "decimal(18,2)"),
        ("a.m + 10000000000", "decimal(14,2)"),
        ("a.m % 5", None),
        ("coalesce(a.m, NULL)", "decimal(7,2)"),
        ("if(a.x > 1, a.m, 1)", "decimal(12,2)"),
    ],
)
def test_types_of_arithmetic(text: str, dtype: str | None) -> None:
    known = {Column("a", name): kind for name, kind in TABLES["a"].items()}
    assert arithmetic_type(expression(text), known) == dtype


def test_shapes_of_numbers() -> None:
    assert decimal_shape("decimal(10,2)") == (10, 2)
    assert decimal_shape("int") is None
    assert common_decimal("int", "decimal(38,28)") == "decimal(38,28)"
    assert common_decimal("bigint", "decimal(38,19)") is None
    assert common_decimal("double", "int") is None
    assert plain_number(expression("-(1.50)")) == -1 * plain_number(Literal("1.5"))  # type: ignore[operator]
