"""Join trees: in which order partial aggregates are multiplied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from sqlext_planner.expressions.nodes import Column, Compare, Expression
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.umjoin.factorised.inputs import Classes, LeftMatch, NotFactorisedError

#: With at most this many inputs, each is tried as the root; with more, this many of the most promising.
_ROOTS = 16


@dataclass(frozen=True)
class Edge:
    """Input `child` is joined to `parent` on `pairs` of equal columns (the parent's, its own) and `outer`, terms over
    the parent alone; `left`: parents without a partner stay."""

    parent: int
    child: int
    pairs: tuple[tuple[Column, Column], ...]
    outer: tuple[Expression, ...] = ()
    left: bool = False

    @cached_property
    def parent_columns(self) -> tuple[Column, ...]:
        read = {column for term in self.outer for column in term.references}
        return tuple(dict.fromkeys([pair[0] for pair in self.pairs] + sorted(read, key=str)))

    @cached_property
    def child_columns(self) -> tuple[Column, ...]:
        return tuple(dict.fromkeys(pair[1] for pair in self.pairs))

    @cached_property
    def terms(self) -> tuple[Expression, ...]:
        """The join's condition."""
        return (*(Compare("=", *pair) for pair in self.pairs), *self.outer)


@dataclass(frozen=True)
class JoinTree:
    """The inner and left inputs as a tree: two inputs that share a key class share it with all inputs between them."""

    root: int
    edges: tuple[Edge, ...]

    def children(self, number: int) -> tuple[Edge, ...]:
        return self._children.get(number, ())

    def above(self, number: int) -> Edge | None:
        """The edge to an input's parent; None for the root."""
        return self._above.get(number)

    def below(self, number: int) -> frozenset[int]:
        """The inputs of a subtree."""
        return self._below[number]

    @cached_property
    def _children(self) -> dict[int, tuple[Edge, ...]]:
        found: defaultdict[int, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            found[edge.parent].append(edge)
        return {number: tuple(edges) for number, edges in found.items()}

    @cached_property
    def _above(self) -> dict[int, Edge]:
        return {edge.child: edge for edge in self.edges}

    @cached_property
    def _below(self) -> dict[int, frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        for number in reversed(self.depths):  # children before their parents
            found[number] = frozenset((number,)).union(*(found[edge.child] for edge in self.children(number)))
        return found

    @cached_property
    def depths(self) -> dict[int, int]:
        """Edges to the root by input; parents come before their children."""
        found = {self.root: 0}
        for edge in self.edges:
            found[edge.child] = found[edge.parent] + 1
        return found


def join_tree(
    classes: Classes, lefts: Sequence[LeftMatch], values: Sequence[Sequence[int]], rows: Sequence[float | None]
) -> JoinTree:
    """The best of the trees with each inner input as its root.

    `values` are the grouping expressions and DISTINCT arguments, each as the inputs that can compute it; `rows` the
    sizes of the inputs. The best tree carries the fewest of the values over the fewest edges; then it has the
    fewest inputs between root and leaves (each of them is aggregated twice); then the biggest input as the root, which
    is joined to the reduced others and aggregated straight to the result. Raises NotFactorisedError for a cycle, and
    for left inputs that match with columns of several inputs.
    """
    shares = _shares(classes)
    spanning = (_spanning(classes, root, shares) for root in _roots(classes, values, rows))
    trees = [_with_lefts(classes, tree, lefts) for tree in spanning]

    def cost(tree: JoinTree) -> tuple[float, float, float, int]:
        carried = sum(min(tree.depths[number] for number in homes) for homes in values)
        between = len({edge.parent for edge in tree.edges} - {tree.root})
        return carried, between, -(rows[tree.root] or 0), tree.root

    return min(trees, key=cost)


def _roots(classes: Classes, wanted: Sequence[Sequence[int]], rows: Sequence[float | None]) -> Sequence[int]:
    """The inner inputs to try as roots. If there are many: those that can compute what is wanted, then those with most
    neighbours (fewest inputs between them and the leaves), then the biggest. A tree for each would take cubic time."""
    if len(classes.inner) <= _ROOTS:
        return classes.inner
    homes = {number for choices in wanted for number in choices}
    held = [len(group) for group in classes.members]

    def promise(number: int) -> tuple[bool, int, float, int]:
        neighbours = sum(held[group] - 1 for group in classes.numbers(number))
        return number not in homes, -neighbours, -(rows[number] or 0), number

    return sorted(classes.inner, key=promise)[:_ROOTS]


#: For each inner input, the others that it shares key classes with, and how many.
Shares = Mapping[int, Mapping[int, int]]


def _shares(classes: Classes) -> Shares:
    shares: dict[int, defaultdict[int, int]] = {number: defaultdict(int) for number in classes.inner}
    for group in classes.members:
        owners = sorted({classes.owner[column] for column in group})
        for one in owners:
            for other in owners:
                if one != other:
                    shares[one][other] += 1
    return shares


def _spanning(classes: Classes, root: int, shares: Shares) -> JoinTree:
    """A maximum spanning tree where an edge weighs as much as its inputs share classes (Prim's algorithm).

    It is a join tree if and only if the inputs have one, that is, if its weight is the sum, over the classes, of the
    number of inputs that have the class, less one (Bernstein and Goodman 1981): the same inputs that a GYO reduction
    takes apart. Among equal edges the one nearest to the root wins, so that inputs on one key become a star.
    """
    groups = {number: classes.numbers(number) for number in classes.inner}
    depth: dict[int, int] = {}
    edges: list[Edge] = []
    weight = 0
    reached: list[tuple[int, int, int, int]] = []  # (-shared classes, depth of the parent, parent, child)

    def add(number: int, level: int) -> None:
        depth[number] = level
        for child, shared in shares[number].items():
            if child not in depth:
                heappush(reached, (-shared, level, number, child))

    add(root, 0)
    apart = (0, 0, root)  # an input that shares no class with those so far hangs on the root
    left = iter(sorted(groups))
    while len(depth) < len(groups):
        while reached and reached[0][3] in depth:
            heappop(reached)
        shared, _, parent, child = reached[0] if reached else (*apart, next(n for n in left if n not in depth))
        weight -= shared
        add(child, depth[parent] + 1)
        common = sorted(groups[parent] & groups[child])
        columns = tuple((classes.column(group, parent), classes.column(group, child)) for group in common)
        edges.append(Edge(parent, child, columns))
    if weight != sum(len(found) for found in groups.values()) - len(classes.members):
        raise NotFactorisedError("the inputs form a cycle: their join cannot be taken apart input by input")
    return JoinTree(root, tuple(edges))


def _with_lefts(classes: Classes, tree: JoinTree, lefts: Sequence[LeftMatch]) -> JoinTree:
    """The tree with every left input below the nearest input that has what it matches with."""
    for left in lefts:
        for home in sorted(tree.depths, key=lambda number: (tree.depths[number], number)):
            edge = _edge(classes, home, left)
            if edge is not None:
                tree = JoinTree(tree.root, (*tree.edges, edge))
                break
        else:
            name = relation_name(classes.join.inputs[left.number])
            raise NotFactorisedError(f"left input {name} is matched with columns of several inputs")
    return tree


def _edge(classes: Classes, home: int, left: LeftMatch) -> Edge | None:
    pairs = []
    for theirs, own in left.pairs:
        partner = classes.equal(theirs, home)
        if partner is None:
            return None
        pairs.append((partner, own))
    outer = []
    for term in left.outer:
        translated = classes.translated(term, home)
        if translated is None:
            return None
        outer.append(translated)
    return Edge(home, left.number, tuple(pairs), tuple(outer), left=True)
