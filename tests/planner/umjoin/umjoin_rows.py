"""The rows of a UMJoin by its definition: nested loops over the inputs' rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, conjuncts
from sqlext_planner.umjoin.nodes import UMJoin

Row = dict[Column, Any]
_COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def joined_rows(join: UMJoin, rows: Sequence[Sequence[Row]]) -> list[Row]:
    """The joined rows of inputs with these rows. Terms are comparisons of columns and numbers."""
    inner = [i for i, kind in enumerate(join.kinds) if kind == "inner"]
    late = [term for term in conjuncts(join.condition) if any(c not in _inner_columns(join) for c in term.references)]
    early = [term for term in conjuncts(join.condition) if term not in late]
    found: list[Row] = []
    for choice in product(*(rows[i] for i in inner)):
        row = {column: value for part in choice for column, value in part.items()}
        if all(holds(term, row) for term in early):
            found.append(row)
    waiting = [i for i, kind in enumerate(join.kinds) if kind != "inner"]
    for number in waiting:
        found = list(_extended(join, number, rows[number], found))
    return [row for row in found if all(holds(term, row) for term in late)]


def _inner_columns(join: UMJoin) -> set[Column]:
    pairs = zip(join.inputs, join.kinds, strict=True)
    return {column for child, kind in pairs if kind == "inner" for column in child.output_columns}


def _extended(join: UMJoin, number: int, rows: Sequence[Row], found: list[Row]) -> Iterator[Row]:
    terms, kind = conjuncts(join.matches[number]), join.kinds[number]
    for row in found:
        matches = [{**row, **other} for other in rows if all(holds(term, {**row, **other}) for term in terms)]
        if kind == "left":
            yield from matches or [{**row, **dict.fromkeys(join.inputs[number].output_columns)}]
        elif bool(matches) == (kind == "semi"):
            yield row


def holds(term: Expression, row: Mapping[Column, Any]) -> bool:
    """Whether a comparison is true; NULL is not."""
    assert isinstance(term, Compare)
    left, right = _value(term.left, row), _value(term.right, row)
    return left is not None and right is not None and _COMPARE[term.op](left, right)


def _value(expression: Expression, row: Mapping[Column, Any]) -> Any:
    if isinstance(expression, Column):
        return row[expression]
    assert isinstance(expression, Literal)
    return int(expression.text)
