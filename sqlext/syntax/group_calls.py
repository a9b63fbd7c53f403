"""Finds the calls without OVER that are ours: functions of the window table over the rows of a group.

docs/reference/windows.md, section 5, lists them. The parser marks them in the tree once, because that needs the
catalog: a function that the user has registered under such a name remains the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlext_operators.window.functions import FUNCTIONS
from sqlglot import exp

from sqlext.syntax.spark_functions import WINDOW_FUNCTIONS

#: Every function of the table, by all its names.
TABLE_FUNCTIONS = frozenset(name for function in FUNCTIONS.values() for name in function.names if not function.internal)
#: Those that mean something without OVER.
_GROUP_FUNCTIONS = frozenset(
    name for function in FUNCTIONS.values() for name in function.group_names if not function.internal
)
#: Those that Spark does not have: a window becomes ours if one of them is called over it.
EXTENSION_FUNCTIONS = TABLE_FUNCTIONS - WINDOW_FUNCTIONS

_MARK = "sqlext_group_call"


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
            node.meta[_MARK] = True


def is_group_call(node: exp.Expr) -> bool:
    """Whether `mark_group_calls` has marked the node."""
    return isinstance(node, exp.Anonymous) and _MARK in node.meta


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
