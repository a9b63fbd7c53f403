"""Estimators of windows of rows: unbiased under thinning, intervals that hold the truth, and what they learn."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.early.windows import EstimatedAggregate
from sqlext_operators.early_windows.answers import REMEMBERED, ROW_ESTIMATORS, coverage, estimated, learn, shrink
from sqlext_operators.early_windows.calls import values_of
from sqlext_operators.early_windows.learned import BINS, Learned, Lengths, Moment, Seen
from sqlext_operators.window.spec import Frame

from tests.operators.early_windows.simulate import CASES, held, simulated

DRAWS = 1000
BIN = BINS - 3
#: The rows of one frame: old ones, and new ones of which a share has come.
OLD, NEW, SHARE = 300, 400, 0.6


def knowing(share: float = SHARE, *, rate: float = 0.04, values: np.ndarray | None = None) -> Learned:
    """What many rows have taught: the share of new rows that have come, their rate and their values."""
    found = Learned(steps=100)
    found.shares.early[BIN], found.shares.final[BIN] = share * 1e9, 1e9
    found.rate.learn(rate * 1e6, 1e6, 1.0)
    if values is not None:
        found.mean.learn(float(values.sum()), float(len(values)), 1.0)
        found.square.learn(float((values**2).sum()), float(len(values)), 1.0)
        found.within.learn(float(values.var() * len(values)), float(len(values)), 1.0)
    return found


def thinned(rng: np.random.Generator, old: np.ndarray, new: np.ndarray, share: float = SHARE) -> Seen:
    """`DRAWS` frames with the same old and new rows, of which each new one has come by chance."""
    there = rng.random((DRAWS, len(new))) < share
    full = np.ones(DRAWS)
    lengths = Lengths(full * 7_500, full * 10_000, full * 10_000)
    return Seen(
        own_rows=full,
        own_sum=full * 5,
        old_rows=full * len(old),
        old_sum=full * float(old.sum()),
        new_rows=there.sum(axis=1).astype(np.float64),
        new_sum=there @ new,
        new_squares=there @ new**2,
        lengths=lengths,
        bins=np.full(DRAWS, BIN),
        complete=np.zeros(DRAWS, np.bool_),
    )


@pytest.mark.parametrize("aggregate", list(EstimatedAggregate))
def test_coverage_is_unbiased_under_thinning_and_knows_its_variance(aggregate: EstimatedAggregate) -> None:
    rng = np.random.default_rng(5)
    old, new = rng.normal(10, 4, OLD), rng.normal(12, 4, NEW)
    seen = thinned(rng, old, new)
    rows, total = 1 + OLD + NEW, 5 + old.sum() + new.sum()
    truth = {"count": rows, "sum": total, "avg": total / rows}[aggregate]
    guess = coverage(aggregate, seen, knowing(values=new))
    error = guess.value.std() / math.sqrt(DRAWS)
    assert abs(guess.value.mean() - truth) <= 2 * error
    assert np.sqrt((guess.deviation**2).mean()) == pytest.approx(guess.value.std(), rel=0.1)


@pytest.mark.parametrize("aggregate", list(EstimatedAggregate))
def test_shrink_is_nearer_to_the_truth_where_the_old_part_tells_it(aggregate: EstimatedAggregate) -> None:
    rng = np.random.default_rng(6)
    errors: dict[str, list[float]] = {"coverage": [], "shrink": []}
    spread = []
    for _ in range(60):
        old, new = (rng.normal(10, 4, rng.poisson(mean)) for mean in (OLD, NEW))
        seen = thinned(rng, old, new)
        rows, total = 1 + len(old) + len(new), 5 + old.sum() + new.sum()
        truth = {"count": rows, "sum": total, "avg": total / rows}[aggregate]
        learned = knowing(values=np.concatenate([old, new]))
        for name, errors_of in errors.items():
            guess = ROW_ESTIMATORS[name](aggregate, seen, learned)
            errors_of.append(float(((guess.value - truth) ** 2).mean()))
        spread.append(float((((guess.value - truth) / guess.deviation) ** 2).mean()))
    assert np.mean(errors["shrink"]) < 0.97 * np.mean(errors["coverage"])
    assert 0.6 < np.mean(spread) < 1.3


def test_rows_that_come_at_even_distances_are_known_without_waiting() -> None:
    rng = np.random.default_rng(7)
    values = np.ones(OLD), np.ones(NEW)
    learned = knowing(values=values[1])
    seen = thinned(rng, *values)
    for _ in range(40):
        learned.unrest.add(0.0)
    guess = shrink(EstimatedAggregate.COUNT, seen, learned)
    loose = shrink(EstimatedAggregate.COUNT, seen, knowing(values=values[1]))
    assert np.abs(guess.value - (1 + OLD + NEW)).mean() < np.abs(loose.value - (1 + OLD + NEW)).mean() / 2


def test_a_frame_unlike_its_past_is_not_drawn_towards_it() -> None:
    rng = np.random.default_rng(8)
    seen = thinned(rng, np.ones(10), np.ones(2_000))
    learned = knowing(values=np.ones(2))
    answers = estimated(EstimatedAggregate.COUNT, seen, learned, "shrink", 0.95)
    assert not answers.reliable.any()
    assert answers.estimate.mean() == pytest.approx(2_011, rel=0.05)
    assert estimated(EstimatedAggregate.COUNT, seen, learned, "coverage", 0.95).reliable.all()


def test_without_a_past_bounds_are_wide_and_not_reliable() -> None:
    seen = thinned(np.random.default_rng(9), np.ones(3), np.arange(4.0))
    for aggregate in EstimatedAggregate:
        for name in ROW_ESTIMATORS:
            answers = estimated(aggregate, seen, Learned(), name, 0.95)
            assert not answers.reliable.any()
            assert (answers.lower <= answers.estimate).all()
            assert (answers.estimate <= answers.upper).all()
            assert np.isfinite(answers.upper).all()
            assert set(answers.memory) == set(REMEMBERED)


def test_values_that_are_not_finite_have_no_bounds_and_teach_nothing() -> None:
    seen = thinned(np.random.default_rng(10), np.ones(3), np.ones(4))
    broken = replace(seen, new_sum=np.full(DRAWS, np.nan), new_squares=np.full(DRAWS, np.inf))
    learned = knowing(values=np.ones(4))
    before = json.dumps(learned.state())
    for name in ROW_ESTIMATORS:
        answers = estimated(EstimatedAggregate.SUM, broken, learned, name, 0.95)
        assert np.isnan(answers.lower).all()
        assert np.isnan(answers.upper).all()
        assert not answers.reliable.any()
        learn(EstimatedAggregate.SUM, learned, broken.bins, answers.memory, broken.rows + 1, np.full(DRAWS, np.nan))
    assert json.dumps(learned.state()) == before


def test_integers_keep_their_type_and_their_digits() -> None:
    seen = thinned(np.random.default_rng(12), np.ones(3), np.ones(4))
    answers = estimated(EstimatedAggregate.SUM, seen, knowing(values=np.ones(4)), "coverage", 0.95)
    for kind, largest in ((pa.int8(), 127), (pa.int32(), 2**31 - 1), (pa.int64(), 2**63 - 1)):
        there = pa.array([largest, *[5] * (DRAWS - 2), None], kind)
        found = values_of(there, answers)
        assert found.type == kind
        assert (found[0].as_py(), found[DRAWS - 1].as_py()) == (largest, None)
        assert found[1].as_py() == 5 + round(answers.added[1])


def test_what_is_learned_can_be_written_down() -> None:
    rng = np.random.default_rng(11)
    seen = thinned(rng, rng.normal(3, 1, 20), rng.normal(4, 1, 30))
    learned = Learned()
    for _ in range(8):
        answers = estimated(EstimatedAggregate.AVG, seen, learned, "shrink", 0.9)
        learn(EstimatedAggregate.AVG, learned, seen.bins, answers.memory, np.full(DRAWS, 51.0), np.full(DRAWS, 190.0))
    again = Learned.restored(json.loads(json.dumps(learned.state())))
    assert again.state() == learned.state()
    assert learned.shares.of(seen.bins)[0] == pytest.approx(SHARE, abs=0.02)
    assert learned.steps == 8


def test_times_are_told_in_bins_and_lengths() -> None:
    times = np.array([90, 95, 99, 100])
    assert Moment(100, None, 0).bins(times).tolist() == [-1] * 4
    bins = Moment(100, 90, 0).bins(times)
    assert bins[0] == BINS - 1
    assert bins[1] == BINS - 4
    assert bins[3] == 0
    lengths = Lengths.of(Frame("range", -10, 2, end_following=True), times, Moment(100, 90, 2))
    assert lengths.old.tolist() == [10, 5, 1, 0]
    assert lengths.new.tolist() == [3, 8, 12, 13]
    assert lengths.happened.tolist() == [3, 8, 11, 11]
    assert np.isinf(Lengths.of(Frame("range", None, 0), times, Moment(100, 90, 0)).old).all()


@pytest.mark.few(3)
@pytest.mark.parametrize(("estimator", "case"), [("shrink", CASES[0]), ("coverage", CASES[2]), ("none", CASES[3])])
def test_intervals_hold_the_truth_about_as_often_as_asked_for(estimator: str, case: tuple[str, int, int]) -> None:
    pairs = simulated(estimator, *case, seconds=110)
    assert len(pairs) > 300
    for name in ("n0", "m0", "s0", "a0"):
        assert 0.9 <= held(pairs, name) <= 1.0
        assert np.mean([early[f"{name}_reliable"] for early, _ in pairs]) > 0.9
        width = np.mean([early[f"{name}_upper"] - early[f"{name}_lower"] for early, _ in pairs])
        assert width < 0.4 * np.mean([abs(final[name]) for _, final in pairs])
    if estimator != "none":
        bias = np.mean([early["n0"] - final["n0"] for early, final in pairs])
        missing = np.mean([final["n0"] * (1 - early["n0_coverage"]) for early, final in pairs])
        assert abs(bias) < 0.35 * missing  # a minute of three keys is about forty independent frames
