"""Questions that several rules ask about expressions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr
from sqlext_planner.expressions.subquery import Subquery

#: Spark's functions that turn one row into several; legal in a SELECT list only.
_GENERATOR = re.compile(
    r"\b(explode|explode_outer|posexplode|posexplode_outer|inline|inline_outer|stack|json_tuple)\s*\("
)


def is_generator(expression: Expression) -> bool:
    """True if the expression may turn one row into several (judged by text: a string literal may fool it,
    which costs a rewrite and never a result)."""
    return any(
        isinstance(part, str) and _GENERATOR.search(part.lower())
        for node in expression.walk()
        if isinstance(node, SparkExpr)
        for part in node.parts
    )


def is_deterministic(expression: Expression) -> bool:
    """True if the value depends on the row alone: no rand(), and no Spark window over the other rows."""
    return not any(
        isinstance(node, SparkExpr) and (not node.deterministic or node.has_window) for node in expression.walk()
    )


def is_movable(expression: Expression) -> bool:
    """True if a rule may evaluate the expression elsewhere in the plan.

    Not movable: rand() and the like (evaluated on other rows it gives other values), Spark windows (they look at
    the other rows at their place in the plan), subqueries (their text may name columns available at that place
    in ways that only Spark resolves), generators.
    """
    return is_deterministic(expression) and not holds_subquery(expression) and not is_generator(expression)


def holds_subquery(expression: Expression) -> bool:
    """True if the expression holds a subquery, with a plan or as text."""
    return any(
        isinstance(node, Subquery) or (isinstance(node, SparkExpr) and node.has_subquery) for node in expression.walk()
    )


#: Types in which equal values are the same value. 0.0 = -0.0 and strings of some collations are equal but differ.
_EXACT_TYPES = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string", "binary")
)


def is_exact(dtype: str | None) -> bool:
    """True if two equal values of the type are the same value, so that a condition holds for both or for none."""
    return dtype is not None and (dtype in _EXACT_TYPES or dtype.startswith("decimal("))


def names_collation(expression: Expression) -> bool:
    """True if the text gives a string a collation. Spark prefers a collation in an expression to those of columns; in
    a column of its own it would be one among others."""
    return any(
        isinstance(node, SparkExpr) and any(isinstance(part, str) and _COLLATION.search(part) for part in node.parts)
        for node in expression.walk()
    )


_COLLATION = re.compile(r"\bcollat", re.IGNORECASE)


def reads_only(expression: Expression, columns: Collection[Column]) -> bool:
    """True if the expression reads at least one column, and all it reads are among `columns`."""
    return bool(expression.references) and all(column in columns for column in expression.references)


def inline(expression: Expression, mapping: Mapping[Column, Expression]) -> Expression:
    """`expression` with columns replaced by expressions.

    A literal goes in as an opaque expression, which prints parentheses: ``a-b`` with b = -1 must not become
    the comment ``a--1``.
    """
    if isinstance(expression, Column):
        return mapping.get(expression, expression)
    return expression.substitute({column: _operand(mapping[column]) for column in expression.references & set(mapping)})


def _operand(value: Expression) -> Expression:
    return SparkExpr((value.text,), span=value.span, dtype=value.dtype) if isinstance(value, Literal) else value
