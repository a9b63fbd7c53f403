"""What holds for every estimator, on random windows: also empty ones, single rows, negative sums, constant pasts."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlext_operators.early.estimation import ENOUGH
from sqlext_operators.early.estimator import Estimator
from sqlext_operators.early.estimators import DEFAULT, ESTIMATORS
from sqlext_operators.early.windows import EarlyAnswer, EarlyWindow, EstimatedAggregate, KeyTotals

from tests.operators.early.early_data import Window, random_window, windows
from tests.properties import examples

every_estimator = pytest.mark.parametrize("name", list(ESTIMATORS))
AGGREGATES = st.sampled_from(list(EstimatedAggregate))
CONFIDENCES = st.sampled_from([0.5, 0.95, 0.999])
PASTS = st.lists(windows(), max_size=8)


def taught(
    name: str, aggregate: EstimatedAggregate, past: list[Window], confidence: float = 0.95, **how: float
) -> Estimator:
    estimator = ESTIMATORS[name](aggregate, confidence)
    for window in past:
        estimator.learn(*window.cut(**how))  # type: ignore[arg-type]
    return estimator


def same(one: EarlyAnswer, other: EarlyAnswer, scale: float = 1.0) -> bool:
    numbers = [(one.estimate, other.estimate), (one.lower, other.lower), (one.upper, other.upper)]
    largest = max((abs(value) for value, _ in numbers if math.isfinite(value)), default=0.0)
    close = all(
        (math.isnan(a) and math.isnan(b)) or a * scale == pytest.approx(b, rel=1e-6, abs=1e-6 * (1 + largest * scale))
        for a, b in numbers
    )
    return close and one.coverage == pytest.approx(other.coverage) and one.reliable == other.reliable


@pytest.mark.few(2)
@every_estimator
@examples(60, share=8)
@given(PASTS, windows(), AGGREGATES, CONFIDENCES, st.booleans())
def test_answers_are_defined_and_ordered(
    name: str, past: list[Window], window: Window, aggregate: EstimatedAggregate, confidence: float, repeat: bool
) -> None:
    estimator = taught(name, aggregate, past * 6 if repeat else past, confidence)
    early, final = window.cut()
    answer = estimator.estimate(early)
    assert 0 < answer.coverage <= 1
    numbers = (answer.estimate, answer.lower, answer.upper)
    if any(map(math.isnan, numbers)):
        assert aggregate is EstimatedAggregate.AVG
        assert all(map(math.isnan, numbers))
        assert not answer.reliable
    else:
        assert all(map(math.isfinite, numbers))
        assert answer.lower <= answer.estimate <= answer.upper
    if len(past) * (6 if repeat else 1) < ENOUGH:
        assert not answer.reliable
    if aggregate is EstimatedAggregate.COUNT:
        assert answer.upper >= early.totals.pairs or name in ("ksj", "alf")
    estimator.learn(early, final)


@every_estimator
@examples(25)
@given(PASTS, windows(), AGGREGATES)
def test_state_is_json_and_gives_the_same_answers(
    name: str, past: list[Window], window: Window, aggregate: EstimatedAggregate
) -> None:
    estimator = taught(name, aggregate, past)
    other = ESTIMATORS[name](aggregate)
    other.restore(json.loads(json.dumps(estimator.state(), allow_nan=False)))
    early, final = window.cut()
    assert repr(other.estimate(early)) == repr(estimator.estimate(early))
    for one in (estimator, other):
        one.learn(early, final)
    assert other.state() == estimator.state()


@every_estimator
@given(st.lists(windows(on_time=True), min_size=1, max_size=6), windows(on_time=True), AGGREGATES)
@examples(25)
def test_windows_that_were_always_whole_are_answered_exactly(
    name: str, past: list[Window], window: Window, aggregate: EstimatedAggregate
) -> None:
    estimator = taught(name, aggregate, past)
    early, final = window.cut()
    exact = final.answer(aggregate)
    if estimator.history.empty:  # no rows on one side so far
        early = replace(early, complete=True)
    answer = estimator.estimate(early)
    assert repr([answer.estimate, answer.lower, answer.upper]) == repr([exact] * 3)
    assert answer.coverage == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["none", "ksj", "svi", "mlp", "coverage", "shrink"])
@examples(40)
@given(PASTS, windows(), st.sampled_from([0.25, 4.0, 1024.0]))
def test_sums_follow_the_scale_of_the_values(name: str, past: list[Window], window: Window, scale: float) -> None:
    seen = [window.cut()[0].totals, *(one.cut()[1] for one in past)]
    assume(any(totals.value_scale for totals in seen))  # else there is no scale to follow
    plain = taught(name, EstimatedAggregate.SUM, past).estimate(window.cut()[0])
    scaled = taught(name, EstimatedAggregate.SUM, past, scale=scale).estimate(window.cut(scale=scale)[0])
    assert same(plain, scaled, scale)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["none", "ksj", "svi", "coverage", "shrink"])
@examples(40)
@given(PASTS, windows())
def test_counts_are_the_same_with_sides_swapped(name: str, past: list[Window], window: Window) -> None:
    plain = taught(name, EstimatedAggregate.COUNT, past).estimate(window.cut()[0])
    swapped = taught(name, EstimatedAggregate.COUNT, past, swap=True).estimate(window.cut(swap=True)[0])
    assert same(plain, swapped)


@pytest.mark.few(6)
@pytest.mark.parametrize("aggregate", list(EstimatedAggregate))
@pytest.mark.parametrize("name", ["coverage", DEFAULT, "svi", "none", "mlp", "ksj"])
def test_intervals_hold_what_they_promise(name: str, aggregate: EstimatedAggregate) -> None:
    random = np.random.default_rng(5)
    estimator = ESTIMATORS[name](aggregate, 0.9)
    held: list[bool] = []
    reliable: list[bool] = []
    errors: list[float] = []
    for number in range(400):
        early, final = random_window(random, 150, 12).cut()
        if number >= 20:
            answer, exact = estimator.estimate(early), final.answer(aggregate)
            reliable.append(answer.reliable)
            held.append(answer.lower <= exact <= answer.upper)
            errors.append(answer.estimate - exact)
        estimator.learn(early, final)
    assert np.mean(held) > 0.88
    assert np.mean(reliable) > 0.97
    if name in ("coverage", DEFAULT, "svi"):
        assert abs(np.mean(errors)) < 2.5 * np.std(errors) / math.sqrt(len(errors))


@pytest.mark.parametrize("aggregate", [EstimatedAggregate.SUM, EstimatedAggregate.AVG])
def test_values_with_a_heavy_tail(aggregate: EstimatedAggregate) -> None:
    random = np.random.default_rng(8)
    estimator = ESTIMATORS[DEFAULT](aggregate)
    held, reliable = [], []
    for number in range(200):
        window = random_window(random, 150, 12)
        values = random.lognormal(0, 2, 150).tolist()
        early, final = replace(window, left=replace(window.left, values=values)).cut()
        if number >= 20:
            answer = estimator.estimate(early)
            held.append(answer.lower <= final.answer(aggregate) <= answer.upper)
            reliable.append(answer.reliable)
        estimator.learn(early, final)
    assert np.mean(held) > 0.92
    assert np.mean(reliable) > 0.95


def test_the_default_is_closer_than_each_of_its_sources() -> None:
    random = np.random.default_rng(6)
    estimators = [ESTIMATORS[name]() for name in (DEFAULT, "coverage", "svi", "none")]
    errors: list[list[float]] = [[] for _ in estimators]
    for number in range(200):
        early, final = random_window(random, 150, 12).cut()
        for estimator, found in zip(estimators, errors, strict=True):
            if number >= 20:
                found.append(abs(estimator.estimate(early).estimate / final.pairs - 1))
            estimator.learn(early, final)
    ours, *others = (float(np.mean(found)) for found in errors)
    assert ours < min(others)


def spread(rows: int, late_key: bool, random: np.random.Generator) -> tuple[EarlyWindow, KeyTotals]:
    """Half of the rows come early; with `late_key`, those of half of the keys come later than others."""
    keys = random.integers(0, 20, (2, rows))
    chance = np.where(keys < 10, 0.2, 0.8) if late_key else np.full((2, rows), 0.5)
    early = random.random((2, rows)) < chance
    parts = [KeyTotals.of(keys[0][chosen[0]], None, keys[1][chosen[1]]) for chosen in (early, early | True)]
    return EarlyWindow(parts[0]), parts[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("late_key", [False, True])
def test_keys_that_come_in_clusters_are_noticed(late_key: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    estimators = [ESTIMATORS[name]() for name in ("none", "coverage", DEFAULT)]
    for number in range(30):
        early, final = spread(400, late_key, random)
        for estimator in estimators:
            answer = estimator.estimate(early)
            assert answer.reliable == (number >= ENOUGH and not late_key)
            estimator.learn(early, final)


def test_a_window_unlike_the_past_is_not_reliable() -> None:
    random = np.random.default_rng(1)
    estimator = ESTIMATORS[DEFAULT]()
    for _ in range(20):
        estimator.learn(*spread(400, False, random))
    assert estimator.estimate(spread(400, False, random)[0]).reliable
    early, final = spread(1200, False, random)
    answer = estimator.estimate(early)
    assert not answer.reliable
    assert answer.lower <= final.pairs <= answer.upper


def test_errors_of_the_past_widen_the_interval() -> None:
    """Shares that jump from window to window, more than their mean can tell."""
    random = np.random.default_rng(2)
    estimator = ESTIMATORS["coverage"]()
    held = []
    for number in range(60):
        keys = random.integers(0, 20, (2, 300))
        early = random.random((2, 300)) < random.choice([0.3, 0.7])
        final = KeyTotals.of(keys[0], None, keys[1])
        window = EarlyWindow(KeyTotals.of(keys[0][early[0]], None, keys[1][early[1]]))
        if number >= 10:
            answer = estimator.estimate(window)
            held.append(answer.lower <= final.pairs <= answer.upper)
        estimator.learn(window, final)
    assert np.mean(held) > 0.9


def test_nothing_is_learned_from_an_answer() -> None:
    estimator = taught(DEFAULT, EstimatedAggregate.SUM, [])
    random = np.random.default_rng(3)
    for _ in range(10):
        estimator.learn(*random_window(random, 50, 5).cut())
    before = json.dumps(estimator.state())
    estimator.estimate(random_window(random, 50, 5).cut()[0])
    assert json.dumps(estimator.state()) == before
