"""Hints of a SELECT block: kept for Catalyst where the block is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions import Column, Expression, Literal
from sqlext_planner.logical import Hint, Join, LastJoin, Limit, LogicalPlan, Project, Sort, UMJoinHint
from sqlglot import exp

from sqlext.analyzer.context import Analyzed, Context
from sqlext.analyzer.scope import Scope, suggest
from sqlext.spans import NoPlaceError, span_of

#: Whether the joins of a block are to be interval joins, as far as their conditions allow.
_SWEEP = {"SWEEP": True, "NO_SWEEP": False}
#: Whether they are to be one multi-way join.
_UMJOIN = {"UMJOIN": True, "NO_UMJOIN": False}


def on_relations(context: Context, node: exp.Select, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """FROM's plan, with the join hints (``BROADCAST(d)``) on the relations that they name, and SWEEP, NO_SWEEP,
    ``UMJOIN(a, b, c)`` or NO_UMJOIN on its joins; a name that is no relation of this block hints at nothing, as in
    Spark, but raises AnalysisError in UMJOIN."""
    for hint in _hints(node):
        if _name(hint) in _SWEEP:
            plan = _marked(plan, sweep=_SWEEP[_name(hint)])
        elif _name(hint) in _UMJOIN:
            plan = _marked(plan, umjoin=_umjoin(context, hint, node, scope))
        elif isinstance(hint, exp.JoinHint):
            wanted = {table.name.lower() for table in hint.expressions}
            relations = {
                item.column.relation
                for item in scope.columns
                if item.qualifier and item.qualifier[-1].lower() in wanted
            }
            plan = _hinted(plan, hint.name.upper(), relations)
    return plan


def sweep(node: exp.Expr | None) -> bool | None:
    """What SWEEP or NO_SWEEP of a block says about a join that its WHERE makes of an EXISTS; None without a hint."""
    found = (
        [_SWEEP[_name(hint)] for hint in _hints(node) if _name(hint) in _SWEEP] if isinstance(node, exp.Select) else []
    )
    return found[-1] if found else None


def _umjoin(context: Context, hint: exp.Expr, node: exp.Select, scope: Scope) -> UMJoinHint:
    relations = {item.qualifier[-1].lower(): item.column.relation for item in scope.columns if item.qualifier}
    names = []
    for item in _arguments(hint):
        relation = relations.get(item.name.lower())
        if relation is None:
            nearest = suggest(item.name, list(relations))
            raise AnalysisError(
                f"'{item.name}' in the hint {_name(hint)} is no relation of this FROM",
                span=_place(context, item, node),
                help=f"did you mean '{nearest}'?" if nearest else f"relations here: {', '.join(relations)}",
            )
        names.append(relation)
    return UMJoinHint(tuple(names), _UMJOIN[_name(hint)], span=_place(context, hint, node))


def _marked(plan: LogicalPlan, **hint: object) -> LogicalPlan:
    """FROM's plan with its own joins marked, not those of subqueries."""
    if isinstance(plan, Join):
        sides = {"left": _marked(plan.left, **hint), "right": _marked(plan.right, **hint)}
        return replace(plan, **sides, **hint)  # type: ignore[arg-type]
    return plan


def _hinted(plan: LogicalPlan, name: str, relations: set[str]) -> LogicalPlan:
    if isinstance(plan, (Join, LastJoin)):
        return plan.map_children(lambda child: _hinted(child, name, relations))
    columns = plan.output_columns
    named = bool(columns) and all(column.relation in relations for column in columns)
    return Hint(name, (), plan) if named else plan


def on_result(context: Context, node: exp.Select, query: Analyzed) -> Analyzed:
    """The block's result, with the hints on partitions (``REPARTITION(8, k)``) on it.

    Raises UnsupportedError for a parameter that is neither a whole number nor a column of the result.
    """
    plan = query.plan
    shown = {name.lower(): column for name, column in zip(query.names, plan.output_columns, strict=True)}
    for hint in _hints(node):
        if not isinstance(hint, exp.JoinHint) and _name(hint) not in (*_SWEEP, *_UMJOIN):
            parameters = tuple(_parameter(item, shown, _place(context, hint, node)) for item in _arguments(hint))
            plan = _below_order(node, plan, lambda inner: Hint(_name(hint), parameters, inner))  # noqa: B023
    return Analyzed(plan, query.names)


def _below_order(node: exp.Select, plan: LogicalPlan, hinted: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """`plan` with a hint where Spark has it: on the select list, under the ORDER BY and LIMIT of the block."""
    if isinstance(plan, Limit) and (node.args.get("limit") or node.args.get("offset")):
        return replace(plan, child=_below_order(node, plan.child, hinted))
    if node.args.get("order") is not None:
        if isinstance(plan, Sort):
            return replace(plan, child=hinted(plan.child))
        if isinstance(plan, Project) and isinstance(plan.child, Sort):  # drops what was carried for the order
            return replace(plan, child=_below_order(node, plan.child, hinted))
    return hinted(plan)


def _hints(node: exp.Select) -> Iterator[exp.Expr]:
    hint = node.args.get("hint")
    if hint is not None:
        yield from hint.expressions


def _name(hint: exp.Expr) -> str:
    known = isinstance(hint, exp.Func) and not isinstance(hint, exp.Anonymous)
    return (hint.sql_name() if known else hint.name).upper()  # type: ignore[attr-defined]


def _arguments(hint: exp.Expr) -> list[exp.Expr]:
    if isinstance(hint, exp.Var):
        return []
    own = [hint.this] if isinstance(hint.this, exp.Expr) else []
    return [*own, *hint.expressions]


def _parameter(item: exp.Expr, shown: dict[str, Column], place: Span) -> Expression:
    if isinstance(item, exp.Literal) and not item.is_string and item.name.isdigit():
        return Literal(item.name)
    if isinstance(item, exp.Column) and item.name.lower() in shown:
        return shown[item.name.lower()]
    raise UnsupportedError(
        f"the hint's parameter '{item.sql()}' is neither a whole number nor a column of the result",
        span=place,
        help="name a column of the select list",
    )


def _place(context: Context, hint: exp.Expr, node: exp.Select) -> Span:
    """Where a hint or a part of one stands: the parser counts from the end of ``/*+``."""
    start = context.text.index("/*+", span_of(node).start) + len("/*+")
    try:
        span = span_of(hint)
    except NoPlaceError:  # a hint that is one word
        return Span(start - len("/*+"), context.text.index("*/", start) + len("*/"))
    return Span(start + span.start, start + span.end)
