"""Plans that change as little as possible: for a running stream, each key that moves is copied twice for a while."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlext_planner.exchange.partitioning.loads import slot_of
from sqlext_planner.exchange.partitioning.plans import Copies, Exchange, PartitionPlan
from sqlext_planner.exchange.partitioning.team_plans import team_plan

if TYPE_CHECKING:
    from sqlext_operators.exchange.placement import Placement

Teams = Mapping[int, tuple[int, ...]]


def present_plan(exchange: Exchange, placement: Placement, copies: Copies) -> PartitionPlan:
    """What a placement by keys and hash slots costs, as many as the exchange has or fewer."""
    own = {place.key: place.team for place in placement.keys}
    return _planned("now", exchange, placement, own, copies)


def steady_plan(plan: PartitionPlan, exchange: Exchange, placement: Placement) -> PartitionPlan:
    """A plan that splits the known keys as another one does, with the hash slots where a placement has them.

    A key keeps its partitions if it stays in as many, and one that is in a single partition is where its slot is. The
    others go to the least loaded partitions, largest first. Of a plan that splits nothing all known keys move.
    """
    import numpy as np

    units, partitions = exchange.units, exchange.partitions
    assert plan.placement is not None
    wanted = {place.key: len(place.team) for place in plan.placement.keys}
    whole = all(size == 1 for size in wanted.values())
    own = {place.key: place.team for place in placement.keys}
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = units.keys.tolist()
    sizes = [wanted.get(key, 1) for key in keys]
    work = units.piece_work(exchange.demand, np.array([*sizes, *[1] * units.slots]), plan.copies)
    loads = np.zeros(partitions)
    share = units.slots // len(placement.slots)
    for slot, load in enumerate(work[len(keys) :].tolist()):
        team = placement.slots[slot // share]
        loads[list(team)] += load / len(team)
    teams: dict[int, tuple[int, ...]] = {}
    free = []
    for number, (key, home, size) in enumerate(zip(keys, homes, sizes, strict=True)):
        before = own.get(key, placement.slots[home])
        if size == 1 and not whole:
            teams[key] = placement.slots[home]
        elif size > 1 and len(before) == size:
            teams[key] = before
        else:
            free.append((-float(work[number]), key, size))
            continue
        loads[list(teams[key])] += work[number]
    for load, key, size in sorted(free):
        chosen = heapq.nsmallest(size, range(partitions), key=lambda place: (loads[place], place))
        teams[key] = tuple(chosen)
        loads[chosen] -= load
    return _planned(plan.partitioner, exchange, placement, teams, plan.copies)


def _planned(name: str, exchange: Exchange, placement: Placement, teams: Teams, copies: Copies) -> PartitionPlan:
    units = exchange.units
    homes = slot_of(units.keys, len(placement.slots)).tolist()
    keys = [teams.get(key, placement.slots[home]) for key, home in zip(units.keys.tolist(), homes, strict=True)]
    share = units.slots // len(placement.slots)
    slots = [placement.slots[slot // share] for slot in range(units.slots)]
    return team_plan(name, exchange, units, [*keys, *slots], copies)
