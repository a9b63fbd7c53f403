"""Window calls in Spark's longer forms, as calls of the table: an order WITHIN GROUP, and arrays of percentages.

- ``percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)`` is ``percentile_cont(x, true, 0.5)`` of the table
- ``mode() WITHIN GROUP (ORDER BY x)`` is ``mode_within_group(x, false)``
- ``listagg(s, ',') WITHIN GROUP (ORDER BY y)`` is ``listagg_within_group(s, y, ',', false, true)``
- ``percentile(x, array(0.1, 0.9))`` is ``percentiles(x, 0.1, 0.9)``
"""

from __future__ import annotations

from typing import TypeVar

from sqlext_operators.window.functions import FUNCTIONS, WindowFunction
from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlglot import exp

from sqlext.syntax.spans import span_of

_Node = TypeVar("_Node", bound=exp.Expr)
#: How they are called, by their names.
FORMS = {
    "percentile_cont": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    "percentile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
    "mode": "mode() WITHIN GROUP (ORDER BY x)",
    "listagg": "listagg(s, ',') WITHIN GROUP (ORDER BY y)",
    "string_agg": "string_agg(s, ',') WITHIN GROUP (ORDER BY y)",
}


def ordered_call(node: exp.Expr) -> exp.Expr | None:
    """The call that an expression with WITHIN GROUP is, inside a FILTER if it has one; None for any other node.

    Raises AnalysisError for a wrong number of arguments or of keys, UnsupportedError for a function that takes none.
    """
    if isinstance(node, exp.Filter):
        inner = ordered_call(node.this)
        return None if inner is None else _placed(exp.Filter(this=inner, expression=node.expression.copy()), node)
    if not isinstance(node, exp.WithinGroup):
        return None
    call = node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name not in FORMS:
        raise UnsupportedError(
            "this function does not take WITHIN GROUP over a sqlext window",
            condition="call-modifier",
            span=span_of(node),
            help=f"those that do: {', '.join(FORMS)}",
        )
    keys = node.expression.expressions
    given = list(call.expressions)
    is_text = name in ("listagg", "string_agg")
    wanted = (1, 2) if is_text else (0, 0) if name == "mode" else (1, 1)
    if len(keys) != 1 or not wanted[0] <= len(given) <= wanted[1]:
        raise AnalysisError(
            f"{name}() with WITHIN GROUP takes one key, and {'its' if wanted[1] else 'no'} arguments before it",
            condition="function-arguments",
            span=span_of(node),
            help=f"write {FORMS[name]}",
        )
    ordered = keys[0]
    key, descending = ordered.this, exp.Boolean(this=bool(ordered.args.get("desc")))
    if is_text:
        delimiter = given[1] if len(given) > 1 else exp.Null()
        nulls_first = exp.Boolean(this=bool(ordered.args.get("nulls_first")))
        return _call(node, "listagg_within_group", [given[0], key, delimiter, descending, nulls_first])
    if name == "mode":
        return _call(node, "mode_within_group", [key, descending])
    places = _items(given[0])
    return _call(node, name if places is None else f"{name}s", [key, descending, *(places or given)])


def several(function: WindowFunction, arguments: list[exp.Expr]) -> tuple[WindowFunction, list[exp.Expr]]:
    """The function and its arguments, if an array of constants is given where the function takes one constant.

    Raises AnalysisError for an empty array.
    """
    items = _items(arguments[1]) if function.several is not None and len(arguments) > 1 else None
    if items is None or function.several is None:
        return function, arguments
    if not items:
        raise AnalysisError(
            f"{function.name}() needs at least one percentage",
            condition="function-arguments",
            span=span_of(arguments[1]),
            help=f"write {function.name}(x, array(0.25, 0.75))",
        )
    first, _, *rest = arguments
    name = function.several if not rest else f"{function.several}_{function.parameters[2].name}"
    return FUNCTIONS[name], [first, *rest, *items]


def _items(node: exp.Expr) -> list[exp.Expr] | None:
    """The items of ``array(...)``."""
    is_array = isinstance(node, exp.Anonymous) and node.name.lower() == "array"
    return list(node.expressions) if is_array or isinstance(node, exp.Array) else None


def _call(node: exp.WithinGroup, name: str, arguments: list[exp.Expr]) -> exp.Anonymous:
    """A call with the place of `node`; the tree of the statement stays as it is."""
    return _placed(exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments]), node)


def _placed(made: _Node, node: exp.Expr) -> _Node:
    span = span_of(node)
    made.meta["span"] = (span.start, span.end)
    return made
