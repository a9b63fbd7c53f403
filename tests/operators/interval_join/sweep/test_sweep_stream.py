"""Streams of endpoints: however they are cut, the pairs are those of the whole; and each comes as early as it can."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.sweep.kernels.events import END, START
from sqlext_operators.interval_join.sweep.stream import StreamEvents, SweepStream

from tests.operators.interval_join.sweep import reference
from tests.operators.interval_join.sweep.sweep_data import CASES, intervals, name_of, pairs

#: (time, type, side, id)
Line = tuple[int, int, int, int]


def events(lines: list[Line], side: int) -> StreamEvents:
    """The lines of one side (0 left, 1 right)."""
    table = np.array([(time, code, key) for time, code, where, key in lines if where == side], np.int64).reshape(-1, 3)
    return StreamEvents(table[:, 0].copy(), table[:, 1].astype(np.uint8), table[:, 2].copy())


def lines_of(*sides: list[reference.Interval]) -> list[Line]:
    """The endpoints of both sides in the order of time."""
    lines = []
    for side, rows in enumerate(sides):
        for key, (start, end) in enumerate(rows):
            lines += [(start, START, side, key), (end, END, side, key)]
    return sorted(lines)


def advance(stream: SweepStream, *lines: Line, watermark: int | None = None) -> list[tuple[int, int]]:
    return pairs(stream.advance(events(list(lines), 0), events(list(lines), 1), watermark))


def rows(rng: np.random.Generator) -> list[reference.Interval]:
    starts, ends = intervals(rng, int(rng.integers(0, 10)))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_any_cut_gives_the_same_pairs(relation: str, values: dict[str, float]) -> None:
    rng = np.random.default_rng(len(relation) * 31 + len(name_of(values)))
    for _ in range(6):
        left, right = rows(rng), rows(rng)
        lines = lines_of(left, right)
        stream = SweepStream(relation, lazy=bool(rng.integers(2)), batch_rows=int(rng.integers(1, 5)), **values)
        found: list[tuple[int, int]] = []
        place = 0
        while place < len(lines):
            size = int(rng.integers(0, 7))
            found += advance(stream, *lines[place : place + size])
            place += size
        found += pairs(stream.finish())
        assert sorted(found) == reference.pairs_of(relation, left, right, **values)
        assert stream.dropped == tuple(sum(start >= end for start, end in side) for side in (left, right))
        assert (stream.open_tuples, stream.waiting_pairs) == ((0, 0), 0)


@given(
    cuts=st.lists(st.integers(-12, 20), max_size=8),
    seed=st.integers(0, 2**20),
    case=st.sampled_from(CASES),
)
def test_sides_may_run_ahead_of_the_watermark(cuts: list[int], seed: int, case: tuple[str, dict[str, float]]) -> None:
    relation, values = case
    rng = np.random.default_rng(seed)
    left, right = rows(rng), rows(rng)
    stream = SweepStream(relation, batch_rows=3, **values)
    found: list[tuple[int, int]] = []
    waiting = {side: [line for line in lines_of(left, right) if line[2] == side] for side in (0, 1)}
    for cut in sorted(cuts):
        given_now: list[Line] = []
        for side, lines in waiting.items():
            ahead = int(rng.integers(0, 5))
            count = sum(line[0] < cut + ahead for line in lines)
            given_now += lines[:count]
            waiting[side] = lines[count:]
        found += advance(stream, *given_now, watermark=cut)
    rest = [line for lines in waiting.values() for line in lines]
    watermark = max(cuts) if cuts else None
    found += advance(stream, *rest, watermark=watermark)
    found += pairs(stream.finish())
    assert sorted(found) == reference.pairs_of(relation, left, right, **values)


@pytest.mark.parametrize("relation", ["iseql_left_overlap", "iseql_end_following", "allen_equals", "period_overlaps"])
def test_a_saved_state_goes_on_where_it_was(relation: str) -> None:
    rng = np.random.default_rng(11)
    values = dict.fromkeys(RELATIONS[relation].parameters[-1:], 2.0)
    left, right = rows(rng) + rows(rng), rows(rng) + rows(rng)
    lines = lines_of(left, right)
    stream = SweepStream(relation, batch_rows=100_000, **values)
    found: list[tuple[int, int]] = []
    for line in lines:
        found += advance(stream, line)
        saved = pickle.dumps(stream)
        assert len(saved) < 60_000
        stream = pickle.loads(saved)
    found += pairs(stream.finish())
    assert sorted(found) == reference.pairs_of(relation, left, right, **values)


def test_start_preceding_needs_no_end() -> None:
    stream = SweepStream("iseql_start_preceding")
    assert advance(stream, (1, START, 0, 7)) == []
    assert advance(stream, (2, START, 1, 9), watermark=3) == [(7, 9)]
    assert stream.open_tuples == (1, 1)
    assert pairs(stream.finish()) == []


def test_a_pair_of_one_instant_waits_for_the_instant_to_pass() -> None:
    stream = SweepStream("iseql_start_preceding")
    assert advance(stream, (5, START, 1, 0)) == []
    assert advance(stream, (5, START, 0, 0)) == []
    assert advance(stream, watermark=6) == [(0, 0)]


@pytest.mark.parametrize(
    ("relation", "first"),
    [
        ("iseql_left_overlap", 0),
        ("iseql_reverse_during", 1),
        ("iseql_during", 0),
        ("allen_overlaps", 0),
        ("allen_contains", 1),
        ("period_contains", 1),
        ("allen_starts", 0),
        ("allen_started_by", 1),
    ],
)
def test_a_pair_comes_out_with_the_first_end_if_it_decides(relation: str, first: int) -> None:
    early = 1 if relation == "iseql_during" else 0
    stream = SweepStream(relation)
    together = relation in ("allen_starts", "allen_started_by")
    assert advance(stream, (0, START, early, 4), (1 - together, START, 1 - early, 4), watermark=2) == []
    assert advance(stream, (5, END, first, 4), watermark=6) == [(4, 4)]
    assert advance(stream, (8, END, 1 - first, 4), watermark=9) == []
    assert (stream.waiting_pairs, stream.open_tuples) == (0, (0, 0))


@pytest.mark.parametrize(
    ("relation", "values", "first", "expected"),
    [
        ("allen_equals", {}, 0, []),
        ("iseql_left_overlap", {"delta": 1, "epsilon": 3}, 0, [(4, 4)]),
        ("iseql_left_overlap", {"delta": 1, "epsilon": 2}, 0, []),
    ],
)
def test_a_pair_waits_for_both_ends_if_they_decide(
    relation: str, values: dict[str, float], first: int, expected: list[tuple[int, int]]
) -> None:
    stream = SweepStream(relation, **values)
    assert advance(stream, (0, START, 0, 4), (0, START, 1, 4), watermark=2) == []
    assert stream.waiting_pairs == 1
    assert advance(stream, (5, END, first, 4), watermark=6) == []
    assert advance(stream, (8, END, 1 - first, 4), watermark=9) == expected
    assert (stream.waiting_pairs, stream.open_tuples) == (0, (0, 0))


def test_epsilon_keeps_the_sweep_behind_the_stream() -> None:
    stream = SweepStream("iseql_end_following", epsilon=3)
    assert advance(stream, (0, START, 0, 1), (2, START, 1, 1), (4, END, 1, 1), watermark=5) == []
    assert advance(stream, (6, END, 0, 1), watermark=7) == []
    assert advance(stream, watermark=8) == [(1, 1)]


def test_memory_depends_on_what_is_open() -> None:
    """10,000 short intervals, of which a few are open at a time."""
    stream = SweepStream("iseql_left_overlap", delta=4, epsilon=3)
    found = 0
    waiting: list[Line] = []
    for start in range(0, 10_000, 100):
        for k in range(start, start + 100):
            waiting += [(k, START, 0, k), (k + 6, END, 0, k), (k + 1, START, 1, k), (k + 7, END, 1, k)]
        waiting.sort()
        found += len(advance(stream, *(line for line in waiting if line[0] < start + 100), watermark=start + 100))
        waiting = [line for line in waiting if line[0] >= start + 100]
        assert stream.active_tuples <= 12
        assert stream.waiting_pairs <= 40
        assert max(stream.open_tuples) <= 12
    assert found > 30_000


@pytest.mark.parametrize(("relation", "expected"), [("allen_starts", [(0, 0)]), ("allen_equals", [])])
def test_what_compares_the_end_of_an_open_tuple_does_not_come_out(
    relation: str, expected: list[tuple[int, int]]
) -> None:
    stream = SweepStream(relation)
    assert advance(stream, (0, START, 0, 0), (0, START, 1, 0), (2, END, 0, 0)) == []
    assert pairs(stream.finish()) == expected
    assert sum(stream.open_tuples) == 1


def test_empty_and_reversed_intervals_are_counted() -> None:
    stream = SweepStream("period_overlaps")
    left = [(5, 5), (7, 3), (0, 9), (LEAST, LEAST), (GREATEST, LEAST)]
    found = advance(stream, *lines_of(left, [(1, 8)]))
    found += pairs(stream.finish())
    assert found == [(2, 0)]
    assert stream.dropped == (4, 0)


def test_nothing_at_all() -> None:
    stream = SweepStream("period_overlaps")
    assert pairs(stream.advance()) == []
    assert advance(stream) == []
    assert pairs(stream.finish()) == []


def test_events_out_of_order_are_refused() -> None:
    refused: list[tuple[list[Line], str]] = [
        ([(5, START, 0, 0), (4, END, 0, 0)], "not in the order of time"),
        ([(5, START, 0, 0), (5, END, 0, 1)], "ends before starts"),
        ([(5, 3, 0, 0)], "a start .* or an end"),
        ([(2, START, 1, 0)], "right side at 2 is before the watermark 3"),
        ([(5, START, 0, 0), (6, START, 0, 0)], "tuple 0 of the left side starts twice"),
    ]
    for lines, message in refused:
        stream = SweepStream("period_overlaps")
        list(stream.advance(watermark=3))
        with pytest.raises(ValueError, match=message):
            stream.advance(events(lines, 0), events(lines, 1), 10)
    stream = SweepStream("period_overlaps")
    list(stream.advance(watermark=3))
    with pytest.raises(ValueError, match="went back from 3 to 2"):
        stream.advance(watermark=2)
    with pytest.raises(RuntimeError, match="have not been taken"):
        stream.advance(watermark=4)
    with pytest.raises(ValueError, match="one length"):
        SweepStream("period_overlaps").advance(
            StreamEvents(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.zeros(2, np.int64))
        )


def test_nothing_follows_the_end() -> None:
    stream = SweepStream("period_overlaps")
    assert pairs(stream.finish()) == []
    with pytest.raises(RuntimeError, match="have ended"):
        stream.advance()


def test_pairs_that_are_not_taken_are_noticed() -> None:
    stream = SweepStream("period_overlaps", batch_rows=1)
    lines = lines_of([(0, 9), (1, 9)], [(2, 9), (3, 9)])
    next(stream.advance(events(lines, 0), events(lines, 1)))
    with pytest.raises(RuntimeError, match="have not been taken"):
        stream.finish()
