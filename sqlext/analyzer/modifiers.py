"""What may be around and inside a call over our windows: FILTER, IGNORE NULLS, RESPECT NULLS, DISTINCT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlext_operators.window.functions import FUNCTIONS, WindowFunction
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.nodes import Expression, SparkExpr, conjunction
from sqlglot import exp

from sqlext.analyzer.items import WRAPPERS
from sqlext.syntax.spans import span_of

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
    found: dict[str, exp.Expr] = {}
    while isinstance(node, WRAPPERS):
        if isinstance(node, exp.WithinGroup):
            raise UnsupportedError(
                "WITHIN GROUP cannot be used with a sqlext window",
                condition="call-modifier",
                span=span_of(node),
                help="the rows of a window have its order",
            )
        found["filter" if isinstance(node, exp.Filter) else "nulls"] = node
        node = node.this
    assert isinstance(node, exp.Anonymous)
    condition = found.get("filter")
    where = None if condition is None else condition.expression.this
    made = Modified(node, tuple(node.expressions), where, found.get("nulls"))  # type: ignore[arg-type]
    return _without_inner(made)


def _without_inner(made: Modified) -> Modified:
    """The call without what modifies its first argument: ``count(DISTINCT x)``, ``first_value(x IGNORE NULLS)``."""
    for argument in made.arguments:
        if isinstance(argument, _FOREIGN) or (isinstance(argument, WRAPPERS) and argument is not made.arguments[0]):
            raise UnsupportedError(
                f"{made.call.name}() takes only plain arguments over a sqlext window",
                condition="call-modifier",
                span=span_of(argument),
                help="order, limit and rename in a subquery of FROM",
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
        raise UnsupportedError(
            f"{function.name}() does not take DISTINCT over a sqlext window",
            condition="call-modifier",
            span=span_of(made.distinct or made.call),
            help=f"DISTINCT is for {takers}",
        )
    if len(made.arguments) > len(known.parameters):
        raise UnsupportedError(
            f"{function.name}(DISTINCT ...) takes one value over a sqlext window",
            condition="call-modifier",
            span=span_of(made.distinct or made.call),
            help="make one value of them, for example x || '|' || y",
        )
    return known


def conditions(
    function: WindowFunction, made: Modified, value: Expression | None, build: Callable[[exp.Expr], Expression]
) -> Expression | None:
    """The condition for a row to count, from the modifiers of a call of `function` over `value`; None for all rows.

    Raises UnsupportedError for a modifier that the function does not take.
    """
    found = [] if made.filter is None else [build(made.filter)]
    if made.filter is not None and function.positional:
        raise UnsupportedError(
            f"{function.name}() does not take FILTER: it is no aggregate",
            condition="call-modifier",
            span=span_of(made.filter),
            help="use nth_value_where(x, n, condition), or CASE WHEN in the argument with IGNORE NULLS",
        )
    if made.nulls is not None and not function.null_treatment:
        word = "IGNORE" if isinstance(made.nulls, exp.IgnoreNulls) else "RESPECT"
        raise UnsupportedError(
            f"{function.name}() does not take {word} NULLS",
            condition="call-modifier",
            span=span_of(made.nulls),
            help="leave it out; it is for "
            + ", ".join(row.name for row in FUNCTIONS.values() if row.null_treatment and not row.internal),
        )
    skips = isinstance(made.nulls, exp.IgnoreNulls) and not takes_ignore_null(function)
    if value is not None and (skips or (made.distinct is not None and function.name == _COUNTS_NULL)):
        found.append(SparkExpr(("(", value, ") IS NOT NULL"), dtype="boolean"))
    return conjunction(found)


def takes_ignore_null(function: WindowFunction) -> bool:
    """Whether IGNORE NULLS is the function's own parameter."""
    return any(parameter.name == "ignore_null" for parameter in function.parameters)
