"""TSC, the two-step convert: trees of binary joins become multi-way joins (docs/reference/umjoin.md, section 2)."""

from __future__ import annotations

from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.umjoin.find.groups import create_multi_join_groups
from sqlext_planner.umjoin.find.hints import check_hints
from sqlext_planner.umjoin.find.multi_join_nodes import get_multi_join_node


@rule(order="root")
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
