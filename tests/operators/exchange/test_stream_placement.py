"""Where the rows of a stream go while keys move."""

from __future__ import annotations

import pyarrow as pa
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.stream_placement import Epoch, StreamPlacement, StreamRouter

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
