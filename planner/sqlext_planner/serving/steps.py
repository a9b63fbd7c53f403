"""From an optimized plan to what a deployment keeps of its tables and computes of a request row.

The plan is a chain from the result down to the request table: projections, LAST JOINs and windows. What else a row
reads, right sides and union sources, is a table with filters and projections. Everything that has no such form is
refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
from sqlext_operators.expressions.nodes import TaskColumn, TaskExpression
from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, Operator, RightSide
from sqlext_operators.serving.steps import (
    FilterStep,
    InputSpec,
    Items,
    LastJoinStep,
    ProjectStep,
    ServedRight,
    ServingSpec,
    Step,
    WindowStep,
)
from sqlext_operators.serving.store import KeptSpec
from sqlext_operators.window.functions import FunctionTypeError, check_filter, lookup
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

from sqlext_planner.errors import AnalysisError, Span, SqlExtError, UnsupportedError
from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS
from sqlext_planner.expressions.nodes import And, Column, Expression, Literal, NamedExpr, conjunction
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars.settings import ScalarSettings, known_zone
from sqlext_planner.expressions.typed import cast as cast_to
from sqlext_planner.expressions.types import WINDOW_ORDER_TYPES, as_type, common_type, from_arrow, to_arrow, union_type
from sqlext_planner.last_join.nodes import LastJoin, LastMatch, ResidualTerms
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Hint, Output, Project, Scan, SubqueryAlias
from sqlext_planner.window.inputs import wire_windows
from sqlext_planner.window.nodes import WindowCall, WindowUnion

#: A row is needed no longer than this after its time.
_AT_ONCE = -(1 << 62)
_HELP = "deploy a query with windows, LAST JOINs and projections over one request table"


@dataclass(frozen=True)
class ServingSettings:
    """What of a session's settings the meaning of a statement depends on."""

    ansi: bool
    time_zone: str


def serving_spec(plan: LogicalPlan, request: str, settings: ServingSettings) -> ServingSpec:
    """What a deployment of an optimized plan keeps and computes. `request` is the request table's name in the plan.

    Raises UnsupportedError for what cannot be answered for one row, AnalysisError for types that do not fit.
    """
    lowering = _Lowering(request, settings)
    if not isinstance(plan, Output):
        raise _refused(f"{type(plan).__name__} cannot be deployed", plan.span)
    columns = plan.child.output_columns
    steps = [*lowering.chain(plan.child, frozenset(columns)), lowering.numbered(columns, plan.child)]
    tables = {name: pa.schema(list(fields.items())) for name, fields in lowering.tables.items()}
    return ServingSpec(request, tables, tuple(lowering.inputs), tuple(_merged(steps)), plan.names)


def _merged(steps: Sequence[Step]) -> list[Step]:
    """The steps without those that only select columns, and one for a projection and one that renames its columns."""
    merged: list[Step] = []
    for place, step in enumerate(steps):
        if isinstance(step, ProjectStep):
            columns = [item for item in step.columns if isinstance(item[1], TaskColumn)]
            if len(columns) == len(step.columns):
                names = {name: expression.name for name, expression in columns if isinstance(expression, TaskColumn)}
                last = place == len(steps) - 1
                if merged and isinstance(merged[-1], ProjectStep):
                    known = dict(merged[-1].columns)
                    merged[-1] = ProjectStep(tuple((name, known[below]) for name, below in names.items()))
                    continue
                if merged and not last and all(name == below for name, below in names.items()):
                    continue
        merged.append(step)
    return merged


def _refused(message: str, span: Span | None, help: str = _HELP) -> SqlExtError:
    return UnsupportedError(message, condition="not-servable", span=span, help=help)


@dataclass
class _Lowering:
    request: str
    settings: ServingSettings
    inputs: list[InputSpec] = field(default_factory=list)
    #: The columns that are read of each table.
    tables: dict[str, dict[str, pa.DataType]] = field(default_factory=dict)
    #: The types of columns that the plan does not know.
    types: dict[Column, str] = field(default_factory=dict)
    #: How long after its time a row of a right side is needed by rows that a window shows; None: for good.
    behind: int | None = 0

    def chain(self, plan: LogicalPlan, needed: Set[Column]) -> list[Step]:
        """The steps from a request row to the needed columns of a plan."""
        match plan:
            case Scan(table=table) if table == self.request:
                return [self.scanned(plan, needed)]
            case Project(items, child):
                kept = [item for item in items if item.column in needed]
                below = frozenset(column for item in kept for column in item.expression.references)
                return [*self.chain(child, below), self.projected(kept, child)]
            case SubqueryAlias(child=child):
                kept = self.renamed(plan, needed)
                below = frozenset(column for item in kept for column in item.expression.references)
                return [*self.chain(child, below), self.projected(kept, child)]
            case Hint(child=child):
                return self.chain(child, needed)
            case LastJoin():
                return self.last_join(plan, needed)
            case WindowUnion():
                return self.window(plan, needed)
            case Scan(relation=relation):
                raise _refused(f"'{relation}' is not the request table '{self.request}'", plan.span)
            case Filter(condition):
                help = "leave the condition to the caller"
                raise _refused("a deployment answers every row: it has no WHERE", condition.span or plan.span, help)
        raise _refused(f"{_words(plan)} cannot be answered for one row", plan.span)

    def rows(self, plan: LogicalPlan, needed: Set[Column]) -> tuple[str, list[ProjectStep | FilterStep]]:
        """The table that a plan reads row by row, and the steps from its rows to the plan's needed columns."""
        match plan:
            case Scan(table=table):
                return table, [self.scanned(plan, needed)]
            case Project(items, child):
                kept = [item for item in items if item.column in needed]
                below = frozenset(column for item in kept for column in item.expression.references)
                table, steps = self.rows(child, below)
                return table, [*steps, self.projected(kept, child)]
            case SubqueryAlias(child=child):
                kept = self.renamed(plan, needed)
                below = frozenset(column for item in kept for column in item.expression.references)
                table, steps = self.rows(child, below)
                return table, [*steps, self.projected(kept, child)]
            case Hint(child=child):
                return self.rows(child, needed)
            case Filter(condition, child):
                table, steps = self.rows(child, frozenset({*needed, *condition.references}))
                return table, [*steps, FilterStep(self.condition(condition, child))]
        what = f"{_words(plan)} cannot be kept row by row"
        raise _refused(what, plan.span, "the tables beside the request table may have filters and projections only")

    @staticmethod
    def renamed(plan: SubqueryAlias, needed: Set[Column]) -> list[NamedExpr]:
        pairs = zip(plan.output_columns, plan.child.output_columns, strict=True)
        return [NamedExpr(inner, outer) for outer, inner in pairs if outer in needed]

    def scanned(self, plan: Scan, needed: Set[Column]) -> ProjectStep:
        """The needed columns of a table."""
        items = []
        read = self.tables.setdefault(plan.table, {})
        for item in plan.output:
            if item.column in needed:
                kind = to_arrow(item.dtype or "")
                read[item.column.name] = kind
                items.append((item.column.spark_name, TaskColumn(item.column.name, kind)))
        return ProjectStep(tuple(items))

    def projected(self, items: Sequence[NamedExpr], child: LogicalPlan) -> ProjectStep:
        """The items over a plan's columns."""
        columns = []
        for item in items:
            expression, dtype = self.translated(item.expression, child)
            self.types[item.column] = dtype
            columns.append((item.column.spark_name, expression))
        return ProjectStep(tuple(columns))

    def numbered(self, columns: Sequence[Column], plan: LogicalPlan) -> ProjectStep:
        """Columns of a plan under their places, as names of a result need not differ."""
        return ProjectStep(tuple((str(place), self.task(column, plan)) for place, column in enumerate(columns)))

    def known_types(self, *plans: LogicalPlan) -> dict[Column, str | None]:
        """The types of the columns of plans."""
        every = {column: kind for plan in plans for column, kind in plan.dtypes.items()}
        return {column: kind or self.types.get(column) for column, kind in every.items()}

    def task(self, expression: Expression, plan: LogicalPlan) -> TaskExpression:
        """The expression over the columns of a plan, as operators compute it. Raises UnsupportedError."""
        return self.translated(expression, plan)[0]

    def translated(self, expression: Expression, plan: LogicalPlan) -> tuple[TaskExpression, str]:
        """`task`, and its Spark type."""
        types = self.known_types(plan)
        if isinstance(expression, Column) and (dtype := types.get(expression)) is not None:
            return TaskColumn(expression.spark_name, to_arrow(dtype)), dtype
        settings = ScalarSettings(self.settings.ansi, known_zone(self.settings.time_zone), by_rows=True)
        found = OperatorExpressions(types, settings, lambda _: None).required(expression)
        return found.expression, found.dtype

    def condition(self, expression: Expression, plan: LogicalPlan) -> TaskExpression:
        """A condition over the columns of a plan."""
        found, dtype = self.translated(expression, plan)
        if dtype != "boolean":
            raise _refused(f"{expression} is no condition but {dtype}", expression.span)
        return found

    def wired(self, wire: WireColumns, child: LogicalPlan) -> Items:
        """The computed columns of the wire."""
        return tuple((name, self.task(expression, child)) for expression, name in wire.computed.items())

    def kind(self, expression: Expression, child: LogicalPlan) -> str:
        """The Spark type of an expression."""
        return self.translated(expression, child)[1]

    # LAST JOIN

    def last_join(self, plan: LastJoin, needed: Set[Column]) -> list[Step]:
        """The steps of a LAST JOIN: one for each of its right sides."""
        reads = set(needed)
        for match in plan.matches:
            reads |= match.references
        left = frozenset(column for column in plan.left.output_columns if column in reads)
        steps = self.chain(plan.left, left)
        known = [column for column in plan.left.output_columns if column in left]
        for right, match in zip(plan.rights, plan.matches, strict=True):
            wanted = [column for column in right.output_columns if column in needed]
            if wanted:
                steps.append(self.right(plan, known, right, match, wanted))
                known += wanted
        return steps

    def right(
        self, plan: LastJoin, known: Sequence[Column], right: LogicalPlan, match: LastMatch, wanted: Sequence[Column]
    ) -> LastJoinStep:
        """One right side."""
        terms = ResidualTerms.of(match, plan.left.output_columns, right.output_columns)
        if terms.mixed:
            raise _refused(
                f"only Spark can evaluate {terms.mixed[0]} of both sides",
                terms.mixed[0].span or match.span,
                "compare columns of the two sides with =, <, <=, > or >=",
            )
        theirs, ours = WireColumns(), WireColumns()
        names, keys = [], []
        for a, b in zip(match.left_keys, match.right_keys, strict=True):
            kinds = self.kind(a, plan.left), self.kind(b, right)
            common = self.common(*kinds, b.span or match.span)
            names.append(ours.name(as_type(a, kinds[0], common)))
            keys.append(theirs.name(as_type(b, kinds[1], common)))
        comparisons, compared = [], {}
        for term in terms.comparisons:
            kinds = self.kind(term.left, plan.left), self.kind(term.right, right)
            common = self.common(*kinds, term.span or match.span)
            compared[term.right] = as_type(term.right, kinds[1], common)
            left_name = ours.name(as_type(term.left, kinds[0], common))
            comparisons.append(JoinComparison(left_name, cast(Operator, term.op), theirs.name(compared[term.right])))
        ways = [way for way in zip(match.order_by, match.descending, strict=True) if not isinstance(way[0], Literal)]
        order = [(theirs.name(compared.get(key, key)), compared.get(key, key), down) for key, down in ways]
        condition = ours.name(And((*terms.left_only, Literal("TRUE")))) if terms.left_only else None
        payload = tuple(column.spark_name for column in wanted)
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
        is_timed = first is not None and self.kind(first[1], right) in WINDOW_ORDER_TYPES
        source, served = self.right_input(right, terms, theirs, wanted, side, is_timed=is_timed)
        join = LastJoinSpec(tuple(names), tuple(column.spark_name for column in known), (side,))
        return LastJoinStep(self.wired(ours, plan.left), join, (replace(served, source=source),))

    def common(self, left: str, right: str, span: Span | None) -> str:
        """The type in which two values are compared."""
        found = common_type(left, right)
        if found is None and {left, right} <= {*INTEGERS, *FLOATS}:
            found = "double" if "double" in (left, right) or self.settings.ansi else "float"
        if found is None:
            raise _refused(f"only Spark compares {left} with {right}", span, "cast one of them")
        return found

    def right_input(
        self,
        right: LogicalPlan,
        terms: ResidualTerms,
        wire: WireColumns,
        wanted: Sequence[Column],
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
        back = None if not is_last or not side.order else self.behind if times else _AT_ONCE
        order = side.order[0] if is_timed else None
        return self.keep(rows, wire, wanted, side.keys, order, back, newest=int(is_last)), served

    def keep(
        self,
        rows: LogicalPlan,
        wire: WireColumns,
        wanted: Sequence[Column],
        keys: Sequence[str],
        order: str | None,
        back: int | None,
        *,
        newest: int = 0,
    ) -> int:
        """The number of the input with the columns of the wire and those that are `wanted`."""
        plain = tuple(dict.fromkeys((*wanted, *wire.plain)))
        needed = frozenset((*plain, *(column for item in wire.computed for column in item.references)))
        table, steps = self.rows(rows, needed)
        items = [NamedExpr(column, column) for column in plain]
        columns = self.projected(items, rows).columns + self.wired(wire, rows)
        schema = pa.schema([(name, expression.type) for name, expression in columns])
        kept = KeptSpec(schema, tuple(keys), order, newest)
        return self.kept(InputSpec(table, (*steps, ProjectStep(columns)), kept, back))

    # Windows

    def window(self, plan: WindowUnion, needed: Set[Column]) -> list[Step]:
        """The steps of windows that share keys and order."""
        calls_needed = {call.column for group in plan.windows for call in group.calls} & set(needed)
        narrowed = plan.narrowed(set(needed), lambda node: node) if calls_needed else plan.source
        if not isinstance(narrowed, WindowUnion):
            return self.chain(plan.source, needed)
        return self.windows(narrowed, frozenset(needed))

    def windows(self, plan: WindowUnion, needed: Set[Column]) -> list[Step]:
        """The steps of a node whose calls are all needed."""
        source, wire = plan.source, WireColumns()
        keys = tuple(wire.name(item) for item in plan.partition_by)
        is_ordered = plan.order_by is not None and not isinstance(plan.order_by, Literal)
        order = wire.name(plan.order_by) if plan.order_by is not None and is_ordered else None
        order_type = self.kind(plan.order_by, source) if plan.order_by is not None and order is not None else None
        if order_type is not None and order_type not in WINDOW_ORDER_TYPES:
            raise _refused(f"windows are not ordered by {order_type}", plan.order_by.span if plan.order_by else None)
        if plan.further:
            raise _refused("windows of a deployment have one ORDER BY key", plan.further[0].span or plan.span)
        calls = {call: call.shipped(wire.name) for group in plan.windows for call in group.calls}
        windows = wire_windows(plan, calls, order_type)
        spec = WindowUnionSpec(keys, order, (), windows, self.settings.ansi, self.settings.time_zone)
        self.check_bounds(plan, spec)
        passed = frozenset(column for column in source.output_columns if column in needed)
        read = passed | frozenset(wire.plain) | {c for item in wire.computed for c in item.references}
        own = self.items(wire, source)
        types = pa.schema([(name, expression.type) for name, expression in own])
        for call, shipped in calls.items():
            self.types[call.column] = self.result_type(call, shipped, types)
        reach = reach_of(spec)
        back = None if order is None else reach.back
        unions = tuple(
            self.union(plan, place, wire, keys, order, back, reach.rows) for place in range(len(plan.unions))
        )
        step = WindowStep(own, spec, types, unions)
        if reach.shows_from:
            step = self.shown(plan, step, wire, back)
        return [*self.chain(source, read), step]

    def result_type(self, call: WindowCall, shipped: Call, types: pa.Schema) -> str:
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

    def items(self, wire: WireColumns, plan: LogicalPlan) -> Items:
        """All columns of the wire, over a plan's."""
        plain = [NamedExpr(column, column) for column in wire.plain]
        return self.projected(plain, plan).columns + self.wired(wire, plan)

    def check_bounds(self, plan: WindowUnion, spec: WindowUnionSpec) -> None:
        """Raises UnsupportedError for windows without a bound, and for rows that are counted after the request row."""
        for group, window in zip(plan.windows, spec.windows, strict=True):
            span = next((call.span for call in group.calls if call.span is not None), plan.span)
            if reach_of(replace(spec, windows=(window,))).unbounded:
                raise _refused(
                    f"the window {group.name} begins at the first row of its key, so that rows are kept for good",
                    span,
                    "give it a start, ROWS_RANGE BETWEEN 30d PRECEDING, or a bound for each key, MAXSIZE 1000",
                )
            if _counts_ahead(window):
                raise _refused("a window of a deployment counts no rows after the request row", span, "use ROWS_RANGE")

    def union(
        self,
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
        known, others = self.known_types(source), self.known_types(rows)
        for ours, theirs in zip(source.output, rows.output, strict=False):
            wanted, given = known[ours.column] or "", others[theirs.column] or ""
            if ours.column.name.lower() != theirs.column.name.lower() or (
                wanted != given and union_type(wanted, given, ansi=self.settings.ansi) != wanted
            ):
                told = f"{theirs.column.name} {given}, where FROM has {ours.column.name} {wanted}"
                raise self.mismatch(told, place, rows)
            if ours.column in read:
                items.append(NamedExpr(as_type(theirs.column, given, wanted), ours.column))
        renamed = Project(tuple(items), rows)
        return self.keep(renamed, wire, (), keys, order, back, newest=newest)

    def mismatch(self, told: str, place: int, rows: LogicalPlan) -> SqlExtError:
        """The error of a union source whose columns are not FROM's."""
        return AnalysisError(
            f"UNION source {place + 1} has {told}",
            condition="union-columns",
            span=rows.span,
            help="a UNION source must have FROM's columns: same number, order, names and types; "
            "use a subquery to rename, cast, fill or drop columns",
        )

    def shown(self, plan: WindowUnion, step: WindowStep, wire: WireColumns, back: int | None) -> WindowStep:
        """The step with the rows of the request table that its windows show."""
        source = plan.source
        joins = source.collect(LastJoin)
        inner = next(iter(source.collect(WindowUnion)), None)
        read = frozenset(wire.plain) | {c for item in wire.computed for c in item.references}
        if inner is None and not joins:
            rows = step.reach.rows
            number = self.keep(source, wire, (), step.window.keys, step.window.order, back, newest=rows)
            return replace(step, own=number)
        # Columns of joins are of the moment: the last row of a stored row's key may be another one by now.
        base = self.request_scan(source)
        named = (*plan.partition_by, *(() if step.window.order is None or plan.order_by is None else (plan.order_by,)))
        strange = next((item for item in named if not item.references <= frozenset(base.output_columns)), None)
        if strange is not None:
            raise _refused(
                f"the windows' rows are found by {strange}, which is no column of '{self.request}' itself",
                strange.span or plan.span,
                "partition and order by columns of the request table, or add INSTANCE_NOT_IN_WINDOW",
            )
        self.behind = back
        scanned, *before = self.chain(source, read)
        self.behind = 0
        if any(isinstance(one, WindowStep) for one in before):
            raise _refused(
                "a window reads results of another window for rows of the request table",
                next((call.span for group in plan.windows for call in group.calls), plan.span),
                "deploy the inner query, and push its answers to a table that the outer one reads",
            )
        assert isinstance(scanned, ProjectStep)
        kept: Items = tuple((name, TaskColumn(name, expression.type)) for name, expression in scanned.columns)
        kept += tuple((name, self.task(item, base)) for item, name in wire.computed.items() if item in named)
        schema = pa.schema([(name, expression.type) for name, expression in kept])
        number = self.kept(
            InputSpec(
                base.table,
                (scanned, ProjectStep(kept)),
                KeptSpec(schema, step.window.keys, step.window.order, step.reach.rows),
                back,
            )
        )
        steps = tuple(one for one in before if isinstance(one, ProjectStep | LastJoinStep))
        return replace(step, own=number, before=steps)

    def request_scan(self, plan: LogicalPlan) -> Scan:
        """The scan of the request table at the end of a chain."""
        while not isinstance(plan, Scan):
            plan = plan.children[0]
        return plan

    def kept(self, spec: InputSpec) -> int:
        """The number of an input, the same one for equal inputs."""
        if spec not in self.inputs:
            self.inputs.append(spec)
        return self.inputs.index(spec)


def _counts_ahead(window: Window) -> bool:
    """Whether a window has rows behind the request row that no time bounds."""
    frame = window.frame
    return frame.end is None or (frame.unit == "rows" and frame.end > 0)


def _words(plan: LogicalPlan) -> str:
    """What a user calls a node."""
    name = plan.operator_name
    return name if name is not None else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(plan).__name__)
