"""Where the rows of a stream go while keys move."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.scatter import KeyRouter, MatchRouter, ScatterSpec
from sqlext_operators.exchange.stream_placement import (
    LEAST_SHARE,
    MOST_COUNTED,
    CountedInputs,
    Epoch,
    PlacedScatter,
    StreamPlacement,
    StreamRouter,
)

#: All keys in buckets 0 and 1; those of times from 10 on in 1 and 2.
MOVING = StreamPlacement(1, (Epoch(Placement(4, ((0, 1),))), Epoch(Placement(4, ((1, 2),)), 10)))


def routed(router: StreamRouter, keys: list[int | None], times: list[int]) -> dict[int, list[tuple[int, bool | None]]]:
    """The buckets that each row goes to, and whether it is a copy there."""
    batch = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "t": pa.array(times, pa.int64())})
    routes = router.route(batch, 4)
    marks = [None] * len(routes.pids) if routes.added is None else routes.added(0)[COPY].to_pylist()
    rows = range(len(routes.pids)) if routes.rows is None else routes.rows.tolist()
    found: dict[int, list[tuple[int, bool | None]]] = {row: [] for row in range(len(keys))}
    for row, pid, mark in zip(rows, routes.pids.tolist(), marks, strict=True):
        found[row].append((pid, mark))
    return found


def test_copied_rows_go_to_both_teams_and_are_at_home_in_one_bucket() -> None:
    found = routed(StreamRouter(("k",), "t", MOVING, copied=True), [1, 2, None], [9, 10, 9])
    for row, team in ((0, (0, 1)), (1, (1, 2)), (2, (0, 1))):
        assert [pid for pid, _ in found[row]] == [0, 1, 2]
        (home,) = [pid for pid, is_copy in found[row] if not is_copy]
        assert home in team


def test_owned_rows_go_to_the_team_of_their_time() -> None:
    found = routed(StreamRouter(("k",), "t", MOVING, copied=False), list(range(40)), [9, 10] * 20)
    assert {pid for row in range(0, 40, 2) for pid, _ in found[row]} == {0, 1}
    assert {pid for row in range(1, 40, 2) for pid, _ in found[row]} == {1, 2}
    assert all(mark is None for routes in found.values() for _, mark in routes)


def test_rows_whose_key_matches_nothing_are_not_copied() -> None:
    found = routed(StreamRouter(("k",), "t", MOVING, copied=True, null_safe=(False,)), [None, 1], [9, 9])
    assert [is_copy for _, is_copy in found[0]] == [False]
    assert len(found[1]) == 3
    found = routed(StreamRouter(("k",), "t", MOVING, copied=True, null_safe=(True,)), [None], [9])
    assert len(found[0]) == 3


def test_rows_of_a_table_have_no_time() -> None:
    found = routed(StreamRouter(("k",), None, StreamPlacement.first(Placement(4, ((2,),))), copied=True), [1], [0])
    assert found[0] == [(2, False)]


@pytest.mark.parametrize("buckets", [1, 3, 4, 6, 200])
def test_slots_that_are_a_multiple_of_the_buckets_are_where_hashes_bring_keys(buckets: int) -> None:
    batch = pa.record_batch({"k": pa.array(np.arange(5_000)), "t": pa.array(np.arange(5_000))})
    placement = Placement(buckets, tuple((slot // 8,) for slot in range(8 * buckets)))
    placed = StreamRouter(("k",), "t", StreamPlacement.first(placement), copied=False).route(batch, buckets)
    assert placed.pids.tolist() == KeyRouter(("k",)).route(batch, buckets).pids.tolist()


@pytest.mark.parametrize("copied", [True, False])
def test_rows_that_go_nowhere_by_hash_go_nowhere_by_places(copied: bool) -> None:
    router = StreamRouter(("k",), "t", MOVING, copied, (False,), drops=True)
    batch = pa.record_batch({"k": pa.array([None, 1, None, 2]), "t": pa.array([9, 9, 11, 11])})
    for one in (router, MatchRouter(("k",), (False,), keep=False)):
        rows = one.route(batch, 4).rows
        assert rows is not None
        assert set(rows.tolist()) == {1, 3}


def test_rows_go_by_their_hash_until_a_text_says_otherwise() -> None:
    spec = ScatterSpec(0, ("k", "t"), KeyRouter(("k",)), 4, pids=(3, 1, 5, 9))
    scatter = PlacedScatter(spec, StreamRouter(("k",), "t", StreamPlacement.first(Placement(4, ((0,),))), copied=True))
    batch = pa.record_batch({"k": pa.array(range(40)), "t": pa.array(range(40))})
    for text, number, marked in ((None, None, False), (MOVING.to_text(), 1, True)):
        blocks = [block for wire in scatter.scatter(text, 0, [batch]) for block in decode(wire)]
        assert {block.placed for block in blocks} == {number}
        assert {COPY in block.batch.schema.names for block in blocks if block.batch.num_rows} == {marked}
        assert sum(block.batch.num_rows for block in blocks) == (40 if text is None else 120)


def test_keys_of_many_rows_are_counted_in_a_sample() -> None:
    rng = np.random.default_rng(1)
    count = 20 * MOST_COUNTED
    # keys in turn, which a sample of every n-th row would not see
    keys = np.where(np.arange(count) % 20 == 0, 7, rng.integers(100, 100_000, count))
    blocks = [
        Block(0, tag, 0, pa.record_batch({"k": pa.array(part)})) for tag, part in enumerate(np.split(keys, [9_999]))
    ]
    counted = CountedInputs((("k",), ("k",)), owned=1)
    rows, (key,) = counted.of(blocks)
    assert rows == (count - 9_999, 9_999)
    assert key.name == "7"
    assert sum(key.rows) == pytest.approx(count / 20, rel=0.15)
    assert sum(key.rows) / count > LEAST_SHARE
    assert counted.of(blocks) == (rows, (key,))
