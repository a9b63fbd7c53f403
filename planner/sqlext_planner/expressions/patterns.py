"""Questions that several rules ask about expressions."""

from __future__ import annotations

from collections.abc import Collection

from sqlext_planner.expressions.nodes import COLLATION, GENERATOR, RANDOM, SUBQUERY, WINDOW, Column, Expression


def is_generator(expression: Expression) -> bool:
    """True if the expression may turn one row into several."""
    return bool(expression.traits & GENERATOR)


def is_deterministic(expression: Expression) -> bool:
    """True if the value depends on the row alone: no rand(), and no Spark window over the other rows."""
    return not expression.traits & (RANDOM | WINDOW)


def is_movable(expression: Expression) -> bool:
    """True if a rule may evaluate the expression elsewhere in the plan.

    Not movable: rand() and the like (evaluated on other rows it gives other values), Spark windows (they look at
    the other rows at their place in the plan), subqueries (their text may name columns available at that place
    in ways that only Spark resolves), generators.
    """
    return not expression.traits & (RANDOM | WINDOW | SUBQUERY | GENERATOR)


def holds_subquery(expression: Expression) -> bool:
    """True if the expression holds a subquery, with a plan or as text."""
    return bool(expression.traits & SUBQUERY)


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
    return bool(expression.traits & COLLATION)


def reads_only(expression: Expression, columns: Collection[Column]) -> bool:
    """True if the expression reads at least one column, and all it reads are among `columns`."""
    return bool(expression.references) and all(column in columns for column in expression.references)
