"""From the nodes of a plan to steps over rows: tables, projections, filters, and the types of all columns."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlext_operators.expressions.nodes import TaskColumn, TaskExpression
from sqlext_operators.serving.steps import FilterStep, InputSpec, Items, ProjectStep, Step
from sqlext_operators.serving.store import KeptSpec

from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars.settings import ScalarSettings, known_zone
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Hint, Project, Scan, SubqueryAlias
from sqlext_planner.serving.last_join import last_join_steps
from sqlext_planner.serving.refusals import refused, words
from sqlext_planner.serving.windows import ServedWindow, window_steps
from sqlext_planner.window.nodes import WindowUnion


@dataclass(frozen=True)
class ServingSettings:
    """What of a session's settings a deployment depends on: the meaning of its statement, and what becomes of rows
    whose time is more than `future_bound` seconds after now (`sqlext.stream.future`: keep, drop or fail)."""

    ansi: bool
    time_zone: str
    future: str = "keep"
    future_bound: int = 3600


@dataclass
class Lowering:
    request: str
    settings: ServingSettings
    inputs: list[InputSpec] = field(default_factory=list)
    #: The columns that are read of each table.
    tables: dict[str, dict[str, pa.DataType]] = field(default_factory=dict)
    #: The types of columns that the plan does not know.
    types: dict[Column, str] = field(default_factory=dict)
    #: The windows, those that are computed first before others.
    windows: list[ServedWindow] = field(default_factory=list)
    #: How long after its time a row of a right side is needed by rows that a window shows; None: for good.
    behind: int | None = 0

    def chain(self, plan: LogicalPlan, needed: Set[Column]) -> list[Step]:
        """The steps from a request row to the needed columns of a plan."""
        match plan:
            case Scan(table=table) if table == self.request:
                return [self.scanned(plan, needed)]
            case Project(items, child):
                used = [item for item in items if item.column in needed]
                below = frozenset(column for item in used for column in item.expression.references)
                return [*self.chain(child, below), self.projected(used, child)]
            case SubqueryAlias(child=child):
                used = self.renamed(plan, needed)
                below = frozenset(column for item in used for column in item.expression.references)
                return [*self.chain(child, below), self.projected(used, child)]
            case Hint(child=child):
                return self.chain(child, needed)
            case LastJoin():
                return last_join_steps(self, plan, needed)
            case WindowUnion():
                return window_steps(self, plan, needed)
            case Scan(relation=relation):
                raise refused(f"'{relation}' is not the request table '{self.request}'", plan.span)
            case Filter(condition):
                help = "leave the condition to the caller"
                raise refused("a deployment answers every row: it has no WHERE", condition.span or plan.span, help)
        raise refused(f"{words(plan)} cannot be answered for one row", plan.span)

    def rows(self, plan: LogicalPlan, needed: Set[Column]) -> tuple[str, list[ProjectStep | FilterStep]]:
        """The table that a plan reads row by row, and the steps from its rows to the plan's needed columns."""
        match plan:
            case Scan(table=table):
                return table, [self.scanned(plan, needed)]
            case Project(items, child):
                used = [item for item in items if item.column in needed]
                below = frozenset(column for item in used for column in item.expression.references)
                table, steps = self.rows(child, below)
                return table, [*steps, self.projected(used, child)]
            case SubqueryAlias(child=child):
                used = self.renamed(plan, needed)
                below = frozenset(column for item in used for column in item.expression.references)
                table, steps = self.rows(child, below)
                return table, [*steps, self.projected(used, child)]
            case Hint(child=child):
                return self.rows(child, needed)
            case Filter(condition, child):
                table, steps = self.rows(child, frozenset({*needed, *condition.references}))
                return table, [*steps, FilterStep(self.condition(condition, child))]
        what = f"{words(plan)} cannot be kept row by row"
        raise refused(what, plan.span, "the tables beside the request table may have filters and projections only")

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

    def column_type(self, column: Column, plan: LogicalPlan) -> str:
        """The Spark type of a column of a plan of rows, also where the plan does not know it."""
        known = plan.dtypes.get(column) or self.types.get(column)
        if known is None:
            match plan:
                case Project(items, child):
                    expression = next(item.expression for item in items if item.column == column)
                    for read in expression.references:
                        self.types[read] = self.column_type(read, child)
                    known = self.kind(expression, child)
                case SubqueryAlias(child=child):
                    known = self.column_type(child.output_columns[plan.output_columns.index(column)], child)
                case _:
                    below = next((child for child in plan.children if column in child.output_columns), None)
                    known = "" if below is None else self.column_type(column, below)
        return known

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
            raise refused(f"{expression} is no condition but {dtype}", expression.span)
        return found

    def wired(self, wire: WireColumns, child: LogicalPlan) -> Items:
        """The computed columns of the wire."""
        return tuple((name, self.task(expression, child)) for expression, name in wire.computed.items())

    def kind(self, expression: Expression, child: LogicalPlan) -> str:
        """The Spark type of an expression."""
        return self.translated(expression, child)[1]

    def keep(
        self,
        rows: LogicalPlan,
        wire: WireColumns,
        passed: Sequence[Column],
        keys: Sequence[str],
        order: str | None,
        back: int | None,
        *,
        newest: int = 0,
    ) -> int:
        """The number of the input with the columns of the wire and those that are `wanted`."""
        plain = tuple(dict.fromkeys((*passed, *wire.plain)))
        needed = frozenset((*plain, *(column for item in wire.computed for column in item.references)))
        table, steps = self.rows(rows, needed)
        items = [NamedExpr(column, column) for column in plain]
        columns = self.projected(items, rows).columns + self.wired(wire, rows)
        schema = pa.schema([(name, expression.type) for name, expression in columns])
        kept = KeptSpec(schema, tuple(keys), order, newest)
        return self.input_number(InputSpec(table, (*steps, ProjectStep(columns)), kept, back))

    def input_number(self, spec: InputSpec) -> int:
        """The number of an input, the same one for equal inputs."""
        steps: list[ProjectStep | FilterStep] = []
        for step in spec.steps:
            one = composed(steps[-1], step) if steps else None
            steps[-1:] = [one] if one is not None else [*steps[-1:], step]
        spec = replace(spec, steps=tuple(steps), planned=spec.steps)
        if spec not in self.inputs:
            self.inputs.append(spec)
        return self.inputs.index(spec)


def composed(first: object, second: object) -> ProjectStep | None:
    """A projection and one that only selects and renames its columns, as one; None for other steps."""
    if not isinstance(first, ProjectStep) or not isinstance(second, ProjectStep):
        return None
    known = dict(first.columns)
    columns = [(name, known[item.name]) for name, item in second.columns if isinstance(item, TaskColumn)]
    return ProjectStep(tuple(columns)) if len(columns) == len(second.columns) else None
