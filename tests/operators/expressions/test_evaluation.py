"""Expressions over arrays against their brute-force twin: types, NULLs, NaN, overflow, three-valued logic."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.expressions.evaluation import evaluate, true_rows
from sqlext_operators.expressions.nodes import (
    IsNull,
    TaskAnd,
    TaskArithmetic,
    TaskColumn,
    TaskComparison,
    TaskConstant,
    TaskExpression,
    TaskNot,
    TaskOr,
    Widened,
)

from tests.operators.expressions import reference

NAN, INF = float("nan"), float("inf")
BOOL, INT, LONG, DOUBLE = pa.bool_(), pa.int32(), pa.int64(), pa.float64()
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "t": (pa.int8(), [-128, -1, 0, 1, 3, 127]),
    "i": (INT, [-(1 << 31), -7, -1, 0, 1, 2, 46341, (1 << 31) - 1]),
    "l": (LONG, [-(1 << 63), -(1 << 62), -1, 0, 1, 3, 1 << 32, (1 << 63) - 1]),
    "f": (pa.float32(), [NAN, -INF, -1.5, -0.0, 0.0, 0.5, INF]),
    "d": (DOUBLE, [NAN, -INF, -1.5, -0.0, 0.0, 0.1, 1e308, INF]),
    "m": (pa.decimal128(7, 2), [Decimal(x) for x in ("-99999.99", "-0.01", "0.00", "1.50", "99999.99")]),
    "s": (pa.string(), ["", "a", "aa", "b", "ä", "z", "🙂"]),
    "b": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    "o": (BOOL, [False, True]),
    "y": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2024, 1, 1)]),
    "w": (pa.timestamp("us"), [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 0, 0, 0, 1)]),
}
NUMBERS = "tilfdm"
ROWS = st.lists(
    st.fixed_dictionaries({n: st.one_of(st.none(), *[st.sampled_from(v)] * 4) for n, (_, v) in COLUMNS.items()}),
    min_size=1,
    max_size=8,
)


def leaf(draw: st.DrawFn, name: str) -> TaskExpression:
    kind, values = COLUMNS[name]
    if draw(st.integers(0, 3)):
        return TaskColumn(name, kind)
    return TaskConstant(draw(st.sampled_from([None, *values])), kind)


@st.composite
def number(draw: st.DrawFn, name: str, checked: bool, depth: int) -> TaskExpression:
    """A number of the type of a column, or a decimal or a double that is computed from such."""
    kind = COLUMNS[name][0]
    shape = draw(st.integers(0, 3)) if depth else 0
    if shape == 0:
        return leaf(draw, name)
    if shape == 1 and name in "id":
        return Widened(draw(number("t" if name == "i" else "i", checked, depth - 1)), kind)
    ours, theirs = (draw(number(name, checked, depth - 1)) for _ in range(2))
    if name == "m":
        sign = draw(st.sampled_from("+-*"))
        ours, theirs = (
            Widened(item, kind) if item.type != kind else item for item in (leaf(draw, "m"), leaf(draw, "m"))
        )
        return TaskArithmetic(sign, ours, theirs, pa.decimal128(15, 4) if sign == "*" else pa.decimal128(8, 2))
    signs = "+-*%" if name != "d" else "+-*%/"
    sign = draw(st.sampled_from(signs))
    return TaskArithmetic(sign, ours, theirs, kind, checked and sign in "+-*" and name in "til")


@st.composite
def condition(draw: st.DrawFn, checked: bool, depth: int) -> TaskExpression:
    shape = draw(st.integers(0, 7)) if depth else draw(st.integers(3, 7))
    if shape <= 1:
        terms = tuple(draw(st.lists(condition(checked, depth - 1), min_size=2, max_size=3)))
        return TaskAnd(terms) if shape else TaskOr(terms)
    if shape == 2:
        return TaskNot(draw(condition(checked, depth - 1)))
    name = draw(st.sampled_from(sorted(COLUMNS)))
    if shape == 3:
        return IsNull(leaf(draw, name)) if name != "o" else leaf(draw, "o")
    sides = [draw(number(name, checked, 2)) if name in NUMBERS else leaf(draw, name) for _ in range(2)]
    if sides[0].type != sides[1].type:  # decimals of several shapes
        sides = [Widened(side, pa.decimal128(20, 4)) for side in sides]
    return TaskComparison(draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])), *sides)


def columns(rows: list[dict[str, Any]]) -> Callable[[str], pa.Array]:
    return lambda name: pa.array([row[name] for row in rows], COLUMNS[name][0])


@given(st.booleans().flatmap(lambda checked: condition(checked, 3)), ROWS)
def test_evaluation_agrees_with_its_twin(expression: TaskExpression, rows: list[dict[str, Any]]) -> None:
    try:
        expected = [reference.value(expression, row) for row in rows]
    except OverflowError:
        with pytest.raises(RowOverflowError):
            evaluate(expression, columns(rows), len(rows))
        return
    found = evaluate(expression, columns(rows), len(rows))
    assert found.type == expression.type
    assert found.to_pylist() == expected
    assert true_rows(expression, columns(rows), len(rows)).tolist() == [value is True for value in expected]


@given(st.sampled_from(NUMBERS).flatmap(lambda name: number(name, False, 3)), ROWS)
def test_numbers_agree_with_their_twin(expression: TaskExpression, rows: list[dict[str, Any]]) -> None:
    found = evaluate(expression, columns(rows), len(rows))
    assert found.type == expression.type
    assert list(map(repr, found.to_pylist())) == [repr(reference.value(expression, row)) for row in rows]


def test_an_error_behind_what_decides_is_none() -> None:
    """``x = 0 OR l * l > 1`` as Spark computes it: not the product where x is 0."""
    product = TaskArithmetic("*", TaskColumn("l", LONG), TaskColumn("l", LONG), LONG, checked=True)
    large = TaskComparison(">", product, TaskConstant(1, LONG))
    zero = TaskComparison("=", TaskColumn("i", INT), TaskConstant(0, INT))
    rows = [{"i": 0, "l": 1 << 62}, {"i": 1, "l": 2}]
    assert evaluate(TaskOr((zero, large)), columns(rows), 2).to_pylist() == [True, True]
    assert evaluate(TaskAnd((TaskNot(zero), large)), columns(rows), 2).to_pylist() == [False, True]
    for expression in (TaskOr((large, zero)), TaskAnd((zero, large))):
        with pytest.raises(RowOverflowError, match="does not fit its type"):
            evaluate(expression, columns(rows), 2)
    assert large.may_fail
    assert not zero.may_fail


def test_expressions_travel() -> None:
    expression = TaskComparison("<", Widened(TaskColumn("i", INT), LONG), TaskConstant(5, LONG))
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert hash(expression) == hash(pickle.loads(pickle.dumps(expression)))
    assert list(TaskAnd((expression, IsNull(TaskColumn("s", pa.string())))).inputs()) == ["i", "s"]
