"""LAST JOINs of a deployment: what is kept of a right side, and which of its rows may match a request.

A right side that is computed of the request table itself, and joined by the columns that it has of it, is computed of
the request row: this row is behind all stored ones, so it is the last one with its key.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, Operator, RightSide
from sqlext_operators.serving.steps import BranchStep, LastJoinStep, ServedRight, Step

from sqlext_planner.errors import Span
from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS
from sqlext_planner.expressions.nodes import Column, Expression, Literal, conjunction
from sqlext_planner.expressions.types import WINDOW_ORDER_TYPES, as_type, common_type
from sqlext_planner.last_join.nodes import LastJoin, LastMatch, ResidualTerms
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Hint, Project, Scan, SubqueryAlias
from sqlext_planner.serving.refusals import refused
from sqlext_planner.window.nodes import WindowUnion

if TYPE_CHECKING:
    from sqlext_planner.serving.lowering import Lowering

#: A row is needed no longer than this after its time.
_AT_ONCE = -(1 << 62)


def last_join_steps(lowering: Lowering, plan: LastJoin, needed: Set[Column]) -> list[Step]:
    """The steps of a LAST JOIN: one for each of its right sides."""
    reads = set(needed)
    for match in plan.matches:
        reads |= match.references
    left = frozenset(column for column in plan.left.output_columns if column in reads)
    steps = lowering.chain(plan.left, left)
    known = [column for column in plan.left.output_columns if column in left]
    for right, match in zip(plan.rights, plan.matches, strict=True):
        columns = [column for column in right.output_columns if column in needed]
        if not columns:
            continue
        keys = _request_keys(lowering.request, plan.left, right, match)
        if keys is None:
            steps.append(_right(lowering, plan, known, right, match, columns))
        else:
            steps.append(_branch(lowering, right, match, keys, columns))
        known += columns
    return steps


def _branch(
    lowering: Lowering, right: LogicalPlan, match: LastMatch, keys: Sequence[str], columns: Sequence[Column]
) -> BranchStep:
    """A right side that is computed of the request row."""
    pairs = zip(keys, match.null_safe, strict=True)
    names = tuple(column.spark_name for column in columns)
    return BranchStep(
        tuple(lowering.chain(right, frozenset(columns))), names, tuple(key for key, safe in pairs if not safe)
    )


def _request_keys(request: str, left: LogicalPlan, right: LogicalPlan, match: LastMatch) -> list[str] | None:
    """The columns of the request table by which both sides have it; None for another right side, condition or order."""
    if match.residual is not None or match.order_by or not match.left_keys:
        return None
    keys = []
    for ours, theirs in zip(match.left_keys, match.right_keys, strict=True):
        name = _request_column(request, ours, left)
        if name is None or _request_column(request, theirs, right) != name:
            return None
        keys.append(name)
    return keys


def _request_column(request: str, expression: Expression, plan: LogicalPlan) -> str | None:
    """The column of the request table that an expression over a plan with a row for each of its rows is."""
    while isinstance(expression, Column):
        match plan:
            case Scan(table=table):
                return expression.name if table == request else None
            case Project(items, child):
                expression = next(item.expression for item in items if item.column == expression)
                plan = child
            case SubqueryAlias(child=child):
                expression = child.output_columns[plan.output_columns.index(expression)]
                plan = child
            case Hint(child=child) | LastJoin(left=child) | WindowUnion(source=child):
                if expression not in child.output_columns:
                    return None
                plan = child
            case _:
                return None
    return None


def _right(
    lowering: Lowering,
    plan: LastJoin,
    known: Sequence[Column],
    right: LogicalPlan,
    match: LastMatch,
    columns: Sequence[Column],
) -> LastJoinStep:
    """One right side."""
    terms = ResidualTerms.of(match, plan.left.output_columns, right.output_columns)
    if terms.mixed:
        raise refused(
            f"only Spark can evaluate {terms.mixed[0]} of both sides",
            terms.mixed[0].span or match.span,
            "compare columns of the two sides with =, <, <=, > or >=",
        )
    theirs, ours = WireColumns(), WireColumns()
    names, keys = [], []
    for a, b in zip(match.left_keys, match.right_keys, strict=True):
        kinds = lowering.kind(a, plan.left), lowering.kind(b, right)
        common = _common(lowering, *kinds, b.span or match.span)
        names.append(ours.name(as_type(a, kinds[0], common)))
        keys.append(theirs.name(as_type(b, kinds[1], common)))
    comparisons, compared = [], {}
    for term in terms.comparisons:
        kinds = lowering.kind(term.left, plan.left), lowering.kind(term.right, right)
        common = _common(lowering, *kinds, term.span or match.span)
        compared[term.right] = as_type(term.right, kinds[1], common)
        left_name = ours.name(as_type(term.left, kinds[0], common))
        comparisons.append(JoinComparison(left_name, cast(Operator, term.op), theirs.name(compared[term.right])))
    ways = [way for way in zip(match.order_by, match.descending, strict=True) if not isinstance(way[0], Literal)]
    order = [(theirs.name(compared.get(key, key)), compared.get(key, key), down) for key, down in ways]
    asked = conjunction(terms.left_only)
    condition = None if asked is None else ours.name(asked)
    payload = tuple(column.spark_name for column in columns)
    side = RightSide(
        tuple(keys),
        match.null_safe,
        payload,
        tuple(name for name, _, _ in order),
        tuple(down for _, _, down in order),
        tuple(comparisons),
        condition,
    )
    first = order[0] if order else None
    is_timed = first is not None and lowering.kind(first[1], right) in WINDOW_ORDER_TYPES
    source, served = _right_input(lowering, right, terms, theirs, columns, side, is_timed=is_timed)
    join = LastJoinSpec(tuple(names), tuple(column.spark_name for column in known), (side,))
    return LastJoinStep(lowering.wired(ours, plan.left), join, (replace(served, source=source),))


def _common(lowering: Lowering, left: str, right: str, span: Span | None) -> str:
    """The type in which two values are compared."""
    found = common_type(left, right)
    if found is None and {left, right} <= {*INTEGERS, *FLOATS}:
        found = "double" if "double" in (left, right) or lowering.settings.ansi else "float"
    if found is None:
        raise refused(f"only Spark compares {left} with {right}", span, "cast one of them")
    return found


def _right_input(
    lowering: Lowering,
    right: LogicalPlan,
    terms: ResidualTerms,
    wire: WireColumns,
    columns: Sequence[Column],
    side: RightSide,
    *,
    is_timed: bool,
) -> tuple[int, ServedRight]:
    """The number of the input that keeps a right side's rows, and which of them may match."""
    rows = right if not terms.right_only else Filter(conjunction(terms.right_only) or Literal("TRUE"), right)
    times = [item for item in side.comparisons if (item.right,) == side.order and item.operator in (">=", ">")]
    is_last = (
        len(side.order) <= 1
        and not any(side.descending)
        and len(times) == len(side.comparisons) <= 1
        and (is_timed or not side.order)
    )
    served = ServedRight(-1, is_last)
    if is_last and times:
        served = replace(served, until=times[0].left, before=times[0].operator == ">")
    back = None if not is_last or not side.order else lowering.behind if times else _AT_ONCE
    order = side.order[0] if is_timed else None
    return lowering.keep(rows, wire, columns, side.keys, order, back, newest=int(is_last)), served
