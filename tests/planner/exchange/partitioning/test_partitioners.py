"""Plans against the routing of each row by the definitions: moved rows, matches, work. Needs no Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.loads import Loads, Sample
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionerOptions, PartitionPlan, Refused

from tests.planner.exchange.partitioning.routed_rows import (
    HASHES,
    Row,
    exact_loads,
    home_of,
    inputs,
    needed_by,
    places_of,
    reaches,
    rows_of,
)

PLACING = [name for name in PARTITIONERS if name != "hash"]


def planned(name: str, exchange: Exchange) -> PartitionPlan:
    plan = PARTITIONERS[name](exchange)
    assert isinstance(plan, PartitionPlan)
    return plan


def check(plan: PartitionPlan, demand: Demand, rows: list[Row], partitions: int) -> None:
    """The plan moves the rows that it says, and each match is found once: where its owned row is answered."""
    sent = {row: places_of(plan, demand, row) for row in rows}
    assert plan.moved == sum(map(len, sent.values()))
    assert plan.rows == len(rows)
    for places in sent.values():
        assert len(set(places)) == len(places)
        assert all(0 <= place < partitions for place in places)
    for owner in rows:
        if owner.input == 0:
            assert home_of(plan, owner) in sent[owner]
            for other in rows:
                if needed_by(demand, owner, other):
                    assert home_of(plan, owner) in sent[other]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PLACING)
@given(data=st.data())
def test_moved_rows_are_those_sent_and_matches_meet_once(name: str, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 3))
    rows = rows_of(data.draw(inputs(number=number)))
    demand = Demand(
        reach=data.draw(reaches()),
        owned_copies=data.draw(st.booleans()),
        pair_cost=data.draw(st.sampled_from([0.0, 0.5])),
    )
    partitions = data.draw(st.integers(1, 5))
    options = PartitionerOptions(
        theta=data.draw(st.sampled_from([1.0, 1.2, 2.0])),
        slots=16,
    )
    loads = exact_loads(rows, number, least_share=data.draw(st.sampled_from([0.0, 0.3, 2.0])))
    plan = planned(name, Exchange(loads, demand, partitions, options))
    check(plan, demand, rows, partitions)
    assert all(1 < split.pieces <= partitions for split in plan.splits) or name == "broadcast"
    assert [split.work for split in plan.splits] == sorted((split.work for split in plan.splits), reverse=True)


@given(rows=inputs(), reach=reaches(), copies=st.booleans(), pair_cost=st.sampled_from([0.0, 0.5]))
def test_the_work_of_time_ranges_is_that_of_their_rows_and_pairs(
    rows: list[list[tuple[int, int]]], reach: tuple[int, int], copies: bool, pair_cost: float
) -> None:
    every = rows_of(rows)
    demand = Demand(reach, copies, pair_cost=pair_cost)
    plan = planned("time_range", Exchange(exact_loads(every, 2), demand, 4))
    work = Counter(place for row in every for place in places_of(plan, demand, row))
    expected = np.array([float(work[place]) for place in range(4)])
    for owner in every:
        for other in every:
            if owner.input == 0 and other.input == 1 and needed_by(demand, owner, other):
                expected[home_of(plan, owner)] += pair_cost
    assert plan.work == pytest.approx(expected)


@given(rows=inputs(), pair_cost=st.sampled_from([0.0, 0.5]), copies=st.booleans())
def test_the_work_of_teams_adds_up(rows: list[list[tuple[int, int]]], pair_cost: float, copies: bool) -> None:
    every = rows_of(rows)
    demand = Demand((2, 1), copies, pair_cost=pair_cost)
    pairs = sum(
        owner.input == 0 and other.input == 1 and needed_by(demand, owner, other) for owner in every for other in every
    )
    for name in PLACING:
        plan = planned(name, Exchange(exact_loads(every, 2), demand, 4, PartitionerOptions(slots=16)))
        assert plan.work.sum() == pytest.approx(plan.moved + pair_cost * pairs)


def skewed(rows: int = 400) -> list[Row]:
    """Half of the rows have one key; input 0 has as many as input 1."""
    return rows_of([[(0 if i % 2 else 1 + i // 2 % 3, i) for i in range(rows)] for _ in range(2)])


def test_the_formulas() -> None:
    rows = skewed()
    counts = np.array([[sum(r.key == key and r.input == i for r in rows) for i in (0, 1)] for key in HASHES])
    own, other = counts.T
    moved = {}
    for copies in (False, True):
        demand = Demand((3, 0), owned_copies=copies)
        for name in ("key", "broadcast", "hybrid", "fragment"):
            plan = planned(name, Exchange(exact_loads(rows, 2), demand, 4))
            splits = {split.key: split.pieces for split in plan.splits}
            pieces = np.array([splits.get(key, 1) for key in HASHES])
            moved[name, copies] = plan.moved, pieces, plan.copies
    assert moved["key", False][0] == 800
    assert moved["broadcast", False][0] == 4 * 800
    pieces = moved["hybrid", False][1]
    assert pieces[0] > 1
    assert moved["hybrid", False][0] == (pieces * (own + other)).sum()
    assert moved["fragment", False][0] == (own + moved["fragment", False][1] * other).sum()
    assert moved["fragment", True][0] == (moved["fragment", True][1] * (own + other)).sum()
    assert [moved[name, False][2] for name in ("hybrid", "broadcast", "fragment")] == ["all", "all", "others"]
    assert moved["fragment", True][2] == "all"


def test_the_plain_hash_needs_no_placement() -> None:
    rows = skewed()
    plan = planned("hash", Exchange(exact_loads(rows, 2), Demand(), 4))
    assert plan.placement is None
    assert plan.moved == 800
    expected = Counter((row.key >> 32) * 4 >> 32 for row in rows)
    assert plan.work.tolist() == [expected[place] for place in range(4)]


def test_pooled_keys_are_spread_by_their_hashes() -> None:
    hashes = np.arange(0, 1 << 64, 1 << 50, dtype=np.uint64)
    loads = Loads.of([Sample(hashes, None, len(hashes))])
    assert len(loads.keys) == 0
    for name in ("hash", "key"):
        plan = planned(name, Exchange(loads, Demand(), 6))
        assert plan.work == pytest.approx(np.full(6, len(hashes) / 6), rel=2e-3)


def test_slots_without_a_sampled_row_are_dealt_out() -> None:
    plan = planned("key", Exchange(exact_loads(skewed(), 2), Demand(), 4))
    assert plan.placement is not None
    assert Counter(plan.placement.slots) == {(place,): 4 for place in range(4)}


def test_why_there_is_no_plan() -> None:
    loads = exact_loads(skewed(), 2)
    whole = "the whole key is one group"
    for name in ("broadcast", "hybrid", "dynamic", "fragment", "time_range"):
        assert PARTITIONERS[name](Exchange(loads, Demand(whole=whole), 4, PartitionerOptions(slots=16))) == Refused(
            whole
        )
    time_range = PARTITIONERS["time_range"]
    unbounded = Demand(unbounded="the frame is of ROWS")
    assert time_range(Exchange(loads, unbounded, 4)) == Refused("the frame is of ROWS")
    untimed = exact_loads(skewed(), 2, timed=False)
    found = time_range(Exchange(untimed, Demand((1, 1)), 4))
    assert found == Refused("the inputs have no column of times")


@pytest.mark.few
@pytest.mark.parametrize("name", PARTITIONERS)
@pytest.mark.parametrize("rows", [[[], []], [[(0, 5)], []], [[], [(0, 5)] * 3], [[(2, 1)] * 9, [(2, 1)] * 9]])
def test_few_rows_one_key_and_no_rows(name: str, rows: list[list[tuple[int, int]]]) -> None:
    every = rows_of(rows)
    demand = Demand((1, 1), pair_cost=1.0)
    plan = planned(name, Exchange(exact_loads(every, 2), demand, 3, PartitionerOptions(slots=16)))
    assert 1 <= plan.balance <= 3
    if plan.placement is not None:
        check(plan, demand, every, 3)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_an_input_of_which_nothing_was_sampled(name: str) -> None:
    empty = np.empty(0, np.uint64), np.empty(0, np.int64)
    loads = Loads.of([Sample(*empty, 800.0), Sample(*empty, 0.0)])
    plan = planned(name, Exchange(loads, Demand((1, 1), pair_cost=1.0), 8))
    assert plan.work == pytest.approx(np.full(8, plan.moved / 8))
    assert plan.moved == (6400 if name == "broadcast" else 800)


def test_a_key_without_owned_rows_is_not_split() -> None:
    rows = rows_of([[(1, i) for i in range(40)], [(0, i) for i in range(200)]])
    plan = planned("fragment", Exchange(exact_loads(rows, 2), Demand(), 4))
    assert [split.key for split in plan.splits if split.key == HASHES[0]] == []


def test_options_that_do_not_fit() -> None:
    loads = exact_loads(skewed(), 2)
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        Exchange(loads, Demand(), 0)
    with pytest.raises(ValueError, match="loads of 16 hash slots do not tell 1024 apart"):
        PARTITIONERS["dynamic"](Exchange(loads, Demand(), 4))
    with pytest.raises(ValueError, match="a reach of 1 back and -2 ahead holds nothing"):
        Demand((1, -2))
    with pytest.raises(ValueError, match="the ends of a reach are int64"):
        Demand((1 << 63, 0))
    with pytest.raises(ValueError, match="costs are not negative"):
        Demand(pair_cost=-1.0)
