"""Moved rows on PPOIJ's streams: the closed formulas, and the figures of an independent program. Needs no Spark."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.keys import hash_keys
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.loads import Loads, Sample
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionerOptions, PartitionPlan

from benchmarks.skew.data import SelfSimilarStreams

ROWS, PARTITIONS = 200_000, 8

PLANS = ("broadcast", "hybrid", "fragment", "time_range")
#: Keys, skew, half of the interval in ms; then moved rows by plan. Prototype of the notes on joins, section 2.4; its
#: streams follow the same laws by other seeds.
FIGURES = [
    (1, 0.50, 10_000, (3_200_000, 3_200_000, 1_800_000, 400_524)),
    (5, 0.35, 10_000, (3_200_000, 1_624_752, 1_012_208, 400_254)),
    (50, 0.35, 10_000, (3_200_000, 481_051, 440_771, 400_013)),
    (50, 0.20, 30_000, (3_200_000, 1_098_460, 749_134, 400_418)),
    (1000, 0.20, 30_000, (3_200_000, 706_514, 553_324, 400_171)),
]


@cache
def stream(keys: int, skew: float, number: int) -> tuple[Int64s, Int64s]:
    """Keys and times (ms) of a stream."""
    table = SelfSimilarStreams(ROWS, keys, skew).table(number)
    return table["k"].to_numpy(), table["ts"].cast(pa.int64()).to_numpy() // 1_000


def plan_of(keys: int, skew: float, half: int, name: str) -> PartitionPlan:
    """The plan from exact statistics of both streams."""
    streams = [stream(keys, skew, number) for number in (0, 1)]
    samples = [Sample(hash_keys([pa.array(k)]), times, ROWS) for k, times in streams]
    exchange = Exchange(
        Loads.of(samples, least_share=0),
        Demand((half, half)),
        PARTITIONS,
        PartitionerOptions(even=1.2),
    )
    plan = PARTITIONERS[name](exchange)
    assert isinstance(plan, PartitionPlan)
    return plan


def halo_rows(plan: PartitionPlan, keys: int, skew: float, half: int) -> int:
    """The rows of stream 1 with cut - half <= time < cut + half, over all cuts."""
    (k, times), found = stream(keys, skew, 1), 0
    names = dict(zip(hash_keys([pa.array(np.arange(1, keys + 1))]).tolist(), range(1, keys + 1), strict=True))
    assert plan.placement is not None
    for place in plan.placement.keys:
        own = times[k == names[place.key]]
        found += sum(int(((cut - half <= own) & (own < cut + half)).sum()) for cut in place.cuts or ())
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize(("keys", "skew", "half", "figures"), FIGURES)
def test_moved_rows(keys: int, skew: float, half: int, figures: tuple[int, ...]) -> None:
    """Within 1 % of the figures. Of time ranges the copies: within a tenth, four standard deviations of their number,
    and a row for each cut, because our cuts may be at a row of either stream, which is then copied itself."""
    counts = [np.bincount(stream(keys, skew, number)[0], minlength=keys + 1)[1:] for number in (0, 1)]
    hashes = hash_keys([pa.array(np.arange(1, keys + 1))]).tolist()
    for name, figure in zip(PLANS, figures, strict=True):
        plan = plan_of(keys, skew, half, name)
        pieces = {split.key: split.pieces for split in plan.splits}
        splits = np.array([pieces.get(key, 1) for key in hashes])
        if name == "time_range":
            copied = plan.moved - 2 * ROWS
            assert copied == halo_rows(plan, keys, skew, half)
            expected = figure - 2 * ROWS
            noise = 0.1 * expected + 4 * expected**0.5 + (splits - 1).sum()
            assert copied == pytest.approx(expected, abs=noise)
            continue
        own, other = counts
        assert plan.moved == ((own if name == "fragment" else splits * own) + splits * other).sum()
        assert plan.moved == pytest.approx(figure, rel=0.01)


def test_time_ranges_are_balanced_on_the_streams() -> None:
    for keys, skew, half, _ in FIGURES:
        assert plan_of(keys, skew, half, "time_range").balance <= 1.2


def test_a_sample_tells_what_all_rows_do() -> None:
    """A tenth of the rows: the moved rows of the plan are those that its cuts make on all rows, and the ranges of the
    first key, with 58 % of the rows, have about equally many of them."""
    keys, skew, half = 50, 0.2, 30_000
    streams = [stream(keys, skew, number) for number in (0, 1)]
    samples = [Sample(hash_keys([pa.array(k[::10])]), times[::10], ROWS) for k, times in streams]
    plan = PARTITIONERS["time_range"](Exchange(Loads.of(samples), Demand((half, half)), PARTITIONS))
    assert isinstance(plan, PartitionPlan)
    assert plan.moved - 2 * ROWS == pytest.approx(halo_rows(plan, keys, skew, half), rel=0.2)
    assert plan.placement is not None
    (place,) = [place for place in plan.placement.keys if place.cuts]
    own = np.concatenate([times[k == 1] for k, times in streams])
    counts = np.bincount(np.searchsorted(np.array(place.cuts), own, side="right"))
    assert len(counts) == plan.splits[0].pieces == len(place.team)
    assert counts.max() <= 1.03 * counts.mean()


def test_keys_follow_the_closed_form() -> None:
    assert SelfSimilarStreams(1, 50, 0.35).shares()[0] == pytest.approx(0.201, abs=5e-4)
    assert SelfSimilarStreams(1, 50, 0.20).shares()[0] == pytest.approx(0.58, abs=2e-3)
    assert SelfSimilarStreams(1, 5, 0.5).shares() == pytest.approx(np.full(5, 0.2))
    streams = SelfSimilarStreams(ROWS, 50, 0.2)
    keys, times = stream(50, 0.2, 0)
    found = np.bincount(keys, minlength=51)[1:] / ROWS
    assert found == pytest.approx(streams.shares(), abs=0.005)
    gaps = np.diff(times)
    assert (gaps.min(), gaps.max()) == (1, 500)
    assert gaps.mean() == pytest.approx(251.5, rel=0.01)
    assert not np.array_equal(times, stream(50, 0.2, 1)[1])


def test_streams_that_cannot_be() -> None:
    for rows, keys, skew in ((0, 1, 0.5), (1, 0, 0.5), (1, 1, 0.0), (1, 1, 0.6)):
        with pytest.raises(ValueError, match="at least one row and key"):
            SelfSimilarStreams(rows, keys, skew)
