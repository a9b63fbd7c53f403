"""From an optimized plan to what a deployment keeps of its tables and computes of a request row.

The plan is a chain from the result down to the request table: projections, LAST JOINs and windows. What else a row
reads, right sides and union sources, is a table with filters and projections. Everything that has no such form is
refused with its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlext_operators.expressions.nodes import TaskColumn, shared
from sqlext_operators.serving.steps import BranchStep, ProjectStep, ServingSpec, Step

from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Output
from sqlext_planner.serving.lowering import Lowering, ServingSettings, composed
from sqlext_planner.serving.refusals import refused
from sqlext_planner.serving.windows import ServedWindow


def serving_spec(plan: LogicalPlan, request: str, settings: ServingSettings) -> ServingSpec:
    """What a deployment of an optimized plan keeps and computes. `request` is the request table's name in the plan.

    Raises UnsupportedError for what cannot be answered for one row, AnalysisError for types that do not fit.
    """
    return serving_plan(plan, request, settings)[0]


def serving_plan(
    plan: LogicalPlan, request: str, settings: ServingSettings
) -> tuple[ServingSpec, tuple[ServedWindow, ...]]:
    """`serving_spec`, and its windows, those that are computed first before others. Raises as it."""
    lowering = Lowering(request, settings)
    if not isinstance(plan, Output):
        raise refused(f"{type(plan).__name__} cannot be deployed", plan.span)
    columns = plan.child.output_columns
    steps = [*lowering.chain(plan.child, frozenset(columns)), lowering.numbered(columns, plan.child)]
    tables = {name: pa.schema(list(fields.items())) for name, fields in lowering.tables.items()}
    spec = ServingSpec(request, tables, tuple(lowering.inputs), tuple(_merged(steps)), plan.names)
    return spec, tuple(lowering.windows)


def _merged(steps: Sequence[Step]) -> list[Step]:
    """The steps without those that only select columns, and one for a projection and one that renames its columns."""
    merged: list[Step] = []
    for place, step in enumerate(steps):
        if isinstance(step, BranchStep):
            merged.append(BranchStep(tuple(_merged(step.steps)), step.columns, step.keys))
            continue
        one = composed(merged[-1], step) if merged else None
        if one is not None:
            merged[-1] = one
            continue
        if merged and place < len(steps) - 1 and isinstance(step, ProjectStep) and _only_selects(step):
            continue
        merged.append(step)
    return [_with_shared(step) if isinstance(step, ProjectStep) else step for step in merged]


def _only_selects(step: ProjectStep) -> bool:
    """Whether it leaves columns away, and nothing else."""
    return all(isinstance(item, TaskColumn) and item.name == name for name, item in step.columns)


def _with_shared(step: ProjectStep) -> ProjectStep:
    """The projection with parts that its columns have in common computed once."""
    names, expressions = zip(*step.columns, strict=True) if step.columns else ((), ())
    return ProjectStep(tuple(zip(names, shared(expressions), strict=True)))
