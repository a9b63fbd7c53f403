"""In which order a multi-way join binds its key classes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext_operators.umjoin.spec import MultiwayJoinSpec


def class_order(spec: MultiwayJoinSpec, distinct: Sequence[int]) -> tuple[int, ...]:
    """The classes of a join in the order in which they are bound; `distinct` are their numbers of values.

    Any order is worst-case optimal, but they differ in how many partial bindings fail. Greedily, the next class

    1. shares an input with those before it, as long as there is one: two classes without a common input would be
       bound to every pair of their values;
    2. is one that payload hangs on: what is bound last, and only multiplies rows, is counted and not enumerated;
    3. is one of as many inner and semi inputs as possible, as each of them rules values out;
    4. has as few values as possible, so that few lists are opened below.
    """
    members = [item for item in spec.inputs if item.kind in ("inner", "semi")]
    wanted = {place for item in spec.inputs if item.payload for place in item.classes}
    sharing = [sum(place in item.classes for item in members) for place in range(spec.classes)]
    chosen: list[int] = []
    while len(chosen) < spec.classes:
        near = {place for item in members if set(item.classes) & set(chosen) for place in item.classes} - set(chosen)
        rest = near or set(range(spec.classes)) - set(chosen)
        chosen.append(min(rest, key=lambda place: (place not in wanted, -sharing[place], distinct[place], place)))
    return tuple(chosen)


def emitted_depth(spec: MultiwayJoinSpec, order: Sequence[int]) -> int:
    """How many classes, in this order, all payload's rows are found by."""
    depth_of = {place: depth for depth, place in enumerate(order)}
    depths = [depth_of[place] + 1 for item in spec.inputs if item.payload for place in item.classes]
    return max(depths, default=0)
