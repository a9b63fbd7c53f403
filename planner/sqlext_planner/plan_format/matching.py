"""Which node of one plan is which of another: the same object, or what became of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.tree import TreeNode

#: What happened to a node between two plans; `new` and `gone` have no counterpart, `moved` ones are below others now.
State = Literal["same", "changed", "moved", "new", "gone"]


@dataclass(frozen=True)
class Matching:
    """The pairs of nodes of two plans: by id of the node before, and of the node after."""

    after: Mapping[int, TreeNode]
    before: Mapping[int, TreeNode]
    #: The new node that covers what was below a gone one, or the changed node of its kind that was above it.
    became: Mapping[int, TreeNode] = field(default_factory=dict)
    #: The nodes after that are below a node that was not above them.
    moved: frozenset[int] = frozenset()

    def state_before(self, node: TreeNode) -> State:
        """What becomes of a node of the plan before."""
        found = self.after.get(id(node))
        return "gone" if found is None else self._state(node, found)

    def state_after(self, node: TreeNode) -> State:
        """Where a node of the plan after comes from."""
        found = self.before.get(id(node))
        return "new" if found is None else self._state(found, node)

    def _state(self, before: TreeNode, after: TreeNode) -> State:
        if before.label() != after.label():
            return "changed"
        return "moved" if id(after) in self.moved else "same"


def match_logical(before: LogicalPlan, after: LogicalPlan) -> Matching:
    """The pairs of two logical plans: nodes that are the same object; then, in this order, those of a class that print
    the same, that stand at the same place of the text, and that have most of their columns in common."""
    left, right = list(before.walk()), list(after.walk())
    pairs = _Pairs()
    known = {id(node): node for node in right}
    for node in left:
        if id(node) in known:
            pairs.add(node, node)
    keys: tuple[Callable[[LogicalPlan], Hashable | None], ...] = (LogicalPlan.label, lambda node: node.span)
    for key in keys:
        pairs.add_equal(left, right, key)
    pairs.add_similar(left, right)
    return Matching(pairs.after, pairs.before, dict(_became(left, after, pairs)), _moved(before, after, pairs))


def match_physical(logical: LogicalPlan, physical: PhysicalPlan) -> Matching:
    """Each logical node with the physical node that computes it."""
    pairs = _Pairs()
    nodes = {id(node): node for node in logical.walk()}
    for node in physical.walk():
        source = node.source()
        if source is not None and id(source) in nodes and id(source) not in pairs.after:
            pairs.add(source, node)
    return Matching(pairs.after, pairs.before)


def changed_part(before: TreeNode, after: TreeNode) -> tuple[TreeNode, TreeNode]:
    """The smallest parts of two plans in which all that differs is."""
    while before.label() == after.label() and len(before.children) == len(after.children):
        differing = [pair for pair in zip(before.children, after.children, strict=True) if pair[0] is not pair[1]]
        if len(differing) != 1:
            break
        before, after = differing[0]
    return before, after


@dataclass
class _Pairs:
    after: dict[int, TreeNode] = field(default_factory=dict)
    before: dict[int, TreeNode] = field(default_factory=dict)

    def add(self, left: TreeNode, right: TreeNode) -> None:
        self.after[id(left)], self.before[id(right)] = right, left

    def add_equal(
        self, left: list[LogicalPlan], right: list[LogicalPlan], key: Callable[[LogicalPlan], Hashable | None]
    ) -> None:
        """Pairs of one class with equal keys, in their order; None matches nothing."""
        waiting: dict[Hashable, list[LogicalPlan]] = {}
        for node in reversed(right):
            if id(node) not in self.before:
                waiting.setdefault((type(node), key(node)), []).append(node)
        for node in left:
            found = waiting.get((type(node), key(node)))
            if id(node) not in self.after and key(node) is not None and found:
                self.add(node, found.pop())

    def add_similar(self, left: list[LogicalPlan], right: list[LogicalPlan]) -> None:
        for node in left:
            if id(node) in self.after:
                continue
            rest = [other for other in right if id(other) not in self.before and type(other) is type(node)]
            best = max(rest, key=lambda other: _likeness(node, other), default=None)
            if best is not None and _likeness(node, best) >= 0.5:
                self.add(node, best)


def _moved(before: LogicalPlan, after: LogicalPlan, pairs: _Pairs) -> frozenset[int]:
    """The nodes that have got a node of the plan before above them. (A node that moves up is not among them: what it
    has passed is.)"""
    above = {node: set(map(id, over)) for node, over in _above(before).items()}
    return frozenset(
        node
        for node, over in _above(after).items()
        if node in pairs.before
        and any(
            id(pairs.before[id(one)]) not in above[id(pairs.before[node])] for one in over if id(one) in pairs.before
        )
    )


def _above(plan: LogicalPlan) -> dict[int, list[LogicalPlan]]:
    """The nodes above each node, by its id, the root first."""
    over: dict[int, list[LogicalPlan]] = {id(node): [] for node in plan.walk()}
    for node in plan.walk():
        for below in node.walk():
            if below is not node:
                over[id(below)].append(node)
    return over


def _likeness(left: LogicalPlan, right: LogicalPlan) -> float:
    """The part of the fewer columns that both have."""
    fewer = min(len(left.column_set), len(right.column_set))
    return len(left.column_set & right.column_set) / fewer if fewer else 0.0


def _became(left: list[LogicalPlan], after: LogicalPlan, pairs: _Pairs) -> Iterator[tuple[int, TreeNode]]:
    """For each gone node the lowest new node above all that is left of its inputs, else the nearest node of its kind
    that was above it."""
    below = {id(node): frozenset(id(item) for item in node.walk()) for node in after.walk()}
    over = _above(left[0])
    fresh = sorted((node for node in after.walk() if id(node) not in pairs.before), key=lambda n: len(below[id(n)]))
    for node in left:
        if id(node) in pairs.after:
            continue
        kept = {id(pairs.after[id(item)]) for item in node.walk() if id(item) in pairs.after}
        found: TreeNode | None = next((item for item in fresh if kept and kept <= below[id(item)]), None)
        if found is None:
            kin = (one for one in reversed(over[id(node)]) if type(one) is type(node) and id(one) in pairs.after)
            found = next((new for one in kin if (new := pairs.after[id(one)]).label() != one.label()), None)
        if found is not None:
            yield id(node), found
