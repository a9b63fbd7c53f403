"""TSC, the two-step convert: trees of binary joins become multi-way joins (docs/reference/umjoin.md, section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.relational.joins import Join, UMJoinHint
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.plan_patterns import relation_names
from sqlext_planner.umjoin.find.groups import MultiJoinGroup, can_be_multi_join_group_member, create_multi_join_groups
from sqlext_planner.umjoin.find.multi_join_nodes import LEAST_INPUTS, get_multi_join_node
from sqlext_planner.umjoin.nodes import UMJoin


@rule(order="root", on=(Join,))
def tsc(root: LogicalPlan) -> LogicalPlan | None:
    """Algorithm 1, Two-Step-Convert: find groups of joins, then replace each group of 3 inputs or more by a UMJoin.

    ``SELECT * FROM t, u, v WHERE t.a = u.x AND u.y = v.p``::

        Join: inner ON u.y = v.p                UMJoin: t, u, v ON t.a = u.x AND u.y = v.p
          Join: inner ON t.a = u.x        ->      Scan: t [a, b]
            Scan: t [a, b]                        Scan: u [x, y]
            Scan: u [x, y]                        Scan: v [p, q]
          Scan: v [p, q]

    Shapes, with R, S, T any plans and * a join, Project, Filter or SubqueryAlias that is a member of the group itself:

    | join            | left side   | right side  | becomes                                                          |
    |-----------------|-------------|-------------|------------------------------------------------------------------|
    | R inner S on p  | * or input  | * or input  | inputs of both, p among the condition's terms                    |
    | R cross S       | * or input  | * or input  | inputs of both (a cross product stays one, with a warning)       |
    | R left S on p   | * or input  | input       | inputs of R, S as a left input that matches on p                 |
    | R right S on p  | input       | * or input  | mirrored                                                         |
    | R semi S on p   | * or input  | input       | inputs of R, S as a semi input; anti likewise                    |
    | R full S        | -           | -           | stays: no side's rows are kept one by one                        |
    | Project, Filter | * below     |             | items are put into the expressions above, terms among the others |
    | any other node  | -           |             | an input                                                         |

    Expressions over one input that are compared for equality (CAST, functions, fields of structs) are computed in a
    Project over it, so that they do not break the group.

    Legal because an inner join's terms, a semi or anti join and the matches of a left join are decided for each row of
    the inner inputs' product alone: the order in which they are checked does not matter, as long as they read nothing
    that another left join makes. Counter-example: in ``(t LEFT JOIN u ON t.a = u.x) JOIN v ON coalesce(u.y, 0) =
    v.p`` v is joined only to what the left join makes; the left join is an input there. Where the term
    rejects NULLs (``u.y = v.p``), simplify_outer_join has already made the left join an inner one. The other side
    of a left, semi or anti join stays apart: ``t LEFT JOIN (u JOIN v)`` keeps t where u has a match and
    v has none. rand(), subqueries and generators are evaluated where they are written: a join or Project with one is an
    input. Streams are grouped as tables are; what becomes of a group is the strategy's business.
    """
    groups = create_multi_join_groups(root)
    new = get_multi_join_node(root, groups, {}) if groups else root
    check_hints(root, groups, new)
    return None if new is root else new


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
