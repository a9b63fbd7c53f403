"""Aggregates over a list instead of a window's rows, as OpenMLDB reads ``distinct_count(window_split(s, ','))``.

An aggregate whose first argument is one of the split functions counts the list's parts. Over a window the inner call is
one of the table's, which returns the list; the aggregate becomes a Spark expression over it (compat="openmldb" only).
"""

from __future__ import annotations

from sqlext_operators.window.functions import FunctionTypeError, WindowFunction, lookup
from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlglot import exp

from sqlext.analyzer.amounts import whole_number
from sqlext.analyzer.compat_functions import SPLITS, TEMPLATES
from sqlext.syntax.spans import span_of

_WINDOW_SPLITS = frozenset(("window_split", "window_split_by_key", "window_split_by_value"))
_MARK = "list_aggregate"

#: How often x occurs in the list.
_OCCURS = "size(filter({0}, y -> y = x))"
#: The distinct parts, the most frequent first; of equally frequent ones the smaller first.
_RANKED = f"array_sort(transform(array_distinct({{0}}), x -> struct(-{_OCCURS} AS c, x AS v))).v"
_PADDED = f"slice(concat({_RANKED}, array_repeat('NULL', {{1}})), 1, {{1}})"

#: Aggregates of a list {0} as Spark expressions; {1} is the literal n.
_TEMPLATES = {
    "count": "bigint(size({0}))",
    "distinct_count": "bigint(size(array_distinct({0})))",
    "max": "array_max({0})",
    "min": "array_min({0})",
    "top": "concat_ws(',', slice(reverse(array_sort({0})), 1, {1}))",
    "top1_ratio": f"ifnull(try_divide(array_max(transform(array_distinct({{0}}), x -> {_OCCURS})), size({{0}})), 0D)",
    "topn_frequency": f"(CASE WHEN size({{0}}) = 0 THEN '' ELSE concat_ws(',', {_PADDED}) END)",
}


def mark(root: exp.Expr) -> None:
    """Mark the aggregates over lists inside an expression, which then are not calls of the table.

    Raises UnsupportedError for an aggregate that has no form over lists, AnalysisError for wrong arguments.
    """
    for node in root.find_all(exp.Anonymous):
        function = lookup(node.name)
        if function is None or not node.expressions or not _is_list(node.expressions[0]):
            continue
        if function.name in _WINDOW_SPLITS:
            continue
        if function.name not in _TEMPLATES:
            raise UnsupportedError(
                f"{node.name}() over the parts of a list is not supported",
                condition="unsupported-clause",
                span=span_of(node),
                help=f"over a list you can use {', '.join(_TEMPLATES)}",
            )
        _check(function, node)
        node.meta[_MARK] = _TEMPLATES[function.name]


def template(node: exp.Expr) -> str | None:
    """The Spark expression of a marked aggregate's arguments; None for any other node."""
    found = node.meta.get(_MARK) if isinstance(node, exp.Anonymous) else None
    return None if found is None else str(found)


def is_scalar(node: exp.Expr) -> bool:
    """Whether a call of OpenMLDB's library depends on one row only, so that a window around it adds nothing."""
    if not isinstance(node, exp.Anonymous):
        return False
    return template(node) is not None or node.name.lower() in {*SPLITS, *(name for name, _ in TEMPLATES)}


def _is_list(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Anonymous):
        return False
    function = lookup(node.name)
    return node.name.lower() in SPLITS or (function is not None and function.name in _WINDOW_SPLITS)


def _check(function: WindowFunction, node: exp.Anonymous) -> None:
    literals = node.expressions[1:]
    try:
        if not all(isinstance(item, exp.Literal) and item.name.isdigit() for item in literals):
            raise FunctionTypeError(
                f"{function.name}() takes a list and literal integers", f"write {function.signature}"
            )
        numbers = [whole_number(item.name, span_of(item), "the number") for item in literals]
        function.complete_constants(numbers)
    except FunctionTypeError as error:
        raise AnalysisError(
            error.message, condition="function-arguments", span=span_of(node), help=error.help
        ) from None
