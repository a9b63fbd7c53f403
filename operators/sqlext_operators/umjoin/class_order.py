"""In which order a multi-way join binds its key classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec

#: Branches are counted alone if the largest one's estimate is at most this many times the smallest one's. A step in a
#: branch is an addition (6 ns), one of a search that the smallest branch leads is an intersection (measured, 4-cycles
#: of 600,000 edges: 450 ns).
_BALANCE = 64


@dataclass(frozen=True)
class SearchOrder:
    """The classes of the prefix in order, then those of each branch, which all end in the class `pivot`.

    A branch without classes of its own belongs to inputs that have only the pivot and classes of the prefix.
    """

    prefix: tuple[int, ...]
    branches: tuple[tuple[int, ...], ...] = ()
    pivot: int = -1

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """Where each branch begins, if depths are counted through the prefix and the branches; the pivot is the last
        depth of each of them."""
        bounds = [len(self.prefix)]
        for branch in self.branches:
            bounds.append(bounds[-1] + len(branch) + 1)
        return tuple(bounds)

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """The class of each depth."""
        return (*self.prefix, *(place for branch in self.branches for place in (*branch, self.pivot)))

    def depths(self, classes: Iterable[int]) -> tuple[int, ...]:
        """The depths of an input's classes."""
        depth_of = {place: depth for depth, place in enumerate(self.prefix)}
        rest = [place for place in classes if place not in depth_of and place != self.pivot]
        for begin, branch in zip(self.bounds, self.branches, strict=False):
            if set(rest) <= set(branch) and (rest or not branch):
                depth_of |= {place: begin + i for i, place in enumerate((*branch, self.pivot))}
                break
        return tuple(depth_of[place] for place in classes)

    def emitted(self, spec: MultiwayJoinSpec) -> int:
        """How many depths it takes to find the rows of all payload."""
        depths = [depth + 1 for item in spec.inputs if item.payload for depth in self.depths(item.classes)]
        return max(depths, default=0)


def search_order(spec: MultiwayJoinSpec, distinct: Sequence[int], rows: Sequence[int]) -> SearchOrder:
    """The order for a join; `distinct` are the classes' numbers of values, `rows` those of the inputs.

    Classes below those that payload depends on are only counted. If they fall into branches that meet in one class once
    some first ones are bound, they are counted branch by branch: the 4-cycle a, b, c, d has the branches b and
    d between a and c. Left and anti inputs are in the prefix.
    """
    order = class_order(spec, distinct)
    for size in range(SearchOrder(order).emitted(spec), spec.classes - 2):
        for pivot in order[size:]:
            branches = _branches(spec, order[:size], pivot, distinct, rows)
            if branches is not None:
                return SearchOrder(order[:size], branches, pivot)
    return SearchOrder(order)


def class_order(spec: MultiwayJoinSpec, distinct: Sequence[int]) -> tuple[int, ...]:
    """The classes of a join in the order in which they are bound; `distinct` are their numbers of values.

    Any order is worst-case optimal, but they differ in how many partial bindings fail. Greedily, the next class

    1. shares an input with those before it, as long as there is one: two classes without a common input would be
       bound to every pair of their values;
    2. is one that payload depends on: classes bound last, which only multiply rows, are counted and not enumerated;
    3. is one of as many inner and semi inputs as possible, because each of them rules values out;
    4. has as few values as possible, so that few lists are opened below.
    """
    return _ordered(spec, distinct, (), range(spec.classes))


def _ordered(
    spec: MultiwayJoinSpec, distinct: Sequence[int], bound: Sequence[int], classes: Iterable[int]
) -> tuple[int, ...]:
    members = [item for item in spec.inputs if item.kind in ("inner", "semi")]
    payload_classes = {place for item in spec.inputs if item.payload for place in item.classes}
    sharing = [sum(place in item.classes for item in members) for place in range(spec.classes)]
    chosen: list[int] = []
    rest = set(classes)
    while rest:
        before = {*bound, *chosen}
        near = {place for item in members if before & set(item.classes) for place in item.classes} & rest
        chosen.append(
            min(near or rest, key=lambda place: (place not in payload_classes, -sharing[place], distinct[place], place))
        )
        rest.remove(chosen[-1])
    return tuple(chosen)


def _branches(
    spec: MultiwayJoinSpec, prefix: Sequence[int], pivot: int, distinct: Sequence[int], rows: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    """The branches below a prefix that meet in the pivot; None unless there are two with classes of their own, each
    beginning at the prefix, of about the same size."""
    bound = {*prefix, pivot}
    below = [
        (item, count) for item, count in zip(spec.inputs, rows, strict=True) if not set(item.classes) <= set(prefix)
    ]
    if any(item.kind in ("left", "anti") for item, _ in below):
        return None
    groups: list[set[int]] = []
    for item, _ in below:
        own = set(item.classes) - bound
        if own:
            groups = [own.union(*(found for found in groups if found & own)), *(x for x in groups if not x & own)]
    branches, sizes = [], []
    for group in groups:
        items = [(item, count) for item, count in below if set(item.classes) & group]
        begins = not prefix or any(set(item.classes) & set(prefix) for item, _ in items)
        if not begins or not any(pivot in item.classes for item, _ in items):
            return None
        branches.append(_ordered(spec, distinct, prefix, group))
        sizes.append(_estimate(items, group, distinct))
    if len(groups) < 2 or max(sizes) > _BALANCE * min(sizes):
        return None
    direct = [()] if any(set(item.classes) <= bound for item, _ in below) else []
    return (*direct, *branches)


def _estimate(items: Sequence[tuple[MultiwayInput, int]], classes: set[int], distinct: Sequence[int]) -> float:
    """How many bindings a branch has, if every value is as frequent as the others."""
    size = math.prod(max(1.0, count) for _, count in items)
    for place in classes:
        having = sum(place in item.classes for item, _ in items)
        size /= max(1.0, distinct[place]) ** (having - 1)
    return size
