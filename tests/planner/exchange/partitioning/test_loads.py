"""Loads of samples against plain counts, and what the pairs of keys are estimated from. Needs no Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.loads import Loads, Sample, Units

from tests.planner.exchange.partitioning.routed_rows import HASHES, exact_loads, inputs, needed_by, rows_of


@given(rows=inputs(), least_share=st.sampled_from([0.0, 0.3, 2.0]), factor=st.integers(1, 3))
def test_every_row_is_counted_once(rows: list[list[tuple[int, int]]], least_share: float, factor: int) -> None:
    samples = [
        Sample(
            np.array([HASHES[key] for key, _ in own], np.uint64),
            np.array([t for _, t in own], np.int64),
            factor * len(own),
        )
        for own in rows
    ]
    loads = Loads.of(samples, least_share=least_share, slots=16)
    for place, own in enumerate(rows):
        counts = Counter(HASHES[key] for key, _ in own)
        known = dict(zip(loads.keys.tolist(), loads.key_rows[:, place].tolist(), strict=True))
        assert {key: rows for key, rows in known.items() if rows} == {
            key: factor * count for key, count in counts.items() if key in known
        }
        slots = Counter[int]()
        for key, count in counts.items():
            slots[key >> 60] += 0 if key in known else factor * count
        assert loads.slot_rows[:, place].tolist() == [slots[slot] for slot in range(16)]
        for number, key in enumerate(loads.keys.tolist()):
            times = sorted(t for k, t in own if HASHES[k] == key)
            assert loads.times_of(number)[place].tolist() == times
        if own and least_share <= 1:
            assert {key for key, count in counts.items() if count >= least_share * len(own)} <= set(known)


@given(rows=inputs(number=3), reach=st.tuples(st.integers(0, 5), st.integers(0, 5)))
def test_pairs_of_known_keys_are_counted(rows: list[list[tuple[int, int]]], reach: tuple[int, int]) -> None:
    every = rows_of(rows)
    demand = Demand(reach, pair_cost=1.0)
    units = Units.of(exact_loads(every, 3), demand)
    expected = Counter[int]()
    for owner in (row for row in every if row.input == 0):
        found = Counter(row.input for row in every if needed_by(demand, owner, row))
        expected[owner.key] += found[1] * found[2]
    assert units.pairs.tolist() == [expected[key] for key in units.keys.tolist()] + [0] * 16
    unbounded = Units.of(exact_loads(every, 3), Demand(pair_cost=1.0))
    assert unbounded.pairs[: len(units.keys)].tolist() == np.prod(exact_loads(every, 3).key_rows, axis=1).tolist()


def test_pairs_of_pooled_keys_are_estimated() -> None:
    random = np.random.default_rng(3)
    samples = [
        Sample(
            random.integers(0, 1 << 12, 20_000).astype(np.uint64) << np.uint64(52),
            np.sort(random.integers(0, 10_000, 20_000)),
            20_000,
        )
        for _ in range(2)
    ]
    demand = Demand((500, 500), pair_cost=1.0)
    pooled = Units.of(Loads.of(samples, least_share=2), demand)
    known = Units.of(Loads.of(samples, least_share=0), demand)
    assert len(pooled.keys) == 0
    assert len(known.keys) > 4_000
    assert pooled.pairs.sum() == pytest.approx(known.pairs.sum(), rel=0.05)
    assert (pooled.pairs[pooled.rows > 0] > 0).all()


def test_frequent_keys_are_known_alone() -> None:
    hashes = np.concatenate([np.full(40, 5), np.arange(100, 40_060)]).astype(np.uint64)
    loads = Loads.of([Sample(hashes, None, 4e6)], names={5: "eu"})
    assert loads.keys.tolist() == [5]
    assert loads.key_rows.tolist() == [[4_000.0]]
    assert loads.rows == 4e6
    assert loads.name(5) == "eu"
    assert loads.name(17) == "#0000000000000011"


def test_folded_slots_have_the_same_rows() -> None:
    rows = rows_of([[(key, time) for key in range(4) for time in range(key + 2)]] * 2)
    units = Units.of(exact_loads(rows, 2), Demand((1, 1), pair_cost=1.0))
    only_slots = units.folded(4, known=False)
    assert len(only_slots.keys) == 0
    assert only_slots.owned.tolist() == [2 + 3, 4, 0, 5]
    assert only_slots.pairs.sum() == units.pairs.sum()
    assert units.folded(1).rows.tolist() == [*units.rows[:4].tolist(), 0.0]


def test_samples_that_do_not_fit() -> None:
    hashes, times = np.zeros(3, np.uint64), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="a sample of 3 keys has 2 times"):
        Sample(hashes, times[:2], 3)
    with pytest.raises(ValueError, match="an input of 2 rows has 3 sampled rows"):
        Sample(hashes, times, 2)
    with pytest.raises(ValueError, match="at least one input"):
        Loads.of([])
    with pytest.raises(ValueError, match="all inputs have times or none has"):
        Loads.of([Sample(hashes, times, 3), Sample(hashes, None, 3)])
    with pytest.raises(ValueError, match="a power of two, not 10"):
        Loads.of([Sample(hashes, times, 3)], slots=10)
