"""Keys of a running stream get other places when they become hot, and go back when they cool down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.stream_placement import ALWAYS, BucketReport, CountedKey, Epoch, StreamPlacement
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.replanner import Replanned, Replanner

BACK, AHEAD = 100, 7
HOT = 0xFFFF_0000_0000_0001  # at home in the last bucket
PIDS = (3, 1, 5, 9)


def spec_of(partitioner: str, **more: bool) -> Replanned:
    return Replanned(partitioner, Demand(**more), PIDS)


def report(pid: int, placement: int, time: int, rows: tuple[int, ...], keys: Sequence[CountedKey] = ()) -> BucketReport:
    """What a bucket says whose newest row has a time: the watermark is 10 behind, the row lasts for BACK or AHEAD."""
    return BucketReport(pid, placement, time - 10, time + AHEAD + 1, time + BACK + 1, rows, tuple(keys))


def micro_batch(where: StreamPlacement, time: int, hot: int) -> list[BucketReport]:
    """4,000 rows of other keys, evenly over the hash slots, and `hot` rows of a key, as the newest placement says."""
    placement = where.epochs[-1].placement
    rows = [0.0] * len(PIDS)
    for team in placement.slots:
        for number in team:
            rows[number] += 2_000 / len(placement.slots) / len(team)
    found = []
    for number, pid in enumerate(PIDS):
        share = hot // 2 // len(team_of(where)) if number in team_of(where) else 0
        keys = [CountedKey(HOT, "hot", (share, share))] if share else []
        found.append(report(pid, where.number, time, (int(rows[number]) + share, int(rows[number]) + share), keys))
    return found


def team_of(where: StreamPlacement) -> tuple[int, ...]:
    placement = where.epochs[-1].placement
    return next((place.team for place in placement.keys if place.key == HOT), placement.slots[-1])


def run(replanner: Replanner, start: int, batches: int, hot: int) -> list[StreamPlacement]:
    """The changes in micro-batches that are 50 apart."""
    found = []
    for n in range(batches):
        where = replanner.observe(micro_batch(replanner.where, start + 50 * n, hot))
        if where is not None:
            found.append(where)
    return found


def test_uniform_keys_keep_their_places() -> None:
    assert run(Replanner(spec_of("fragment")), 0, 20, 0) == []


@pytest.mark.parametrize("partitioner", ["fragment", "hybrid", "dynamic"])
def test_a_hot_key_is_spread_and_brought_back_when_it_cools_down(partitioner: str) -> None:
    replanner = Replanner(spec_of(partitioner))
    changes = run(replanner, 0, 12, 6_000)
    assert [change.number for change in changes] == [1, 2, 3]
    announced, begun, done = changes
    assert [epoch.since for epoch in announced.epochs] == [ALWAYS, None]
    assert begun.epochs[1].since is not None
    assert [epoch.since for epoch in done.epochs] == [ALWAYS]
    assert len(team_of(replanner.where)) > 1
    run(replanner, 600, 60, 4)
    assert len(replanner.where.epochs) == 1
    assert len(team_of(replanner.where)) == 1


def test_a_placement_begins_after_all_that_was_seen_and_ends_after_all_it_owned() -> None:
    replanner = Replanner(spec_of("fragment"))
    announced = run(replanner, 0, 2, 6_000)
    assert [change.number for change in announced] == [1]
    # micro-batches that began before the announcement may still come, and have later times
    assert replanner.observe([report(pid, 0, 80, (10, 10)) for pid in PIDS]) is None
    assert replanner.observe([report(PIDS[0], 1, 70, (10, 10))]) is not None
    assert replanner.where.epochs[1].since == 80 + BACK + 1
    since = 80 + BACK + 1
    # one bucket still has an older watermark, and takes a row that the older placement owns and that lasts for long
    replanner.observe([report(pid, 2, since + (0 if pid == PIDS[0] else 90), (10, 10)) for pid in PIDS])
    replanner.observe([report(PIDS[0], 2, since + 9, (10, 10))])
    end = since + 500
    replanner.observe([BucketReport(PIDS[0], 2, since, end, None, (1, 0), ())])
    for first, others in ((since, end), (end - 1, end), (end, end - 1), (end, end)):
        assert len(replanner.where.epochs) == 2
        marks = {pid: first if pid == PIDS[0] else others for pid in PIDS}
        replanner.observe([BucketReport(pid, 2, mark, None, None, (0, 0), ()) for pid, mark in marks.items()])
    assert [epoch.since for epoch in replanner.where.epochs] == [ALWAYS]


def test_rows_that_are_gone_were_done_with_by_the_watermark() -> None:
    replanner = Replanner(spec_of("fragment"))
    run(replanner, 0, 2, 6_000)
    replanner.observe([BucketReport(pid, 1, 500, None, None if pid else 300, (0, 0), ()) for pid in PIDS])
    assert replanner.where.epochs[1].since == 500


def test_a_query_that_starts_again_goes_on_with_its_change() -> None:
    first = Replanner(spec_of("fragment"))
    run(first, 0, 3, 6_000)
    again = Replanner(spec_of("fragment"), StreamPlacement.of_text(first.where.to_text()))
    assert again.where == first.where
    # as long as a bucket has not told what it has, nothing changes
    assert again.observe([report(pid, 2, 5_000, (10, 10)) for pid in PIDS[:3]]) is None
    assert again.observe([report(pid, 2, 9_000, (10, 10)) for pid in PIDS]) is None
    assert again.observe([report(pid, 2, 9_000 + AHEAD + 10, (10, 10)) for pid in PIDS]) is None
    assert again.observe([report(pid, 2, 9_000 + AHEAD + 11, (10, 10)) for pid in PIDS]) is not None


def test_broadcast_places_stay() -> None:
    spec = Replanned("broadcast", Demand(), PIDS, changes=False)
    replanner = Replanner(spec)
    assert replanner.where.epochs[0].placement.slots == ((0, 1, 2, 3),)
    assert run(replanner, 0, 10, 6_000) == []


def test_placements_of_streams_are_checked() -> None:
    placement = Placement(2, ((0,), (1,)))
    with pytest.raises(ValueError, match="the first placement owns all rows"):
        StreamPlacement(0, (Epoch(placement, 5),))
    with pytest.raises(ValueError, match="only the last placement"):
        StreamPlacement(0, (Epoch(placement), Epoch(placement, None), Epoch(placement, 3)))
    with pytest.raises(ValueError, match="over the same partitions"):
        StreamPlacement(0, (Epoch(placement), Epoch(Placement(3, ((0,), (1,))), None)))
    with pytest.raises(ValueError, match="no placement of a stream"):
        StreamPlacement.of_text("{}")
    assert np.uint64(HOT) >> np.uint64(62) == 3
