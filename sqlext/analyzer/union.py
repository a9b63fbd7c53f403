"""One of our window definitions as WindowUnion nodes: its sources, its frame, its calls level by level."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan, reads
from sqlext_planner.relational.nodes import Project
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion
from sqlglot import exp

from sqlext.analyzer import frames, hints
from sqlext.analyzer.context import ComputedNames, Context, Env
from sqlext.analyzer.definitions import Definition
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.scope import Scope, Visible
from sqlext.analyzer.union_by_name import UnionSources, as_wanted, is_by_name, label
from sqlext.syntax.spans import span_of

#: A call with its modifiers, its column, and whether it is a whole select item.
Call = tuple[exp.Expr, Column, bool]


@dataclass(frozen=True)
class WindowPlan:
    """What is needed to plan one definition. `scope` is FROM in the types of its UNION."""

    context: Context
    env: Env
    scope: Scope
    names: ComputedNames
    definition: Definition
    named: UnionSources
    tie_order: Column | None = None

    @property
    def call_scope(self) -> Scope:
        """What the arguments of calls see."""
        return self.named.call_scope(self.definition.node, self.scope)


def window_union(wanted: WindowPlan, made: Sequence[WindowCall], source: LogicalPlan) -> WindowUnion:
    """The node for plain calls. Raises AnalysisError for a definition that is not allowed."""
    context, node = wanted.context, wanted.definition.node
    builder = key_builder(context, wanted.scope, wanted.env)
    keys = frames.partition_keys(node, builder)
    order, order_dtype = frames.order_key(node, builder)
    further = frames.further_keys(node, builder)
    frame = frames.window_frame(context, node, order_dtype)
    needed = reads((*keys, *further, *(() if order is None else (order,))))
    unions = tuple(_source(wanted, item, needed) for item in node.args.get("union") or [])
    if unions:
        source = _in_star_order((*wanted.scope.star(), *wanted.named.extras), source)
    group = WindowGroup(wanted.definition.name, frame, tuple(range(len(unions))), tuple(made), span=span_of(node))
    return WindowUnion(
        keys,
        order,
        (group,),
        source,
        unions,
        tie_order=wanted.tie_order,
        partitioner=hints.partitioner(node),
        further=further,
        span=span_of(node),
    )


def key_builder(context: Context, scope: Scope, env: Env) -> ExpressionBuilder:
    """A builder of partition and order keys: in OpenMLDB mode their bare names mean the left table of LAST JOINs."""
    return ExpressionBuilder(context, scope.left_first() if context.openmldb else scope, env)


def _in_star_order(columns: Sequence[Visible], source: LogicalPlan) -> LogicalPlan:
    """The source with the columns of ``*`` first, to which union rows correspond by position (USING reorders them)."""
    first = tuple(item.column for item in columns)
    if source.output_columns[: len(first)] == first:
        return source
    rest = tuple(column for column in source.output_columns if column not in set(first))
    return Project(tuple(NamedExpr(column, column) for column in (*first, *rest)), source)


def _source(wanted: WindowPlan, node: exp.Expr, needed: Set[Column]) -> LogicalPlan:
    """A UNION source with the columns of FROM (docs/reference/windows.md, section 2): found by their names
    (union_by_name.py), or the same ones in the same order, or those of the part of FROM before a LAST JOIN. Its rows
    have NULL in the columns that it lacks."""
    if is_by_name(wanted.definition.node):
        return wanted.named.arranged(node, wanted.scope, needed)
    context = wanted.context
    plan, scope = wanted.named.relation(node)
    ours = wanted.scope.star()
    theirs = scope.star()
    shown = label(context, node)
    if len(ours) != len(theirs) and len(theirs) not in wanted.scope.prefixes:
        widths = " or ".join(map(str, (*wanted.scope.prefixes, len(ours))))
        raise AnalysisError(
            f"UNION source {shown} has {len(theirs)} columns, FROM has {widths}",
            condition="union-columns",
            span=span_of(node),
            help="select the same columns in the same order: UNION (SELECT ... FROM ...), or write BY NAME behind it",
            notes=(f"FROM has the columns {', '.join(item.name for item in ours)}",),
        )
    values: list[Expression] = []
    for position, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if scope.fold(mine.name) != scope.fold(other.name):
            raise AnalysisError(
                f"column {position} of UNION source {shown} is called '{other.name}', in FROM '{mine.name}'",
                condition="union-columns",
                span=span_of(node),
                help=f"rename it in a subquery: UNION (SELECT ..., {other.name} AS {mine.name}, ... FROM ...), or "
                "write BY NAME behind the source if its columns only have another order",
            )
        values.append(as_wanted(context, mine, other, node, shown))
    if all(value is other.column for value, other in zip(values, theirs, strict=True)):
        return plan
    renamed = {item.column.relation: context.names.unique("union") for item in theirs}
    columns = (Column(renamed[item.column.relation], item.column.name) for item in theirs)
    return Project(tuple(map(NamedExpr, values, columns)), plan, span=span_of(node))
