"""Finds the calls that are ours.

They are functions of the window table over the rows of a group, without OVER; period predicates in function form
(``allen_meets(a, b, c, d)``), functions of periods, and comparisons of ``allen_relation(...)`` with names.

docs/reference/windows.md, section 5, lists them. The parser marks them in the tree once, because that needs the
catalog: a function that the user has registered under such a name remains the user's.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS
from sqlext_planner.periods.predicates import NO_RELATION
from sqlglot import exp

from sqlext.syntax.nodes import ALLEN_RELATION, PeriodComparison, PeriodOperand
from sqlext.syntax.spark_functions import WINDOW_FUNCTIONS

#: Every function of the table, by all its names.
TABLE_FUNCTIONS = frozenset(name for function in FUNCTIONS.values() for name in function.names if not function.internal)
#: Those that mean something without OVER.
_GROUP_FUNCTIONS = frozenset(
    name for function in FUNCTIONS.values() for name in function.group_names if not function.internal
)
#: Those that Spark does not have: a window becomes ours if one of them is called over it.
EXTENSION_FUNCTIONS = TABLE_FUNCTIONS - WINDOW_FUNCTIONS

_GROUP_MARK = "sqlext_group_call"


def mark_group_calls(
    calls: Iterable[exp.Anonymous], compat: str | None, is_user_function: Callable[[str], bool]
) -> None:
    """Mark the calls that are in a SELECT, have no OVER, and mean a function of the table.

    Only functions that Spark does not have count; with ``compat="openmldb"`` all of the table do.
    """
    openmldb = compat == "openmldb"
    names = _GROUP_FUNCTIONS if openmldb else EXTENSION_FUNCTIONS & _GROUP_FUNCTIONS
    for node in calls:
        name = node.name.lower()
        if name in names and _in_select(node) and (openmldb or not is_user_function(name)):
            node.meta[_GROUP_MARK] = True


def is_group_call(node: exp.Expr) -> bool:
    """Whether `mark_group_calls` has marked the node."""
    return isinstance(node, exp.Anonymous) and _GROUP_MARK in node.meta


def is_extension_call(node: exp.Expr) -> bool:
    """Whether the node is a marked call that means nothing to Spark."""
    return is_group_call(node) and node.name.lower() in EXTENSION_FUNCTIONS


def _in_select(node: exp.Expr) -> bool:
    """Whether a call is an expression of a SELECT and has no OVER after it."""
    top = node
    if isinstance(node.parent, exp.Dot):  # db.f(x) names its own database
        return False
    while top.parent is not None:
        parent = top.parent
        if isinstance(parent, exp.Select):
            return top.arg_key not in ("from_", "laterals")
        if isinstance(parent, (exp.Table, exp.Lateral, exp.Query)) or (
            isinstance(parent, exp.Window) and top.arg_key == "this"
        ):
            return False
        top = parent
    return False


_PERIOD_MARK = "sqlext_period_call"
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
            node.meta[_PERIOD_MARK] = True


def is_period_call(node: exp.Expr) -> bool:
    """Whether `mark_period_calls` has marked the node."""
    return isinstance(node, exp.Anonymous) and _PERIOD_MARK in node.meta


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


def is_period_predicate(node: exp.Expr) -> bool:
    """Whether the node itself is a period predicate in any of its forms."""
    return isinstance(node, (PeriodComparison, PeriodOperand)) or is_period_call(node) or compares_allen_relation(node)


def allen_relation_names(node: exp.Expr) -> tuple[exp.Expr, Sequence[exp.Expr]] | None:
    """The call and the names of ``allen_relation(...) IN ('meets', ...)`` and ``allen_relation(...) = 'meets'``."""
    match node:
        case exp.In(this=call, expressions=names) if names and is_period_call(call):
            return (call, names) if call.name.lower() == ALLEN_RELATION else None
        case exp.EQ(this=left, expression=right):
            for call, name in ((left, right), (right, left)):
                if is_period_call(call) and call.name.lower() == ALLEN_RELATION:
                    return call, [name]
    return None


def compares_allen_relation(node: exp.Expr) -> bool:
    """Whether the node compares `allen_relation` with names given as strings, or is NOT IN over them."""
    inner = node.this if isinstance(node, exp.Not) and isinstance(node.this, exp.In) else node
    if inner is not node and "span" in inner.meta:  # NOT (x IN ...): the inner one has a place of its own
        return False
    found = allen_relation_names(inner)
    return (
        found is not None
        and all(isinstance(item, exp.Literal) and item.is_string for item in found[1])
        and NO_RELATION not in [item.name for item in found[1]]
    )
