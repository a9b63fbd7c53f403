"""Reports hints UMJOIN that TSC cannot follow."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Join, UMJoinHint
from sqlext_planner.relational.plan_patterns import relation_names
from sqlext_planner.umjoin.find.groups import MultiJoinGroup, can_be_multi_join_group_member
from sqlext_planner.umjoin.find.multi_join_nodes import LEAST_INPUTS
from sqlext_planner.umjoin.nodes import UMJoin


def check_hints(before: LogicalPlan, groups: Mapping[int, MultiJoinGroup], after: LogicalPlan) -> None:
    """Raises UnsupportedError, at the hint, for a hint whose relations are not inputs of one group.

    `groups` are those of the plan `before`; `after` is the plan that TSC made of it.
    """
    hints = {node.umjoin: None for node in before.collect(Join) if node.umjoin is not None and node.umjoin.wanted}
    if not hints:
        return
    found = {id(group): group for group in groups.values()}.values()
    made = {node.asked for node in after.collect(UMJoin)}
    for hint in hints:
        reach = [_relations(group) for group in found if group.hint == hint and hint in made]
        if not any(set(hint.names) <= relations for relations in reach):
            raise UnsupportedError(
                f"the hint {hint} names no group of joins: {_reason(before, hint, reach)}",
                condition="hint-not-followed",
                span=hint.span,
                help="name relations of one FROM that are joined to each other, or leave the hint out",
            ).about_hint()


def _relations(group: MultiJoinGroup) -> set[str]:
    """All relations that a group joins, including those that are taken apart in it, but not those inside its inputs."""
    plans = [*group.members.values(), *(child for member in group.members.values() for child in member.children)]
    return {column.relation for plan in plans for column in plan.output_columns}


def _reason(plan: LogicalPlan, hint: UMJoinHint, reach: list[set[str]]) -> str:
    own = [node for node in plan.collect(Join) if node.umjoin == hint]
    apart = next((node for node in own if not can_be_multi_join_group_member(node)), None)
    if apart is not None and apart.kind == "full":
        return "a FULL JOIN keeps the rows of both sides and cannot be grouped"
    if apart is not None:
        return f"the join ON {apart.condition} contains a subquery or rand() and cannot be grouped"
    if not reach:
        least = f"a group has {LEAST_INPUTS} inputs or more"
        over = _other_node_over(plan, set(hint.names))
        return least if over is None else f"the {type(over).__name__} over them is no member of a group, and {least}"
    most = max(reach, key=lambda relations: len(set(hint.names) & relations))
    left_out = ", ".join(f"'{name}'" for name in hint.names if name not in most)
    return f"{left_out} is not joined to the others by inner joins, or as the other side of a left, semi or anti join"


def _other_node_over(plan: LogicalPlan, names: set[str]) -> LogicalPlan | None:
    """The lowest node over all named relations, if it combines them in another way than a join that can be grouped."""
    over = plan
    while below := next((child for child in over.children if names and names <= relation_names(child)), None):
        over = below
    return over if len(over.children) > 1 and not isinstance(over, Join) else None
