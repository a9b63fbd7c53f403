"""Windows of a deployment: what is kept of the rows that they show, and the step that computes them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.expressions.nodes import TaskColumn
from sqlext_operators.serving.steps import (
    BranchStep,
    InputSpec,
    Items,
    LastJoinStep,
    ProjectStep,
    Step,
    WindowStep,
)
from sqlext_operators.serving.store import KeptSpec
from sqlext_operators.window.functions import FunctionTypeError, check_filter, lookup
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

from sqlext_planner.errors import AnalysisError, SqlExtError
from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.expressions.nodes import Column, Literal, NamedExpr
from sqlext_planner.expressions.typed import cast as cast_to
from sqlext_planner.expressions.types import WINDOW_ORDER_TYPES, as_type, from_arrow, union_type
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Hint, Project, Scan, SubqueryAlias
from sqlext_planner.serving.refusals import refused
from sqlext_planner.window.inputs import wire_windows
from sqlext_planner.window.nodes import WindowCall, WindowUnion

if TYPE_CHECKING:
    from sqlext_planner.serving.lowering import Lowering


@dataclass(frozen=True)
class ServedWindow:
    """The step of windows, the columns of FROM that pass through them, and the computed columns that they read, as
    `name = text`."""

    step: WindowStep
    payload: tuple[str, ...]
    computed: tuple[str, ...]


def window_steps(lowering: Lowering, plan: WindowUnion, needed: Set[Column]) -> list[Step]:
    """The steps of windows that share keys and order."""
    calls_needed = {call.column for group in plan.windows for call in group.calls} & set(needed)
    narrowed = plan.narrowed(set(needed), lambda node: node) if calls_needed else plan.source
    if not isinstance(narrowed, WindowUnion):
        return lowering.chain(plan.source, needed)
    return _windows(lowering, narrowed, frozenset(needed))


def _windows(lowering: Lowering, plan: WindowUnion, needed: Set[Column]) -> list[Step]:
    """The steps of a node whose calls are all needed."""
    source, wire = plan.source, WireColumns()
    keys = tuple(wire.name(item) for item in plan.partition_by)
    is_ordered = plan.order_by is not None and not isinstance(plan.order_by, Literal)
    order = wire.name(plan.order_by) if plan.order_by is not None and is_ordered else None
    order_type = lowering.kind(plan.order_by, source) if plan.order_by is not None and order is not None else None
    if order_type is not None and order_type not in WINDOW_ORDER_TYPES:
        raise refused(f"windows are not ordered by {order_type}", plan.order_by.span if plan.order_by else None)
    if plan.further:
        raise refused("windows of a deployment have one ORDER BY key", plan.further[0].span or plan.span)
    calls = {call: call.shipped(wire.name) for group in plan.windows for call in group.calls}
    windows = wire_windows(plan, calls, order_type)
    spec = WindowUnionSpec(keys, order, (), windows, lowering.settings.ansi, lowering.settings.time_zone)
    _check_bounds(plan, spec)
    passed = frozenset(column for column in source.output_columns if column in needed)
    read = passed | frozenset(wire.plain) | {c for item in wire.computed for c in item.references}
    items = _items(lowering, wire, source)
    types = pa.schema([(name, expression.type) for name, expression in items])
    for call, shipped in calls.items():
        lowering.types[call.column] = _result_type(lowering, call, shipped, types)
    reach = reach_of(spec)
    back = None if order is None else reach.back
    unions = tuple(
        _union(lowering, plan, place, wire, keys, order, back, reach.rows) for place in range(len(plan.unions))
    )
    step = WindowStep(items, spec, types, unions)
    if reach.shows_from:
        step = _shown(lowering, plan, step, wire, back)
    steps = [*lowering.chain(source, read), step]
    payload = tuple(item.column.spark_name for item in plan.payload_fields)
    lowering.windows.append(ServedWindow(step, payload, wire.texts()))
    return steps


def _result_type(lowering: Lowering, call: WindowCall, shipped: Call, types: pa.Schema) -> str:
    """The Spark type of a call's result. Raises AnalysisError if the function does not take its arguments."""
    function = lookup(call.function)
    assert function is not None
    kinds = [types.field(name).type for name in shipped.args]
    try:
        if shipped.filtered:
            check_filter(kinds.pop())
        return from_arrow(function.result_type(kinds, openmldb=shipped.openmldb))
    except FunctionTypeError as error:
        span = call.span
        if error.argument is not None and error.argument < len(call.args):
            span = call.args[error.argument].span or span
        raise AnalysisError(error.message, condition="function-arguments", span=span, help=error.help) from None


def _items(lowering: Lowering, wire: WireColumns, plan: LogicalPlan) -> Items:
    """All columns of the wire, over a plan's."""
    plain = [NamedExpr(column, column) for column in wire.plain]
    return lowering.projected(plain, plan).columns + lowering.wired(wire, plan)


def _check_bounds(plan: WindowUnion, spec: WindowUnionSpec) -> None:
    """Raises UnsupportedError for windows without a bound, and for rows that are counted after the request row."""
    for group, window in zip(plan.windows, spec.windows, strict=True):
        span = next((call.span for call in group.calls if call.span is not None), plan.span)
        if reach_of(replace(spec, windows=(window,))).unbounded:
            raise refused(
                f"the window {group.name} begins at the first row of its key, so that rows are kept for good",
                span,
                "give it a start, ROWS_RANGE BETWEEN 30d PRECEDING, or a bound for each key, MAXSIZE 1000",
            )
        if _counts_ahead(window):
            raise refused("a window of a deployment counts no rows after the request row", span, "use ROWS_RANGE")


def _union(
    lowering: Lowering,
    plan: WindowUnion,
    place: int,
    wire: WireColumns,
    keys: Sequence[str],
    order: str | None,
    back: int | None,
    newest: int,
) -> int:
    """The number of the input that keeps a union source's rows, as FROM's columns by position."""
    rows, source = plan.unions[place], plan.source
    read = wire.plain.keys() | {c for item in wire.computed for c in item.references}
    missing = [item for item in source.output[len(rows.output) :] if item.column in read]
    items = [NamedExpr(cast_to(Literal("NULL", dtype="void"), item.dtype or ""), item.column) for item in missing]
    for ours, theirs in zip(source.output, rows.output, strict=False):
        from_type, given = ours.dtype or "", theirs.dtype or ""
        if ours.column in read:
            from_type = lowering.column_type(ours.column, source)
            given = lowering.column_type(theirs.column, rows)
        is_other = from_type and given and from_type != given
        if ours.column.name.lower() != theirs.column.name.lower() or (
            is_other and union_type(from_type, given, ansi=lowering.settings.ansi) != from_type
        ):
            told = f"{theirs.column.name} {given}, where FROM has {ours.column.name} {from_type}"
            raise _mismatch(told, place, rows)
        if ours.column in read:
            items.append(NamedExpr(as_type(theirs.column, given, from_type), ours.column))
    renamed = Project(tuple(items), rows)
    return lowering.keep(renamed, wire, (), keys, order, back, newest=newest)


def _mismatch(told: str, place: int, rows: LogicalPlan) -> SqlExtError:
    """The error of a union source whose columns are not FROM's."""
    return AnalysisError(
        f"UNION source {place + 1} has {told}",
        condition="union-columns",
        span=rows.span,
        help="a UNION source must have FROM's columns: same number, order, names and types; "
        "use a subquery to rename, cast, fill or drop columns",
    )


def _shown(lowering: Lowering, plan: WindowUnion, step: WindowStep, wire: WireColumns, back: int | None) -> WindowStep:
    """The step with the rows of the request table that its windows show."""
    source = plan.source
    read = frozenset(wire.plain) | {c for item in wire.computed for c in item.references}
    stored = _row_by_row(lowering, source, read)
    if stored is not None:
        rows = step.reach.rows
        number = lowering.keep(stored, wire, (), step.window.keys, step.window.order, back, newest=rows)
        return replace(step, own=number)
    # Columns of joins are of the moment: the last row of a stored row's key may be another one by now.
    base = _request_scan(source)
    named = (*plan.partition_by, *(() if step.window.order is None or plan.order_by is None else (plan.order_by,)))
    strange = next((item for item in named if not item.references <= frozenset(base.output_columns)), None)
    if strange is not None:
        raise refused(
            f"the windows' rows are found by {strange}, which is no column of '{lowering.request}' itself",
            strange.span or plan.span,
            "partition and order by columns of the request table, or add INSTANCE_NOT_IN_WINDOW",
        )
    lowering.behind = back
    scanned, *before = lowering.chain(source, read)
    lowering.behind = 0
    if any(isinstance(one, WindowStep | BranchStep) for one in before):
        raise refused(
            "a window reads results of another window for rows of the request table",
            next((call.span for group in plan.windows for call in group.calls), plan.span),
            "deploy the inner query, and push its answers to a table that the outer one reads",
        )
    assert isinstance(scanned, ProjectStep)
    columns: Items = tuple((name, TaskColumn(name, expression.type)) for name, expression in scanned.columns)
    columns += tuple((name, lowering.task(item, base)) for item, name in wire.computed.items() if item in named)
    schema = pa.schema([(name, expression.type) for name, expression in columns])
    number = lowering.input_number(
        InputSpec(
            base.table,
            (scanned, ProjectStep(columns)),
            KeptSpec(schema, step.window.keys, step.window.order, step.reach.rows),
            back,
        )
    )
    steps = tuple(one for one in before if isinstance(one, ProjectStep | LastJoinStep))
    return replace(step, own=number, before=steps)


def _row_by_row(lowering: Lowering, plan: LogicalPlan, read: Set[Column]) -> LogicalPlan | None:
    """The plan with the columns that are read, without joins and windows; None if one of them makes such a column."""
    items: Sequence[NamedExpr]
    match plan:
        case Scan():
            return plan
        case Hint(child=child) | LastJoin(left=child) | WindowUnion(source=child):
            return _row_by_row(lowering, child, read) if read <= frozenset(child.output_columns) else None
        case Project(items=every, child=child):
            items = [item for item in every if item.column in read]
        case SubqueryAlias(child=child):
            items = lowering.renamed(plan, read)
        case _:
            return None
    below = _row_by_row(lowering, child, frozenset(column for item in items for column in item.expression.references))
    return None if below is None else Project(tuple(items), below)


def _request_scan(plan: LogicalPlan) -> Scan:
    """The scan of the request table at the end of a chain."""
    while not isinstance(plan, Scan):
        plan = plan.children[0]
    return plan


def _counts_ahead(window: Window) -> bool:
    """Whether a window has rows behind the request row that no time bounds."""
    frame = window.frame
    return frame.end is None or (frame.unit == "rows" and frame.end > 0)
