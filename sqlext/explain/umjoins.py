"""What TSC did to a statement: its groups, and the plan before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlext_planner.batches import BATCHES, Optimizer
from sqlext_planner.plan_format import side_by_side, tree_text
from sqlext_planner.relational.subquery import own_subqueries
from sqlext_planner.umjoin.find.groups import UMJoinGroup
from sqlext_planner.umjoin.nodes import UMJoin

if TYPE_CHECKING:
    from sqlext_planner.relational.logical_plan import LogicalPlan
    from sqlext_planner.relational.physical_plan import PhysicalPlan

    from sqlext.run.pipeline import StagedPlan

#: Width, in characters, of two plans side by side.
_WIDTH = 220


def umjoins_json(plan: StagedPlan) -> list[dict[str, Any]]:
    """``[{"inputs": [alias...], "kinds": [...], "key_classes": [["alias.column", ...], ...], "strategy": ...,
    "why": ...}]``, and a "warning" if there is one.

    Every group that TSC made, outer queries first, whatever strategy was chosen for it.
    """
    if plan.optimized is None or plan.physical is None:
        return []
    chosen = {node.group: node for node in _physical_groups(plan.physical)}
    groups = map(UMJoinGroup.of, _umjoins(plan.optimized))
    return [_entry(group, chosen.get(group)) for group in groups]


def _umjoins(plan: LogicalPlan) -> Iterator[UMJoin]:
    """The multi-way joins of a plan, and of the subqueries in its expressions."""
    for part in with_subqueries(plan):
        yield from part.collect(UMJoin)


def with_subqueries(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """An optimized plan, and those of the subqueries that are left in its expressions, outer ones first."""
    yield plan
    for item in own_subqueries(plan):
        yield from with_subqueries(Optimizer().optimize(item.plan, item.plan.free_columns).final)


def _entry(group: UMJoinGroup, physical: Any) -> dict[str, Any]:
    details = {} if physical is None else physical.details()
    return {
        "inputs": list(group.inputs),
        "kinds": list(group.kinds),
        "key_classes": [list(found) for found in group.key_classes],
        "strategy": details.get("strategy", "cascade"),
        "why": details.get("why", "part of a text that goes to Spark"),
        **group.notes,
    }


def _physical_groups(physical: PhysicalPlan) -> Iterator[Any]:
    return (node for node in physical.walk() if isinstance(getattr(node, "group", None), UMJoinGroup))


def tsc_text(plan: StagedPlan) -> str:
    """The optimized plan without TSC and with it, side by side; '' if TSC found nothing."""
    if plan.analyzed is None or plan.optimized is None or not plan.optimized.collect(UMJoin):
        return ""
    return side_by_side(
        tree_text(without_tsc(plan.analyzed)), tree_text(plan.optimized), titles=("binary joins", "TSC"), width=_WIDTH
    )


def without_tsc(analyzed: LogicalPlan) -> LogicalPlan:
    """The plan that all other rules make."""
    return Optimizer([batch for batch in BATCHES if batch.name != "TSC"]).optimize(analyzed).final
