"""One of our window definitions as WindowUnion nodes: its sources, its frame, its calls level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion
from sqlglot import exp

from sqlext.analyzer import frames, hints, relations
from sqlext.analyzer.context import ComputedNames, Context, Env
from sqlext.analyzer.definitions import Definition
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.scope import Scope
from sqlext.syntax.spans import span_of

Call = tuple[exp.Anonymous, Column, bool]


@dataclass(frozen=True)
class WindowPlan:
    """What is needed to plan one definition."""

    context: Context
    env: Env
    scope: Scope
    names: ComputedNames
    definition: Definition
    tie_order: Column | None = None


def window_union(wanted: WindowPlan, made: Sequence[WindowCall], source: LogicalPlan) -> WindowUnion:
    """The node for plain calls. Raises AnalysisError for a definition that is not allowed."""
    context, node = wanted.context, wanted.definition.node
    builder = key_builder(context, wanted.scope, wanted.env)
    keys = frames.partition_keys(node, builder)
    order, order_dtype = frames.order_key(node, builder)
    frame = frames.window_frame(context, node, order_dtype)
    unions = tuple(_source(wanted, item) for item in node.args.get("union") or [])
    if unions:
        source = _in_star_order(wanted.scope, source)
    group = WindowGroup(wanted.definition.name, frame, tuple(range(len(unions))), tuple(made), span=span_of(node))
    return WindowUnion(
        keys,
        order,
        (group,),
        source,
        unions,
        tie_order=wanted.tie_order,
        partitioner=hints.partitioner(node),
        span=span_of(node),
    )


def key_builder(context: Context, scope: Scope, env: Env) -> ExpressionBuilder:
    """A builder of partition and order keys: in OpenMLDB mode their bare names mean the left table of LAST JOINs."""
    return ExpressionBuilder(context, scope.left_first() if context.openmldb else scope, env)


def _in_star_order(scope: Scope, source: LogicalPlan) -> LogicalPlan:
    """The source with the columns of ``*`` first, to which union rows correspond by position (USING reorders them)."""
    first = tuple(item.column for item in scope.star())
    if source.output_columns[: len(first)] == first:
        return source
    rest = tuple(column for column in source.output_columns if column not in set(first))
    return Project(tuple(NamedExpr(column, column) for column in (*first, *rest)), source)


def _source(wanted: WindowPlan, node: exp.Expr) -> LogicalPlan:
    """A UNION source, with the same columns as FROM (docs/reference/windows.md, section 2), or as the part of FROM
    before a LAST JOIN: its rows then have NULL in the columns that the LAST JOIN added."""
    plan, scope = relations.relation(wanted.context, node, wanted.env)
    ours = wanted.scope.star()
    theirs = scope.star()
    shown = wanted.context.slice(span_of(node))
    label = f"'{shown}'" if len(shown) <= 40 else "this source"
    if len(ours) != len(theirs) and len(theirs) not in wanted.scope.prefixes:
        widths = " or ".join(map(str, (*wanted.scope.prefixes, len(ours))))
        raise AnalysisError(
            f"UNION source {label} has {len(theirs)} columns, FROM has {widths}",
            span=span_of(node),
            help="select the same columns in the same order: UNION (SELECT ... FROM ...)",
            notes=(f"FROM has the columns {', '.join(item.name for item in ours)}",),
        )
    for position, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if scope.fold(mine.name) != scope.fold(other.name):
            raise AnalysisError(
                f"column {position} of UNION source {label} is called '{other.name}', in FROM '{mine.name}'",
                span=span_of(node),
                help=f"rename it in a subquery: UNION (SELECT ..., {other.name} AS {mine.name}, ... FROM ...)",
            )
        if mine.dtype is not None and other.dtype is not None and mine.dtype != other.dtype:
            raise AnalysisError(
                f"column '{mine.name}' of UNION source {label} has type {other.dtype}, in FROM {mine.dtype}",
                span=span_of(node),
                help=f"cast it in a subquery: CAST({other.name} AS {mine.dtype}) AS {mine.name}",
            )
    return plan
