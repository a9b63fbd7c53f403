"""TSC, the two-step convert: trees of binary joins become multi-way joins (docs/reference/umjoin.md, section 2).

First which joins of a plan make one multi-way join, then the nodes that these groups of joins become, then the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    NamedExpr,
    conjunction,
    conjuncts,
    is_movable,
    reads_only,
)
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.relational.joins import Join, PartitionerHint, UMJoinHint
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias
from sqlext_planner.relational.plan_patterns import relation_names
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

#: The children of a join that can be members of its group: the side whose rows the join multiplies or filters.
_MEMBER_SIDES = {
    "inner": ("left", "right"),
    "cross": ("left", "right"),
    "left": ("left",),
    "right": ("right",),
    "semi": ("left",),
    "anti": ("left",),
    "full": (),
}


@dataclass
class MultiJoinGroup:
    """The joins, and the nodes between them, that become one node in place of `root`."""

    root: Join
    members: dict[int, LogicalPlan] = field(default_factory=dict)

    @property
    def hint(self) -> UMJoinHint | None:
        """The hint UMJOIN of one of the joins."""
        hints = (member.umjoin for member in self.members.values() if isinstance(member, Join))
        return next((hint for hint in hints if hint is not None), None)

    @property
    def partitioner(self) -> PartitionerHint | None:
        """The hint PARTITIONER of one of the joins."""
        hints = (member.partitioner for member in self.members.values() if isinstance(member, Join))
        return next((hint for hint in hints if hint is not None), None)

    def __contains__(self, node: LogicalPlan) -> bool:
        return id(node) in self.members


@dataclass(frozen=True)
class _PlanGraph:
    """The plan as a graph: the nodes breadth-first, and for each the nodes that read it (its outputs)."""

    ordered: tuple[LogicalPlan, ...]
    outputs: dict[int, list[LogicalPlan]]


def create_multi_join_groups(root: LogicalPlan) -> dict[int, MultiJoinGroup]:
    """Algorithm 2 of Hu and Qiu: the group of every member, by id(node). Walks the plan breadth first.

    A node that two others read (a CTE used twice) is not a member, even if both are in one group: its rows take part
    twice, so it is two inputs.
    """
    graph = _plan_graph(root)
    groups: dict[int, MultiJoinGroup] = {}
    for node in graph.ordered:
        if not can_be_multi_join_group_member(node):
            continue
        group = _can_be_in_same_group_with_outputs(node, graph, groups)
        if group is None and isinstance(node, Join):
            group = MultiJoinGroup(node)
        if group is not None:
            group.members[id(node)] = node
            groups[id(node)] = group
    return groups


def can_be_multi_join_group_member(node: LogicalPlan) -> bool:
    """Joins that keep every row of a side in its place, and Project, Filter and SubqueryAlias over such a join.

    Their expressions are evaluated elsewhere afterwards and must give the same: no rand(), no subquery, no generator.
    """
    match node:
        case Join(kind=kind, condition=condition, sweep=sweep, umjoin=umjoin):
            refused = kind == "full" or sweep is True or (umjoin is not None and not umjoin.wanted)
            return not refused and _movable(conjuncts(condition))
        case Filter(condition, child):
            return _movable((condition,)) and can_be_multi_join_group_member(child)
        case Project(items, child):
            return _movable([item.expression for item in items]) and can_be_multi_join_group_member(child)
        case SubqueryAlias(child=child):
            return can_be_multi_join_group_member(child)
    return False


def _can_be_in_same_group_with_outputs(
    node: LogicalPlan, graph: _PlanGraph, groups: dict[int, MultiJoinGroup]
) -> MultiJoinGroup | None:
    below = node
    while len(graph.outputs[id(below)]) == 1 and not isinstance(below, Join):
        (below,) = below.children  # a node above a join is a member if the join is
    outputs = graph.outputs[id(node)]
    if len(graph.outputs[id(below)]) != 1 or len(outputs) != 1 or not _extends(outputs[0], node):
        return None
    return groups.get(id(outputs[0]))


def _extends(output: LogicalPlan, node: LogicalPlan) -> bool:
    """Whether `output` extends or filters the rows of `node` one by one, and the joins of both can change
    places: see the table of shapes in `tsc`."""
    if not isinstance(output, Join):
        return True
    sides = [side for side in ("left", "right") if getattr(output, side) is node]
    if sides[0] not in _MEMBER_SIDES[output.kind]:
        return False
    made_up = nullable_columns(node)
    terms = conjuncts(output.condition)
    if output.kind not in ("inner", "cross") or not any(made_up & term.references for term in terms):
        return True
    # Terms over columns that a left join makes wait for it; the join itself needs another term between its sides.
    sides_columns = [frozenset(side.output_columns) for side in (output.left, output.right)]
    known = (term.references for term in terms if not made_up & term.references)
    return any(all(references & columns for columns in sides_columns) for references in known)


def nullable_columns(node: LogicalPlan) -> frozenset[Column]:
    """The output columns that an outer join below may have filled with NULLs, through nodes that can be members."""
    match node:
        case Join(left, right, "left"):
            return nullable_columns(left) | frozenset(right.output_columns)
        case Join(left, right, "right"):
            return nullable_columns(right) | frozenset(left.output_columns)
        case Join(left, right, "inner" | "cross"):
            return nullable_columns(left) | nullable_columns(right)
        case Join(left, kind="semi" | "anti"):
            return nullable_columns(left)
        case Filter(child=child):
            return nullable_columns(child)
        case Project(items, child):
            below = nullable_columns(child)
            return frozenset(item.column for item in items if item.references & below)
        case SubqueryAlias(child=child):
            below = nullable_columns(child)
            pairs = zip(node.output_columns, child.output_columns, strict=True)
            return frozenset(ours for ours, theirs in pairs if theirs in below)
    return frozenset()


def _movable(expressions: tuple[Expression, ...] | list[Expression]) -> bool:
    return all(is_movable(item) for item in expressions)


def _plan_graph(root: LogicalPlan) -> _PlanGraph:
    ordered = [root]
    outputs: dict[int, list[LogicalPlan]] = {id(root): []}
    for node in ordered:  # grows while it is walked: breadth first
        for child in node.children:
            if id(child) not in outputs:
                outputs[id(child)] = []
                ordered.append(child)
            outputs[id(child)].append(node)
    return _PlanGraph(tuple(ordered), outputs)


#: Smaller groups stay binary joins.
LEAST_INPUTS = 3


@dataclass
class _MultiJoinInput:
    """An input of the new node: the plan, how it takes part, and on what."""

    plan: LogicalPlan
    kind: MemberKind = "inner"
    match: tuple[Expression, ...] = ()


@dataclass
class _Flat:
    """A member and all below it: its inputs in the order of the text, the terms over all of them, and each of its
    output columns as an expression over the inputs' columns."""

    inputs: list[_MultiJoinInput]
    columns: Mapping[Column, Expression]
    terms: list[Expression] = field(default_factory=list)


def get_multi_join_node(
    node: LogicalPlan, groups: Mapping[int, MultiJoinGroup], visited: dict[int, tuple[LogicalPlan, LogicalPlan]]
) -> LogicalPlan:
    """Algorithm 3: `node` with a UMJoin in place of every group below it. A shared node stays shared."""
    known = visited.get(id(node))
    if known is not None:
        return known[1]
    group = groups.get(id(node))
    rewritten: LogicalPlan | None = None
    if group is not None and group.root is node:
        rewritten = _create_multi_join_node_by_group(group, groups, visited)
    if rewritten is None:
        rewritten = node.map_children(lambda child: get_multi_join_node(child, groups, visited))
    visited[id(node)] = (node, rewritten)
    return rewritten


def _create_multi_join_node_by_group(
    group: MultiJoinGroup, groups: Mapping[int, MultiJoinGroup], visited: dict[int, tuple[LogicalPlan, LogicalPlan]]
) -> LogicalPlan | None:
    """The node of a group, below a Project where columns were renamed or computed between the joins; None for a group
    that stays as it is."""
    flat = _flatten(group.root, group)
    if len(flat.inputs) < LEAST_INPUTS:
        return None
    for item in flat.inputs:
        item.plan = get_multi_join_node(item.plan, groups, visited)
    _compute_keys(flat)
    joined = UMJoin(
        tuple(item.plan for item in flat.inputs),
        tuple(item.kind for item in flat.inputs),
        conjunction(flat.terms),
        tuple(conjunction(item.match) for item in flat.inputs),
        asked=group.hint,
        partitioner=group.partitioner,
        span=group.root.span,
    )
    wanted = tuple(NamedExpr(flat.columns[column], column) for column in group.root.output_columns)
    same = joined.output_columns == group.root.output_columns and all(item.expression == item.column for item in wanted)
    return joined if same else Project(wanted, joined)


def _flatten(node: LogicalPlan, group: MultiJoinGroup) -> _Flat:
    if node not in group:
        return _Flat([_MultiJoinInput(node)], {column: column for column in node.output_columns})
    match node:
        case Join(left, right, kind, condition):
            return _flatten_join(left, right, kind, conjuncts(condition), group)
        case Filter(condition, child):
            flat = _flatten(child, group)
            flat.terms += [term.substitute(flat.columns) for term in conjuncts(condition)]
            return flat
        case Project(items, child):
            flat = _flatten(child, group)
            flat.columns = {item.column: item.expression.substitute(flat.columns) for item in items}
            return flat
        case SubqueryAlias(child=child):
            flat = _flatten(child, group)
            pairs = zip(node.output_columns, child.output_columns, strict=True)
            flat.columns = {ours: flat.columns[theirs] for ours, theirs in pairs}
            return flat
    raise TypeError(f"{type(node).__name__} is no member of a group")


def _flatten_join(
    left: LogicalPlan, right: LogicalPlan, kind: str, terms: tuple[Expression, ...], group: MultiJoinGroup
) -> _Flat:
    if kind in ("inner", "cross"):
        first, second = _flatten(left, group), _flatten(right, group)
        flat = _Flat(first.inputs + second.inputs, {**first.columns, **second.columns}, first.terms + second.terms)
        flat.terms += [term.substitute(flat.columns) for term in terms]
        return flat
    side, other = (right, left) if kind == "right" else (left, right)
    flat = _flatten(side, group)
    identity = {column: column for column in other.output_columns}
    member: MemberKind = "left" if kind in ("left", "right") else "semi" if kind == "semi" else "anti"
    match = tuple(term.substitute({**flat.columns, **identity}) for term in terms)
    addition = [_MultiJoinInput(other, member, match)]
    flat.inputs = addition + flat.inputs if kind == "right" else flat.inputs + addition
    if member == "left":
        flat.columns = {**flat.columns, **identity}
    return flat


def _compute_keys(flat: _Flat) -> None:
    """Equalities of expressions over one input each become equalities of columns, computed in a Project over the input:
    ``CAST(a.x AS bigint) = b.y`` is ``a.key_1 = b.y``."""
    computed: dict[int, dict[Expression, Column]] = {}

    def as_column(side: Expression) -> Expression:
        if isinstance(side, Column):
            return side
        place = next((i for i, item in enumerate(flat.inputs) if reads_only(side, item.plan.output_columns)), None)
        if place is None:
            return side
        keys = computed.setdefault(place, {})
        if side not in keys:
            keys[side] = _key_column(flat.inputs[place].plan, len(keys) + 1)
        return keys[side]

    made_up = {column for item in flat.inputs if item.kind == "left" for column in item.plan.output_columns}

    def over_columns(term: Expression, nullable: set[Column]) -> Expression:
        if not _is_equality(term, flat) or term.references & nullable:
            return term
        assert isinstance(term, Compare)
        left, right = as_column(term.left), as_column(term.right)
        unchanged = left is term.left and right is term.right
        return term if unchanged else Compare("=", left, right, span=term.span)

    flat.terms = [over_columns(term, made_up) for term in flat.terms]
    for item in flat.inputs:
        own = set(item.plan.output_columns)
        item.match = tuple(over_columns(term, made_up - own) for term in item.match)
    for place, keys in computed.items():
        plan = flat.inputs[place].plan
        kept = [NamedExpr(column, column) for column in plan.output_columns]
        flat.inputs[place].plan = Project((*kept, *(NamedExpr(e, column) for e, column in keys.items())), plan)


def _is_equality(term: Expression, flat: _Flat) -> bool:
    """Whether a term compares one input's values with another's for equality."""
    if not isinstance(term, Compare) or term.op != "=":
        return False
    places = [
        next((i for i, item in enumerate(flat.inputs) if reads_only(side, item.plan.output_columns)), None)
        for side in (term.left, term.right)
    ]
    return None not in places and places[0] != places[1]


def _key_column(plan: LogicalPlan, number: int) -> Column:
    """A column for a computed key, named after its input."""
    taken = {column.name.lower() for column in plan.output_columns}
    while f"key_{number}" in taken:
        number += 1
    return Column(relation_name(plan), f"key_{number}")


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
