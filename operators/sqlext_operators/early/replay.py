"""Early answers over streams of the past: each window answered by several estimators, and compared with the truth."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlext_operators.early.estimator import Estimator
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.key_totals import Aggregate, Ints
from sqlext_operators.early.streams import CutWindow, Replayed, WindowBounds, cut_windows
from sqlext_operators.early.windows import Answer


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
    aggregate: Aggregate = Aggregate.COUNT
    confidence: float = 0.95
    estimators: tuple[str, ...] = ("shrink",)
    warm_up: int = 0


@dataclass(frozen=True)
class WindowAnswers:
    """A window's answers by estimator, the exact one (NaN: an average of nothing), and how long its rows waited."""

    start: int
    answers: dict[str, Answer]
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
