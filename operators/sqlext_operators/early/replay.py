"""Early answers over streams of the past: two streams, cut into windows as they were at the moment of an early answer;
each window answered by several estimators, and compared with the truth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.estimator import Estimator
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.windows import (
    Arrivals,
    EarlyAnswer,
    EarlyWindow,
    EstimatedAggregate,
    Floats,
    Ints,
    KeyTotals,
)


@dataclass(frozen=True)
class Stream:
    """Rows of one side in any order: key codes from 0 (the same for both sides), values, times in microseconds."""

    keys: Ints
    values: Floats
    events: Ints
    arrivals: Ints


@dataclass(frozen=True)
class WindowBounds:
    """Windows begin at multiples of `length`.

    `closed`: as in PECJ's experiments. The time of the end belongs to a window too, and of the rows that arrive when an
    answer is due or later, the first is still taken in.
    """

    length: int
    closed: bool = False


_NEVER = 2**63 - 1


class Replayed:
    """One stream, sorted for the replay: by time for the cuts, by arrival for the clock."""

    def __init__(self, stream: Stream) -> None:
        order = np.argsort(stream.events, kind="stable")
        self.rows = order
        self.keys, self.values = stream.keys[order], stream.values[order]
        self.events, self.arrivals = stream.events[order], stream.arrivals[order]
        came = np.lexsort((order, self.arrivals))
        clock = np.maximum.accumulate(self.events[came]) if len(came) else came
        self._came, self._came_rows, self._clock = self.arrivals[came], order[came], clock
        self.lags = np.empty(len(came), np.int64)
        self.lags[came] = clock - self.events[came]

    def cut(self, start: int, bounds: WindowBounds) -> slice:
        """The rows of the window that begins at `start`."""
        end = start + bounds.length
        first, last = np.searchsorted(self.events, [start, end + bounds.closed])
        return slice(int(first), int(last))

    def clock(self, now: int) -> int | None:
        """The latest event time that has arrived before `now`."""
        count = int(np.searchsorted(self._came, now))
        return int(self._clock[count - 1]) if count else None

    def next_arrival(self, now: int) -> tuple[int, int]:
        """When the first row arrives that is not there before `now`, and its place in the file; no row: never."""
        count = int(np.searchsorted(self._came, now))
        return (int(self._came[count]), int(self._came_rows[count])) if count < len(self._came) else (_NEVER, -1)


@dataclass(frozen=True)
class CutWindow:
    """A window: when it begins, what is known of it when its answer is due, and what it is in the end.

    `waits`: for each left row that has arrived, the microseconds from its arrival to the answer.
    """

    start: int
    early: EarlyWindow
    final: KeyTotals
    waits: Ints


def window_starts(left: Stream, right: Stream, bounds: WindowBounds) -> list[int]:
    """The windows that have a row, ascending."""
    events = np.concatenate([left.events, right.events])
    starts = events // bounds.length * bounds.length
    if bounds.closed:
        starts = np.concatenate([starts, starts[starts == events] - bounds.length])
    return [int(start) for start in np.unique(starts)]


def cut_windows(
    left: Replayed, right: Replayed, starts: list[int], bounds: WindowBounds, emit_after: int, *, follow: bool
) -> Iterator[CutWindow]:
    """Each window as it was `emit_after` microseconds after its start. `follow`: with its arrivals one by one."""
    for start in starts:
        now = start + emit_after
        ours, others = left.cut(start, bounds), right.cut(start, bounds)
        in_time = left.arrivals[ours] < now
        others_in_time = right.arrivals[others] < now
        if bounds.closed:
            (left_next, left_row), (right_next, right_row) = left.next_arrival(now), right.next_arrival(now)
            if left_next < right_next:
                in_time |= left.rows[ours] == left_row
            else:
                others_in_time |= right.rows[others] == right_row
        totals = KeyTotals.of(left.keys[ours][in_time], left.values[ours][in_time], right.keys[others][others_in_time])
        final = KeyTotals.of(left.keys[ours], left.values[ours], right.keys[others])
        arrivals = None
        if follow:
            chosen = np.flatnonzero(in_time) + ours.start, np.flatnonzero(others_in_time) + others.start
            arrivals = _arrivals(left, right, *chosen, start, now, bounds.length)
        early = EarlyWindow(totals, min(1.0, emit_after / bounds.length), arrivals)
        yield CutWindow(start, early, final, now - left.arrivals[ours][in_time])


def _arrivals(left: Replayed, right: Replayed, ours: Ints, others: Ints, start: int, now: int, length: int) -> Arrivals:
    """The given rows in the order of arrival. Together: those of the right stream first, then by place in the file."""
    is_left: NDArray[np.bool_] = np.repeat([True, False], [len(ours), len(others)])

    def both(mine: Ints, other: Ints) -> Ints:
        return np.concatenate([mine[ours], other[others]])

    arrivals = both(left.arrivals, right.arrivals)
    order = np.lexsort((both(left.rows, right.rows), is_left, arrivals))
    clocks = [found if found is not None else start - 1 for found in (left.clock(now), right.clock(now))]
    return Arrivals(
        length,
        is_left[order],
        np.unique(both(left.keys, right.keys), return_inverse=True)[1].astype(np.int64)[order],
        np.concatenate([left.values[ours], np.zeros(len(others))])[order],
        both(left.events, right.events)[order] - start,
        arrivals[order] - start,
        both(left.lags, right.lags)[order],
        (max(-1, clocks[0] - start), max(-1, clocks[1] - start)),
    )


@dataclass(frozen=True)
class ReplaySpec:
    """What is replayed: times in microseconds.

    `emit_after`: when a window is answered, from its start. `lateness`: how long after its end its last row may
    arrive, so that it is final then. The first `warm_up` windows are what is known of the past when the first answer is
    due, even if their last rows would only come later; they are not answered.
    """

    bounds: WindowBounds
    emit_after: int
    lateness: int
    aggregate: EstimatedAggregate = EstimatedAggregate.COUNT
    confidence: float = 0.95
    estimators: tuple[str, ...] = ("shrink",)
    warm_up: int = 0


@dataclass(frozen=True)
class WindowAnswers:
    """A window's answers by estimator, the exact one (NaN: an average of nothing), and how long its rows waited."""

    start: int
    answers: dict[str, EarlyAnswer]
    exact: float
    waits: Ints


def replay(left: Replayed, right: Replayed, starts: Sequence[int], spec: ReplaySpec) -> Iterator[WindowAnswers]:
    """Answer the windows in the order of their starts, as a running query would have.

    An estimator learns from a window when the watermark has passed its end: `lateness` after it. So windows that are
    answered before that are answered without it.
    """
    estimators = {name: ESTIMATORS[name](spec.aggregate, spec.confidence) for name in spec.estimators}
    follow = any(kind.follows_arrivals for kind in estimators.values())
    pending: deque[CutWindow] = deque()
    windows = cut_windows(left, right, sorted(starts), spec.bounds, spec.emit_after, follow=follow)
    final_after = spec.bounds.length + spec.lateness + spec.bounds.closed
    for number, found in enumerate(windows):
        window = found
        if spec.emit_after >= final_after:
            window = replace(found, early=replace(found.early, complete=True))
        if number < spec.warm_up:
            _learn(estimators, window)
            continue
        now = window.start + spec.emit_after
        while pending and pending[0].start + final_after <= now:
            _learn(estimators, pending.popleft())
        answers = {name: estimator.estimate(window.early) for name, estimator in estimators.items()}
        yield WindowAnswers(window.start, answers, window.final.answer(spec.aggregate), window.waits)
        pending.append(window)


def _learn(estimators: dict[str, Estimator], window: CutWindow) -> None:
    for estimator in estimators.values():
        estimator.learn(window.early, window.final)
