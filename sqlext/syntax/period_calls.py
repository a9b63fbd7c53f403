"""Finds the calls that are period predicates in function form (``allen_meets(a, b, c, d)``) or functions of periods.

The parser marks them in the tree once, because that needs the catalog: a function that the user has registered under
such a name remains the user's.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS
from sqlglot import exp

from sqlext.syntax.period_nodes import ALLEN_RELATION

_MARK = "sqlext_period_call"
#: ``PERIOD(a, b)``, which is no function of Spark.
WRITTEN = "period"
#: How alike two names are that are taken for one: period_add() is not period_gap().
_CLOSE = 0.85
_FUNCTIONS = (*RELATIONS, ALLEN_RELATION, *PERIOD_FUNCTIONS)


def mark_period_calls(calls: Iterable[exp.Anonymous], is_user_function: Callable[[str], bool]) -> None:
    """Mark the calls of relations and functions of the tables, misspelt ones, which the analyzer refuses, periods."""
    for node in calls:
        name = node.name.lower()
        if (_is_ours(name) or _is_written(node)) and _is_scalar(node) and not is_user_function(name):
            node.meta[_MARK] = True


def is_period_call(node: exp.Expr) -> bool:
    """Whether `mark_period_calls` has marked the node."""
    return isinstance(node, exp.Anonymous) and _MARK in node.meta


def is_period_function(node: exp.Expr) -> bool:
    """Whether the node is a marked call that gives a period or a length, not one that compares periods."""
    return is_period_call(node) and node.name.lower() in PERIOD_FUNCTIONS


def names_period_function(name: str) -> bool:
    """Whether a function of the table has this name; case does not matter."""
    return name.lower() in _FUNCTIONS


def nearest_function(name: str) -> str | None:
    """The function of the table whose name is closest to a misspelt one, if any is close."""
    near = difflib.get_close_matches(name, _FUNCTIONS, n=1, cutoff=_CLOSE)
    return near[0] if near else None


def _is_ours(name: str) -> bool:
    if name.startswith(("allen_", "iseql_")):
        return True
    return name in _FUNCTIONS or (name.startswith("period_") and nearest_function(name) is not None)


def _is_written(node: exp.Anonymous) -> bool:
    """Whether the call is a period: a function in backticks, and one in the arguments of another, may be Spark's."""
    plain = isinstance(node.this, str) and not isinstance(node.parent, exp.Anonymous)
    return plain and node.name.lower() == WRITTEN and len(node.expressions) == 2


def _is_scalar(node: exp.Anonymous) -> bool:
    parent = node.parent
    if isinstance(parent, (exp.Table, exp.Lateral)) or (isinstance(parent, exp.Dot) and node.arg_key == "expression"):
        return False
    return not (isinstance(parent, exp.Window) and node.arg_key == "this")
