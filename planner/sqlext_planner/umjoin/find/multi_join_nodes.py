"""TSC's second step: groups of joins become multi-way join nodes (docs/reference/umjoin.md, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlext_planner.expressions.nodes import Column, Compare, Expression, NamedExpr, conjunction, conjuncts, reads_only
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias
from sqlext_planner.umjoin.find.groups import MultiJoinGroup
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

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
