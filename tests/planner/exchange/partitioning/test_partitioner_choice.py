"""Which partitioner is chosen, and what EXPLAIN says of all of them. Needs no Spark."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sqlext_planner.exchange.partitioning.choice import (
    SHIP_SECONDS,
    WORK_SECONDS,
    Demand,
    PartitioningChoice,
    choose,
    critical_seconds,
)
from sqlext_planner.exchange.partitioning.loads import Loads, Sample
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import PartitionPlan


def loads_of(share: float, rows: float = 1e7, timed: bool = True) -> Loads:
    """Two inputs in which one key has `share` of the rows, the others are as good as unique."""
    samples = []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        hashes = random.integers(0, 1 << 63, 20_000).astype(np.uint64) << np.uint64(1)
        hashes[random.random(20_000) < share] = 77
        times = random.integers(0, 1_000_000, 20_000) if timed else None
        samples.append(Sample(hashes, times, rows))
    return Loads.of(samples, names={77: "hot"})


def lines_of(choice: PartitioningChoice) -> list[str]:
    """One line for each candidate; the chosen one is marked."""
    return [f"{'* ' if item.plan is choice.plan else '  '}{item.name}: {item.line()}" for item in choice.candidates]


def test_keys_without_skew_keep_the_plain_hash() -> None:
    choice = choose(loads_of(0.0), Demand((1_000, 0)), 16, 4)
    assert choice.name == "hash"
    assert choice.plan.placement is None


def test_a_hot_key_is_cut_into_time_ranges() -> None:
    choice = choose(loads_of(0.6), Demand((1_000, 0)), 16, 4)
    assert choice.name == "time_range"
    assert choice.plan.moved == pytest.approx(2e7, rel=0.01)
    assert choice.plan.balance <= 1.2


def test_the_owned_rows_of_a_hot_key_are_split_without_a_bound_in_time() -> None:
    demand = Demand(unbounded="the window has no first bound in time", pair_cost=1e-3)
    choice = choose(loads_of(0.6), demand, 16, 4)
    assert choice.name in ("fragment", "dynamic")
    assert choice.plan.copies == "others"
    assert "  time_range: the window has no first bound in time" in lines_of(choice)


def test_a_key_that_must_stay_together_stays() -> None:
    choice = choose(loads_of(0.6), Demand((1_000, 0), whole="rows of a key are counted"), 16, 4)
    assert choice.name == "hash"
    refused = [item.name for item in choice.candidates if item.reason]
    assert refused == ["time_range", "fragment", "dynamic", "hybrid", "broadcast"]


def test_one_core_gains_nothing() -> None:
    assert choose(loads_of(0.6), Demand((1_000, 0)), 16, 1).name == "hash"
    assert choose(loads_of(0.6), Demand((1_000, 0)), 1, 8).name == "hash"


def test_lines_of_explain() -> None:
    lines = lines_of(choose(loads_of(0.6), Demand((1_000, 0)), 16, 4))
    assert [re.split(r"\W+", line)[1] for line in lines] == list(PARTITIONERS)
    assert [line for line in lines if line.startswith("* ")] == [lines[2]]
    assert re.fullmatch(
        r"\* time_range: moves 20\d{6} of 20000000 rows, max/avg work 1\.\d\d, [\d.]+ s; split: hot x\d+", lines[2]
    )
    assert re.fullmatch(r"  hash: moves 20000000 of 20000000 rows, max/avg work \d+\.\d\d, [\d.]+ s", lines[0])


def test_seconds_are_those_of_the_busiest_core() -> None:
    plan = PartitionPlan(None, "others", 100.0, 100.0, (), np.array([5.0, 4.0, 3.0, 3.0, 3.0]))
    assert critical_seconds(plan, 2) == pytest.approx(50 * SHIP_SECONDS + 10 * WORK_SECONDS)
    assert critical_seconds(plan, 8) == pytest.approx(12.5 * SHIP_SECONDS + 5 * WORK_SECONDS)


def test_cores_are_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least one core, not 0"):
        choose(loads_of(0.0), Demand(), 4, 0)
