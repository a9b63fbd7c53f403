"""TSC's first step: which joins of a plan make one multi-way join (docs/reference/umjoin.md, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlext_planner.expressions.nodes import Column, Expression, conjuncts, is_movable
from sqlext_planner.relational.joins import Join, PartitionerHint, UMJoinHint
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias
from sqlext_planner.relational.plan_patterns import is_single_row
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
    places: see the table of shapes in umjoin/tsc.py."""
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


@dataclass(frozen=True)
class UMJoinGroup:
    """The inputs by their names, how they take part, the columns that are equal in a match, as ``alias.column``, and
    the inputs that no term ties to the first ones."""

    inputs: tuple[str, ...]
    kinds: tuple[MemberKind, ...]
    key_classes: tuple[tuple[str, ...], ...]
    apart: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: UMJoin) -> UMJoinGroup:
        """The group of a node."""
        classes = tuple(tuple(str(column) for column in found) for found in node.key_classes)
        names = tuple(map(relation_name, node.inputs))
        return cls(names, node.kinds, classes, tuple(names[place] for place in _apart(node)))

    @property
    def notes(self) -> dict[str, str]:
        """What a reader should know before the query runs, for EXPLAIN."""
        if not self.apart:
            return {}
        return {"warning": f"no condition connects {', '.join(self.apart)} to the other inputs: all rows are paired"}

    def __str__(self) -> str:
        pairs = zip(self.inputs, self.kinds, strict=True)
        return ", ".join(name if kind == "inner" else f"{kind} {name}" for name, kind in pairs)


def _apart(node: UMJoin) -> list[int]:
    """Inputs that may have several rows and are tied to none of those before them, not even through later ones."""
    owner = {column: place for place, child in enumerate(node.inputs) for column in child.output_columns}
    ties = [{owner[column] for column in item.references} for item in conjuncts(node.condition)]
    pairs = zip(node.matches, node.inputs, strict=True)
    ties += [
        {owner[column] for column in match.references} | {place}
        for place, (match, _) in enumerate(pairs)
        if match is not None
    ]
    reached = {0}
    while grown := [tie for tie in ties if tie & reached and not tie <= reached]:
        reached |= set().union(*grown)
    return [
        place
        for place, (child, kind) in enumerate(zip(node.inputs, node.kinds, strict=True))
        if place not in reached and kind in ("inner", "left") and not is_single_row(child)
    ]
