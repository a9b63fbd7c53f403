"""The replay: what is known when, what is learned when; cuts of windows against plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.replay import Replayed, ReplaySpec, Stream, WindowBounds, cut_windows, replay, window_starts
from sqlext_operators.early.windows import EstimatedAggregate

from tests.operators.early.reference import join_aggregate

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-30, 60), st.integers(0, 25)), max_size=25)
LENGTH, LATENESS = 10, 25


def stream(rows: list[tuple[int, int, int]]) -> Stream:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Stream(table[:, 0].copy(), np.arange(len(rows), dtype=np.float64), table[:, 1], table[:, 1] + table[:, 2])


@given(ROWS, ROWS, st.integers(1, LENGTH + LATENESS), st.booleans())
def test_windows_hold_the_rows_of_their_time(
    left: list[tuple[int, int, int]], right: list[tuple[int, int, int]], emit_after: int, closed: bool
) -> None:
    bounds = WindowBounds(LENGTH, closed)
    starts = window_starts(stream(left), stream(right), bounds)
    events = [event for _, event, _ in left + right]
    expected = {event // LENGTH * LENGTH for event in events}
    expected |= {event - LENGTH for event in events if closed and event % LENGTH == 0}
    assert starts == sorted(expected)
    cut = cut_windows(Replayed(stream(left)), Replayed(stream(right)), starts, bounds, emit_after, follow=True)
    for window in cut:
        now = window.start + emit_after
        # the row that ends the wait: of those that arrive together the right one, then the first of the file
        later = [
            (event + delay, side, place)
            for side, rows in enumerate((right, left))
            for place, (_, event, delay) in enumerate(rows)
            if event + delay >= now
        ]
        trip = min(later, default=None) if closed else None

        def inside(event: int, start: int = window.start) -> bool:
            return start <= event < start + LENGTH + closed

        def known(
            side: int, place: int, event: int, delay: int, now: int = now, trip: tuple[int, int, int] | None = trip
        ) -> bool:
            return inside(event) and (event + delay < now or trip == (event + delay, side, place))

        final = join_aggregate(
            [(key, float(place)) for place, (key, event, _) in enumerate(left) if inside(event)],
            [key for key, event, _ in right if inside(event)],
            EstimatedAggregate.SUM,
        )
        early = join_aggregate(
            [(key, float(place)) for place, (key, event, delay) in enumerate(left) if known(1, place, event, delay)],
            [key for place, (key, event, delay) in enumerate(right) if known(0, place, event, delay)],
            EstimatedAggregate.SUM,
        )
        assert window.final.pair_sum == final
        assert window.early.totals.pair_sum == early
        rows = window.early.arrivals
        assert rows is not None
        assert len(rows.keys) == window.early.totals.left + window.early.totals.right
        assert (np.diff(rows.arrivals) >= 0).all()
        assert (rows.lags >= 0).all()


@given(ROWS, ROWS, st.integers(1, LENGTH + LATENESS), st.integers(0, 2))
def test_only_final_windows_are_learned_from(
    left: list[tuple[int, int, int]], right: list[tuple[int, int, int]], emit_after: int, warm_up: int
) -> None:
    bounds = WindowBounds(LENGTH)
    sides = Replayed(stream(left)), Replayed(stream(right))
    starts = window_starts(stream(left), stream(right), bounds)
    spec = ReplaySpec(bounds, emit_after, LATENESS, estimators=("shrink", "ksj"), warm_up=warm_up)
    found = list(replay(*sides, starts, spec))
    assert [answers.start for answers in found] == starts[warm_up:]
    windows = {window.start: window for window in cut_windows(*sides, starts, bounds, emit_after, follow=True)}
    for answers in found:
        for name, answer in answers.answers.items():
            estimator = ESTIMATORS[name]()
            for start in starts:
                # a window's last row arrives by its end and the lateness
                final = start < answers.start and start + LENGTH + LATENESS <= answers.start + emit_after
                if final or start in starts[:warm_up]:
                    estimator.learn(windows[start].early, windows[start].final)
            early = replace(windows[answers.start].early, complete=emit_after >= LENGTH + LATENESS)
            assert repr(estimator.estimate(early)) == repr(answer)
    again = list(replay(*sides, starts, spec))
    assert [repr(one.answers) for one in again] == [repr(one.answers) for one in found]
