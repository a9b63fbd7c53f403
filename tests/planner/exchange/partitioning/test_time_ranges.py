"""Cuts of a key's times: where they are, what they cannot cut, halos at the ends of int64. Needs no Spark."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS, KeyTimes
from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionerOptions, PartitionPlan

from tests.planner.exchange.partitioning.routed_rows import exact_loads, rows_of

ENDS = np.iinfo(np.int64)


def key_times(own: list[int], other: list[int], demand: Demand) -> KeyTimes:
    return KeyTimes((np.array(own, np.int64), np.array(other, np.int64)), (1.0, 1.0), demand)


def test_ranges_have_equal_work_and_a_halo() -> None:
    every = list(range(0, 1000, 10))
    ranges = key_times(every, every, Demand((20, 5))).cut(4)
    assert ranges.cuts == (250, 500, 750)
    # 25 owned rows each; 25 others, two before the range (230, 240) and one after it (250), as 255 is excluded
    assert ranges.rows.tolist() == [51, 53, 53, 52]
    assert ranges.work.tolist() == ranges.rows.tolist()


def test_both_ends_of_the_reach_are_closed() -> None:
    """A row at cut - back is needed by the row at the cut; the last row before it can need one at cut - 1 + ahead."""
    own = np.array([0, 1, 2, 3, 100, 101, 102, 103])
    for time, copies in ((92, 1), (93, 2), (103, 2), (104, 1)):
        other = np.array([time])
        ranges = KeyTimes((own, other), (1.0, 0.5), Demand((7, 4))).cut(2)
        assert ranges.cuts == (100,)
        assert ranges.rows.sum() == 8 + 0.5 * copies


def test_owned_rows_are_copied_where_the_reach_is_beside_their_own_time() -> None:
    """Rows of a window that ends 50 before its row are in their own range, and in those that show them."""
    own = list(range(0, 400, 10))
    ranges = key_times(own, [], Demand((60, -50), owned_copies=True)).cut(4)
    assert ranges.cuts == (100, 200, 300)
    # [40, 150) shows in [100, 200): 6 rows of before besides its own
    assert ranges.rows.tolist() == [10, 16, 16, 16]


def test_pairs_are_balanced_not_rows() -> None:
    """Half of the rows are crowded: they have nearly all pairs."""
    own = sorted([*range(0, 10_000, 100), *range(10_000, 10_100)])
    ranges = key_times(own, own, Demand((100, 0), pair_cost=1.0)).cut(2)
    assert ranges.cuts[0] > 10_050
    assert ranges.work.max() <= 1.1 * ranges.work.min()
    assert key_times(own, own, Demand((100, 0))).cut(2).cuts[0] <= 10_000


def test_a_time_that_holds_everything_cannot_be_cut() -> None:
    for own, other in (([7] * 50, [7] * 50), ([7], []), ([], [7] * 3)):
        assert key_times(own, other, Demand((0, 0))).cut(8).cuts == ()
    assert key_times([7] * 50 + [8], [], Demand((0, 0))).cut(8).cuts == (8,)


def test_the_plan_says_what_could_not_be_cut() -> None:
    rows = rows_of([[(0, 5)] * 90 + [(0, 6)] * 10, [(0, 5)] * 100])
    plan = PARTITIONERS["time_range"](Exchange(exact_loads(rows, 2), Demand((0, 0)), 4))
    assert isinstance(plan, PartitionPlan)
    assert [split.pieces for split in plan.splits] == [2]
    assert plan.balance == pytest.approx(3.8)
    (note,) = plan.notes
    assert note == "#1234000000000007 has 2 of 4 time ranges: a single time holds too much"


@pytest.mark.parametrize(
    ("reach", "rows"),
    [((1, 1), [5.0, 4.0]), ((ENDS.max, ENDS.max), [6.0, 4.0]), ((ENDS.min + 1, ENDS.max), [6.0, 2.0])],
)
def test_halos_at_the_ends_of_int64(reach: tuple[int, int], rows: list[float]) -> None:
    own = [int(ENDS.min), int(ENDS.min) + 1, int(ENDS.max) - 1, int(ENDS.max)]
    back, ahead = map(int, reach)
    ranges = key_times(own, own, Demand((back, ahead))).cut(2)
    assert ranges.cuts == (own[2],)
    assert ranges.rows.tolist() == rows
    needed = [sum(time < own[2] + ahead for time in own), sum(time >= own[2] - back for time in own)]
    assert rows == [2.0 + count for count in needed]


@given(
    times=st.lists(st.lists(st.integers(-30, 30), max_size=40), min_size=2, max_size=2),
    pieces=st.integers(1, 9),
    reach=st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_cuts_ascend_and_every_range_has_rows(times: list[list[int]], pieces: int, reach: tuple[int, int]) -> None:
    own, other = (sorted(part) for part in times)
    ranges = key_times(own, other, Demand(reach)).cut(pieces)
    assert len(ranges.cuts) < pieces
    assert list(ranges.cuts) == sorted(set(ranges.cuts))
    if own or other:
        bounds = [-99, *ranges.cuts, 99]
        for first, last in itertools.pairwise(bounds):
            assert any(first <= time < last for time in own + other)


@given(seed=st.integers(0, 1000), theta=st.sampled_from([1.2, 1.5]), partitions=st.integers(2, 8))
def test_the_plan_is_balanced_where_times_can_be_cut(seed: int, theta: float, partitions: int) -> None:
    random = np.random.default_rng(seed)
    keys = (random.random((2, 600)) ** 3 * 4).astype(int)
    times = random.integers(0, 100_000, (2, 600))
    rows = rows_of([list(zip(k.tolist(), t.tolist(), strict=True)) for k, t in zip(keys, times, strict=True)])
    exchange = Exchange(exact_loads(rows, 2), Demand((100, 100)), partitions, PartitionerOptions(theta=theta))
    plan = PARTITIONERS["time_range"](exchange)
    assert isinstance(plan, PartitionPlan)
    assert plan.balance <= theta + 1e-9
    assert plan.work.min() > 0


@given(seed=st.integers(0, 1000), partitions=st.integers(2, 8), reach=st.sampled_from([100, 20_000, 100_000]))
def test_finer_cuts_pay(seed: int, partitions: int, reach: int) -> None:
    """The largest and the average work together never get more than with theta alone."""
    random = np.random.default_rng(seed)
    keys = (random.random((2, 600)) ** 3 * 4).astype(int)
    times = random.integers(0, 100_000, (2, 600))
    rows = rows_of([list(zip(k.tolist(), t.tolist(), strict=True)) for k, t in zip(keys, times, strict=True)])
    plans = [
        PARTITIONERS["time_range"](
            Exchange(exact_loads(rows, 2), Demand((reach, 0)), partitions, PartitionerOptions(even=even))
        )
        for even in (1.2, 1.0)
    ]
    coarse, fine = (plan.work for plan in plans if isinstance(plan, PartitionPlan))
    assert fine.max() + fine.mean() <= coarse.max() + coarse.mean() + 1e-9


def test_a_key_with_most_rows_is_cut_until_partitions_are_even() -> None:
    rows = rows_of([[(key, time) for time in range(900) for key in (0, 0, 0, time % 3 + 1)]] * 2)
    exchange = Exchange(exact_loads(rows, 2), Demand((3, 3)), 8, PartitionerOptions())
    plan = PARTITIONERS["time_range"](exchange)
    assert isinstance(plan, PartitionPlan)
    assert plan.balance <= 1.05
    assert plan.moved < 1.05 * plan.rows
