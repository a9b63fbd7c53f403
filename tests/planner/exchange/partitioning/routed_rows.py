"""Rows of small exchanges, where a plan sends them by the definitions, and what has to be found there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from sqlext_operators.exchange.placement import Placement
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.loads import Loads, Sample
from sqlext_planner.exchange.partitioning.plans import PartitionPlan

#: Hashes of a few keys, in different slots of 16.
HASHES = [0x1234_0000_0000_0007, 0x1FFF_0000_0000_0001, 0x7AAA_5555_0000_0003, 0xFEDC_BA98_7654_3210]


@dataclass(frozen=True)
class Row:
    """A row of an input: its place among all rows, its input, the hash of its key, its time."""

    number: int
    input: int
    key: int
    time: int


def rows_of(inputs: list[list[tuple[int, int]]]) -> list[Row]:
    """Rows of (number of the key in HASHES, time) for each input."""
    flat = [(place, key, time) for place, rows in enumerate(inputs) for key, time in rows]
    return [Row(number, place, HASHES[key], time) for number, (place, key, time) in enumerate(flat)]


def exact_loads(rows: list[Row], inputs: int, least_share: float = 0.0, timed: bool = True) -> Loads:
    """Loads that know every row, with 16 hash slots."""
    samples = []
    for place in range(inputs):
        own = [row for row in rows if row.input == place]
        times = np.array([row.time for row in own], np.int64) if timed else None
        samples.append(Sample(np.array([row.key for row in own], np.uint64), times, len(own)))
    return Loads.of(samples, least_share=least_share, slots=16)


def team_of(placement: Placement, key: int) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The team of a key, and its cuts."""
    for place in placement.keys:
        if place.key == key:
            return place.team, place.cuts
    slots = len(placement.slots)
    return placement.slots[key * slots >> 64], None


def home_of(plan: PartitionPlan, row: Row) -> int:
    """The partition in which an owned row is answered."""
    assert plan.placement is not None
    team, cuts = team_of(plan.placement, row.key)
    return team[row.number % len(team) if cuts is None else sum(cut <= row.time for cut in cuts)]


def places_of(plan: PartitionPlan, demand: Demand, row: Row) -> list[int]:
    """All partitions that a row is sent to."""
    assert plan.placement is not None
    team, cuts = team_of(plan.placement, row.key)
    if row.input == 0 and plan.copies == "others":
        return [home_of(plan, row)]
    if cuts is None:
        return list(team)
    assert demand.reach is not None
    back, ahead = demand.reach
    first = sum(cut <= row.time - ahead for cut in cuts)
    last = sum(cut <= row.time + back for cut in cuts)
    found = set(team[first : last + 1])
    return sorted(found | {home_of(plan, row)} if row.input == 0 else found)


def needed_by(demand: Demand, owner: Row, other: Row) -> bool:
    """Whether a row matters to an owned one: the same key, and a time in its reach, both ends closed."""
    if owner.key != other.key or (other.input == 0 and not demand.owned_copies):
        return False
    return demand.reach is None or -demand.reach[0] <= other.time - owner.time <= demand.reach[1]


def inputs(most: int = 12, number: int = 2) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    """Rows of each input: keys that are often the first, times with many ties, also negative."""
    key = st.one_of(st.just(0), st.integers(0, len(HASHES) - 1))
    return st.lists(st.lists(st.tuples(key, st.integers(-9, 9)), max_size=most), min_size=number, max_size=number)


def reaches() -> st.SearchStrategy[tuple[int, int]]:
    """(back, ahead), also 0 and beside the row's own time."""
    ends = st.tuples(st.integers(-4, 6), st.integers(-4, 6))
    return ends.filter(lambda reach: sum(reach) >= 0)
