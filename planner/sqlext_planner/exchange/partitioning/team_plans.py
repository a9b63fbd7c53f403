"""Plans of teams: each key and each hash slot of other keys has its partitions, and rows are copied to all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlext_operators.exchange.placement import KeyPlace, Placement

from sqlext_planner.exchange.partitioning.loads import slot_of
from sqlext_planner.exchange.partitioning.plans import Copies, Exchange, PartitionPlan, Split
from sqlext_planner.exchange.partitioning.splitting import minimal_splits, spread, teams_of
from sqlext_planner.exchange.partitioning.units import Units

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s, Int64s

Teams = Sequence[tuple[int, ...]]


def team_plan(name: str, exchange: Exchange, units: Units, teams: Teams, copies: Copies) -> PartitionPlan:
    """The plan of `teams`, one for each of the units, which may be fewer than those of the exchange."""
    import numpy as np

    members = np.array([len(team) for team in teams], np.int64)
    work = np.repeat(units.piece_work(exchange.demand, members, copies), members)
    places = [place for team in teams for place in team]
    moved = members * units.rows if copies == "all" else units.owned + members * units.others
    split = int((members[len(units.keys) :] > 1).sum())
    return PartitionPlan(
        partitioner=name,
        placement=placement_of(units, teams, exchange.partitions),
        copies=copies,
        moved=float(moved.sum()),
        rows=exchange.loads.rows,
        splits=splits_of(exchange, units, teams),
        work=work_of(places, work, exchange.partitions),
        notes=(f"{split} of {units.slots} hash slots have several partitions",) if 0 < split < units.slots else (),
    )


def split_plan(name: str, exchange: Exchange, most: Int64s, copies: Copies) -> PartitionPlan:
    """The fewest members, at most most[i], by shares of the work; placed by the work that each member really gets."""
    import numpy as np

    units = exchange.units
    splits = minimal_splits(exchange.work, exchange.partitions, exchange.options.theta, most)
    owners = np.repeat(np.arange(len(splits)), splits)
    works = np.repeat(units.piece_work(exchange.demand, splits, copies), splits)
    teams = teams_of(owners, spread(owners, works, exchange.partitions), len(splits))
    return team_plan(name, exchange, units, teams, copies)


def fewer_slots(exchange: Exchange) -> Units:
    """The units with a few slots for each partition: Algorithm 1 splits each of them, however small."""
    units = exchange.units
    return units.folded(min(units.slots, 1 << (4 * exchange.partitions - 1).bit_length()))


def work_of(places: Sequence[int], works: Float64s, partitions: int) -> Float64s:
    """float64[partitions] from the partition and the work of each piece."""
    import numpy as np

    return np.bincount(places, weights=works, minlength=partitions).astype(np.float64)


def placement_of(
    units: Units, teams: Teams, partitions: int, cuts: Mapping[int, tuple[int, ...]] | None = None
) -> Placement:
    """The teams as data for the workers; `cuts` by number of the key. A key with the team of its slot has no place of
    its own."""
    slots = tuple(teams[len(units.keys) :])
    homes = slot_of(units.keys, units.slots).tolist()
    keys = [
        KeyPlace(key, team, (cuts or {}).get(number))
        for number, (key, home, team) in enumerate(zip(units.keys.tolist(), homes, teams, strict=False))
        if team != slots[home] or (cuts and number in cuts)
    ]
    return Placement(partitions, slots, tuple(keys))


def splits_of(exchange: Exchange, units: Units, teams: Teams) -> tuple[Split, ...]:
    """The known keys in several partitions; where the units have no keys, a key has the team of its slot."""
    loads = exchange.loads
    numbers = range(len(loads.keys)) if len(units.keys) else slot_of(loads.keys, units.slots).tolist()
    found = [
        Split(loads.name(key), key, len(teams[number]), work)
        for key, number, work in zip(loads.keys.tolist(), numbers, exchange.work.tolist(), strict=False)
        if len(teams[number]) > 1
    ]
    return tuple(sorted(found, key=lambda split: -split.work))
