"""The forms that a call over our windows can have, as calls of the table of functions.

What may be around and inside it (FILTER, IGNORE NULLS, RESPECT NULLS, DISTINCT); Spark's longer forms (an order
WITHIN GROUP, arrays of percentages); aggregates over a list instead of a window's rows, as OpenMLDB reads
``distinct_count(window_split(s, ','))``.

An aggregate whose first argument is one of the split functions counts the list's parts. Over a window the inner call is
one of the table's, which returns the list; the aggregate becomes a Spark expression over it (compat="openmldb" only).

- ``percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)`` is ``percentile_cont(x, true, 0.5)`` of the table
- ``mode() WITHIN GROUP (ORDER BY x)`` is ``mode_within_group(x, false)``
- ``listagg(s, ',') WITHIN GROUP (ORDER BY y)`` is ``listagg_within_group(s, y, ',', false, true)``
- ``percentile(x, array(0.1, 0.9))`` is ``percentiles(x, 0.1, 0.9)``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from sqlext_operators.window.functions import FUNCTIONS, FunctionTypeError, WindowFunction, lookup
from sqlext_planner.expressions.nodes import Expression, conjunction
from sqlext_planner.expressions.typed import Operation
from sqlglot import exp

from sqlext.analyzer.amounts import whole_number
from sqlext.analyzer.compat_functions import SPLITS, TEMPLATES
from sqlext.analyzer.items import WRAPPERS
from sqlext.syntax.spans import mistake, span_of, unsupported

_not_taken = partial(unsupported, "call-modifier")

#: Inside the parentheses of a call, where they belong to other functions.
_FOREIGN = (exp.Order, exp.Limit, exp.HavingMax, exp.Kwarg)
#: With DISTINCT a NULL is no value, while the function counts it as the zero of its type.
_COUNTS_NULL = "distinct_count"


@dataclass(frozen=True)
class Modified:
    """A call without what modifies it: `filter` is the condition of FILTER, `nulls` the node of IGNORE NULLS or RESPECT
    NULLS, `distinct` that of DISTINCT."""

    call: exp.Anonymous
    arguments: tuple[exp.Expr, ...]
    filter: exp.Expr | None = None
    nulls: exp.IgnoreNulls | exp.RespectNulls | None = None
    distinct: exp.Distinct | None = None


def called(node: exp.Expr) -> exp.Expr:
    """The call that FILTER and the like are around; a node without them is itself."""
    while isinstance(node, WRAPPERS):
        node = node.this
    return node


def modified(node: exp.Expr) -> Modified:
    """A call with its modifiers. Raises UnsupportedError for one that no function over our windows takes."""
    wrappers: dict[str, exp.Expr] = {}
    while isinstance(node, WRAPPERS):
        if isinstance(node, exp.WithinGroup):
            raise _not_taken(
                node, "WITHIN GROUP cannot be used with a sqlext window", "the rows of a window have its order"
            )
        wrappers["filter" if isinstance(node, exp.Filter) else "nulls"] = node
        node = node.this
    assert isinstance(node, exp.Anonymous)
    condition = wrappers.get("filter")
    where = None if condition is None else condition.expression.this
    made = Modified(node, tuple(node.expressions), where, wrappers.get("nulls"))  # type: ignore[arg-type]
    return _without_inner(made)


def _without_inner(made: Modified) -> Modified:
    """The call without what modifies its first argument: ``count(DISTINCT x)``, ``first_value(x IGNORE NULLS)``."""
    for argument in made.arguments:
        if isinstance(argument, _FOREIGN) or (isinstance(argument, WRAPPERS) and argument is not made.arguments[0]):
            raise _not_taken(
                argument,
                f"{made.call.name}() takes only plain arguments over a sqlext window",
                "order, limit and rename in a subquery of FROM",
            )
    first = made.arguments[0] if made.arguments else None
    if isinstance(first, exp.Distinct):
        return replace(made, arguments=(*first.expressions, *made.arguments[1:]), distinct=first)
    if isinstance(first, (exp.IgnoreNulls, exp.RespectNulls)) and made.nulls is None:
        return replace(made, arguments=(first.this, *made.arguments[1:]), nulls=first)
    return made


def distinct_form(function: WindowFunction, made: Modified) -> WindowFunction:
    """The function that computes another one over distinct values. Raises UnsupportedError if there is none."""
    known: WindowFunction | None = FUNCTIONS.get(function.distinct_form or "")
    if known is None:
        takers = ", ".join(row.name for row in FUNCTIONS.values() if row.distinct_form is not None)
        raise _not_taken(
            made.distinct or made.call,
            f"{function.name}() does not take DISTINCT over a sqlext window",
            f"DISTINCT is for {takers}",
        )
    if len(made.arguments) > len(known.parameters):
        raise _not_taken(
            made.distinct or made.call,
            f"{function.name}(DISTINCT ...) takes one value over a sqlext window",
            "make one value of them, for example x || '|' || y",
        )
    return known


def conditions(
    function: WindowFunction, made: Modified, value: Expression | None, build: Callable[[exp.Expr], Expression]
) -> Expression | None:
    """The condition for a row to count, from the modifiers of a call of `function` over `value`; None for all rows.

    Raises UnsupportedError for a modifier that the function does not take.
    """
    terms = [] if made.filter is None else [build(made.filter)]
    if made.filter is not None and function.positional:
        raise _not_taken(
            made.filter,
            f"{function.name}() does not take FILTER: it is no aggregate",
            "use nth_value_where(x, n, condition), or CASE WHEN in the argument with IGNORE NULLS",
        )
    if made.nulls is not None and not function.null_treatment:
        word = "IGNORE" if isinstance(made.nulls, exp.IgnoreNulls) else "RESPECT"
        raise _not_taken(
            made.nulls,
            f"{function.name}() does not take {word} NULLS",
            "leave it out; it is for "
            + ", ".join(row.name for row in FUNCTIONS.values() if row.null_treatment and not row.internal),
        )
    skips = isinstance(made.nulls, exp.IgnoreNulls) and not takes_ignore_null(function)
    if value is not None and (skips or (made.distinct is not None and function.name == _COUNTS_NULL)):
        terms.append(Operation(("(", value, ") IS NOT NULL"), name="is not null", dtype="boolean"))
    return conjunction(terms)


def takes_ignore_null(function: WindowFunction) -> bool:
    """Whether IGNORE NULLS is the function's own parameter."""
    return any(parameter.name == "ignore_null" for parameter in function.parameters)


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
        raise _not_taken(
            node, "this function does not take WITHIN GROUP over a sqlext window", f"those that do: {', '.join(FORMS)}"
        )
    keys = node.expression.expressions
    given = list(call.expressions)
    is_text = name in ("listagg", "string_agg")
    wanted = (1, 2) if is_text else (0, 0) if name == "mode" else (1, 1)
    if len(keys) != 1 or not wanted[0] <= len(given) <= wanted[1]:
        raise mistake(
            "function-arguments",
            node,
            f"{name}() with WITHIN GROUP takes one key, and {'its' if wanted[1] else 'no'} arguments before it",
            f"write {FORMS[name]}",
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
        raise mistake(
            "function-arguments",
            arguments[1],
            f"{function.name}() needs at least one percentage",
            f"write {function.name}(x, array(0.25, 0.75))",
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
            raise unsupported(
                "unsupported-clause",
                node,
                f"{node.name}() over the parts of a list is not supported",
                f"over a list you can use {', '.join(_TEMPLATES)}",
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
        raise mistake("function-arguments", node, error.message, error.help) from None
