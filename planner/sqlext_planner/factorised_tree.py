"""Join trees: in which order partial aggregates are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.expressions import Column, Compare, Expression
from sqlext_planner.factorised_classes import Classes, NotFactorisedError
from sqlext_planner.factorised_members import LeftMatch
from sqlext_planner.logical.umjoin import input_name


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
        return tuple(edge for edge in self.edges if edge.parent == number)

    def above(self, number: int) -> Edge | None:
        """The edge to an input's parent; None for the root."""
        return next((edge for edge in self.edges if edge.child == number), None)

    @cached_property
    def depths(self) -> dict[int, int]:
        """Edges to the root by input; parents stand before their children."""
        found = {self.root: 0}
        for edge in self.edges:
            found[edge.child] = found[edge.parent] + 1
        return found


def join_tree(
    classes: Classes, lefts: Sequence[LeftMatch], wanted: Sequence[Sequence[int]], rows: Sequence[float | None]
) -> JoinTree:
    """The best of the trees with each inner input as its root.

    `wanted` are the grouping expressions and DISTINCT arguments, each as the inputs that can compute it; `rows` the
    sizes of the inputs. Best is what carries fewest of the wanted values over fewest edges; then what has fewest inputs
    between root and leaves (each of them is aggregated twice); then the biggest input as the root, which is joined
    to what the others were reduced to and aggregated straight to the result. Raises NotFactorisedError for a cycle, and
    for left inputs that match with columns of several inputs.
    """
    trees = [_with_lefts(classes, _spanning(classes, root), lefts) for root in classes.inner]

    def cost(tree: JoinTree) -> tuple[float, float, float, int]:
        carried = sum(min(tree.depths[number] for number in homes) for homes in wanted)
        between = len({edge.parent for edge in tree.edges} - {tree.root})
        return carried, between, -(rows[tree.root] or 0), tree.root

    return min(trees, key=cost)


def _spanning(classes: Classes, root: int) -> JoinTree:
    """A maximum spanning tree where an edge weighs as much as its inputs share classes (Prim's algorithm).

    It is a join tree if and only if the inputs have one, which is when its weight is the sum over the classes of the
    inputs that have it, less one (Bernstein and Goodman 1981): the same inputs that a GYO reduction takes apart. Among
    equal edges the one nearest to the root is taken, so that inputs on one key become a star.
    """
    groups = {number: classes.numbers(number) for number in classes.inner}
    depth = {root: 0}
    edges: list[Edge] = []
    weight = 0
    while len(depth) < len(groups):
        pairs = ((parent, child) for parent in depth for child in groups if child not in depth)
        shares = {(p, c): len(groups[p] & groups[c]) for p, c in pairs}
        parent, child = min(shares, key=lambda pair: (-shares[pair], depth[pair[0]], pair))
        weight += shares[parent, child]
        depth[child] = depth[parent] + 1
        shared = sorted(groups[parent] & groups[child])
        columns = tuple((classes.column(group, parent), classes.column(group, child)) for group in shared)
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
            name = input_name(classes.join.inputs[left.number])
            raise NotFactorisedError(f"left input {name} matches with columns of several inputs")
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
