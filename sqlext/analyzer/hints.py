"""Hints of a SELECT block: kept for Catalyst where the block is lowered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlext_planner.errors import Span, UnsupportedError
from sqlext_planner.expressions import Column, Expression, Literal
from sqlext_planner.logical import Hint, Join, LastJoin, LogicalPlan
from sqlglot import exp

from sqlext.analyzer.context import Analyzed
from sqlext.analyzer.scope import Scope
from sqlext.spans import NoPlaceError, span_of

#: Whether the joins of a block are to be interval joins, as far as their conditions allow.
_SWEEP = {"SWEEP": True, "NO_SWEEP": False}


def on_relations(node: exp.Select, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """FROM's plan, with the join hints (``BROADCAST(d)``) on the relations that they name, and SWEEP or
    NO_SWEEP on its joins; a name that is no relation of this block hints at nothing, as in Spark."""
    for hint in _hints(node):
        if _name(hint) in _SWEEP:
            plan = _swept(plan, _SWEEP[_name(hint)])
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


def _swept(plan: LogicalPlan, sweep: bool) -> LogicalPlan:
    """FROM's plan with its own joins marked, not those of subqueries."""
    if isinstance(plan, Join):
        return replace(plan, left=_swept(plan.left, sweep), right=_swept(plan.right, sweep), sweep=sweep)
    return plan


def _hinted(plan: LogicalPlan, name: str, relations: set[str]) -> LogicalPlan:
    if isinstance(plan, (Join, LastJoin)):
        return plan.map_children(lambda child: _hinted(child, name, relations))
    columns = plan.output_columns
    named = bool(columns) and all(column.relation in relations for column in columns)
    return Hint(name, (), plan) if named else plan


def on_result(node: exp.Select, query: Analyzed) -> Analyzed:
    """The block's result, with the hints on partitions (``REPARTITION(8, k)``) on it.

    Raises UnsupportedError for a parameter that is neither a whole number nor a column of the result.
    """
    plan = query.plan
    shown = {name.lower(): column for name, column in zip(query.names, plan.output_columns, strict=True)}
    for hint in _hints(node):
        if not isinstance(hint, exp.JoinHint) and _name(hint) not in _SWEEP:
            parameters = tuple(_parameter(item, shown, _place(hint, node)) for item in _arguments(hint))
            plan = Hint(_name(hint), parameters, plan)
    return Analyzed(plan, query.names)


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


def _place(hint: exp.Expr, node: exp.Select) -> Span:
    try:
        return span_of(hint)
    except NoPlaceError:
        return span_of(node)
