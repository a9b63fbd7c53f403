"""Early answers on streams: final rows are those of batch, early rows those of the replay, however rows come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.partials import PairCall, TotalsSpec, Tumbling
from sqlext_operators.early.replay import (
    Replayed,
    ReplaySpec,
    Stream,
    WindowAnswers,
    WindowBounds,
    replay,
    window_starts,
)
from sqlext_operators.early.stream import BOUNDS, EarlySpec
from sqlext_operators.early.windows import EstimatedAggregate
from sqlext_operators.errors import RowError, RowOverflowError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress

from tests.operators.exchange.memory_chunks import MemoryChunks

LENGTH, DELAY, LATENESS = 10, 7, 15
SIDE = TotalsSpec(Tumbling(LENGTH), 1, (True, False))
CALLS = (
    PairCall(EstimatedAggregate.COUNT, 0, None, True, "n"),
    PairCall(EstimatedAggregate.SUM, 0, 0, True, "s"),
    PairCall(EstimatedAggregate.AVG, 1, 1, False, "a"),
    PairCall(EstimatedAggregate.COUNT, 1, 0, True, "m"),
)
TYPES = {"n": pa.int64(), "s": pa.int64(), "a": pa.float64(), "m": pa.int64()}


def spec_of(*calls: PairCall, estimator: str = "shrink", side: TotalsSpec = SIDE) -> EarlySpec:
    fields = [("start", pa.timestamp("us")), ("end", pa.timestamp("us")), ("phase", pa.string())]
    for call in calls:
        fields.append((call.name, TYPES[call.name]))
        kinds = (pa.float64(), pa.float64(), pa.float64(), pa.bool_())
        fields += [(f"{call.name}_{name}", kind) for name, kind in zip(BOUNDS, kinds, strict=True)]
    return EarlySpec((side, side), calls, DELAY, estimator, 0.95, pa.schema(fields))


@dataclass(frozen=True)
class Arriving:
    """A row: whose it is, its key, event time, when it arrives, an integer and a double."""

    side: int
    key: int | None
    event: int
    arrival: int
    whole: int | None = None
    double: float | None = None


def blocks(rows: Sequence[Arriving], side: TotalsSpec = SIDE) -> list[Block]:
    """As the scatter sends them; each side in two parts."""
    found = []
    for tag in range(2):
        for part in range(2):
            own = [row for row in rows if row.side == tag][part::2]
            batch = pa.RecordBatch.from_pydict(
                {
                    "t": pa.array([row.event for row in own], pa.timestamp("us")),
                    "k": pa.array([row.key for row in own], pa.int32()),
                    "whole": pa.array([row.whole for row in own], pa.int64()),
                    "double": pa.array([row.double for row in own], pa.float64()),
                }
            )
            found += [Block(0, tag, part, totals) for totals in side.reduced([batch])]
    return found


class Run:
    """An operator that is fed step by step; every step is done twice, from the state before it, in a new process."""

    def __init__(self, spec: EarlySpec) -> None:
        self.spec = spec
        self.store = MemoryChunks()
        self.results: list[dict[str, Any]] = []
        self.progress = Progress()

    def step(self, rows: Sequence[Arriving], watermark: int | None) -> list[dict[str, Any]]:
        attempts = []
        for _ in range(2):
            store = MemoryChunks(self.store.index(), self.store.data)
            store.watermark, store.next_no = self.store.watermark, self.store.next_no
            progress = replace(self.progress)
            found = self.spec.stream().step(store, blocks(rows), watermark, progress)
            attempts.append([row for batch in found for row in batch.to_pylist()])
        assert repr(attempts[0]) == repr(attempts[1])
        if watermark is not None:
            store.watermark = watermark if store.watermark is None else max(watermark, store.watermark)
        self.store, self.progress = store, progress
        self.results += attempts[1]
        return attempts[1]

    def of(self, phase: str) -> dict[int, dict[str, Any]]:
        """The rows of a phase by window; one for each."""
        rows = [row for row in self.results if row["phase"] == phase]
        found = {start_of(row): row for row in rows}
        assert len(found) == len(rows)
        return found


def start_of(row: dict[str, Any]) -> int:
    return int(np.datetime64(row["start"], "us").astype(np.int64))


KEYS = st.integers(0, 3) | st.none()
ROW = st.builds(
    lambda side, key, event, delay, whole, half: Arriving(
        side, key, event, event + delay, whole, None if half is None else half / 2
    ),
    st.integers(0, 1),
    KEYS,
    st.integers(-20, 80),
    st.integers(0, LATENESS - 1),
    st.integers(-5, 5) | st.none(),
    st.integers(-9, 9) | st.none(),
)


def exact(rows: Sequence[Arriving]) -> dict[int, dict[str, Any]]:
    """Batch: for each window with a pair, what the calls give; row by row."""
    found: dict[int, dict[str, Any]] = {}
    for start in sorted({row.event // LENGTH * LENGTH for row in rows}):
        own = [row for row in rows if row.event // LENGTH * LENGTH == start and row.key is not None]
        pairs = [(a, b) for a in own for b in own if a.side == 0 and b.side == 1 and a.key == b.key]
        if pairs:
            wholes = [a.whole for a, _ in pairs if a.whole is not None]
            doubles = [b.double for _, b in pairs if b.double is not None]
            found[start] = {
                "n": len(pairs),
                "s": sum(wholes) if wholes else None,
                "a": sum(doubles) / len(doubles) if doubles else None,
                "m": sum(b.whole is not None for _, b in pairs),
            }
    return found


@given(st.lists(ROW, max_size=60), st.randoms(use_true_random=False), st.integers(0, 5))
def test_final_rows_are_those_of_batch_and_early_rows_come_once_before_them(
    rows: list[Arriving], random: Any, gap: int
) -> None:
    rows = sorted(rows, key=lambda row: row.arrival)
    run = Run(spec_of(*CALLS))
    batches: list[list[Arriving]] = [[]]
    for row in rows:
        if random.random() < 0.3:
            batches.append([])
        batches[-1].append(row)
    for number, batch in enumerate(batches):  # no later row is below the watermark
        later = [row.event for rest in batches[number + 1 :] for row in rest]
        run.step(batch, min(later, default=0) - gap if random.random() < 0.7 else None)
    early_before_end = run.of("early")
    run.step([], 1_000)
    expected, early, final = exact(rows), run.of("early"), run.of("final")
    assert early == early_before_end
    shown = {start: {name: row[name] for name in TYPES} for start, row in final.items()}
    empty = {"n": 0, "s": None, "a": None, "m": 0}
    assert {start: row for start, row in shown.items() if start in expected} == expected
    assert all(row == empty and start in early for start, row in shown.items() if start not in expected)
    assert early.keys() <= final.keys()
    for known in final.values():
        assert all((known[f"{n}_lower"], known[f"{n}_upper"]) == (known[n], known[n]) for n in TYPES)
        assert all(known[f"{n}_coverage"] == 1 and known[f"{n}_reliable"] for n in TYPES)
    order = [(start_of(row), row["phase"]) for row in run.results]
    assert all(order.index((start, "early")) < order.index((start, "final")) for start in early)
    assert (run.progress.rows, run.progress.late) == (len(rows), 0)
    assert run.spec.stream().wakes_at(run.store) is None
    assert run.spec.stream().rows(run.store) == 0


def replayed(rows: Sequence[Arriving], estimator: str, aggregate: EstimatedAggregate) -> dict[int, WindowAnswers]:
    """The same rows in the replay."""
    sides = []
    for side in range(2):
        own = [row for row in rows if row.side == side and row.key is not None]
        counts = aggregate is EstimatedAggregate.COUNT
        columns = [[row.key for row in own], [1 if counts else row.whole for row in own]]
        columns += [[row.event for row in own], [row.arrival for row in own]]
        keys, values, events, arrivals = (np.array(column, np.int64) for column in columns)
        sides.append(Stream(keys, values.astype(np.float64), events, arrivals))
    starts = window_starts(sides[0], sides[1], WindowBounds(LENGTH))
    spec = ReplaySpec(WindowBounds(LENGTH), DELAY, LATENESS, aggregate, estimators=(estimator,))
    return {item.start: item for item in replay(Replayed(sides[0]), Replayed(sides[1]), starts, spec)}


FOLLOWING = [name for name, kind in ESTIMATORS.items() if kind.follows_arrivals]


@pytest.mark.few
@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name not in FOLLOWING])
@pytest.mark.parametrize("aggregate", list(EstimatedAggregate))
def test_early_rows_are_the_answers_of_the_replay(estimator: str, aggregate: EstimatedAggregate) -> None:
    """A micro-batch ends at each moment at which an answer is due; a row without a key says how far time has come."""
    random = np.random.default_rng(len(estimator))
    rows = [
        Arriving(
            side,
            int(random.integers(0, 5)),
            event,
            event + int(random.integers(0, LATENESS)),
            int(random.integers(1, 9)),
        )
        for side in range(2)
        for event in np.repeat(np.arange(200), 3).tolist()
    ]
    call = PairCall(aggregate, 0, 0 if aggregate is not EstimatedAggregate.COUNT else None, True, "n")
    run = Run(spec_of(replace(call, integral=False, name="a"), estimator=estimator))
    moments = range(DELAY, 200, LENGTH)
    for now, before in zip(moments, [-1, *moments], strict=False):
        came = [row for row in rows if before <= row.arrival < now]
        run.step([*came, Arriving(0, None, now, now)], now - LATENESS)
    expected = replayed(rows, estimator, aggregate)
    early = run.of("early")
    assert len(early) == len(moments)
    for start, row in early.items():
        answer = expected[start].answers[estimator]
        for name, value in (("a", answer.estimate), ("a_lower", answer.lower), ("a_upper", answer.upper)):
            assert row[name] == (None if math.isnan(value) else pytest.approx(value, rel=1e-9)), (start, name)
        assert (row["a_coverage"], row["a_reliable"]) == (pytest.approx(answer.coverage), answer.reliable)
    if estimator != "none":
        assert any(row["a_reliable"] for row in early.values())
    assert not early[0]["a_reliable"]
    for start, row in run.of("final").items():
        assert row["a"] == pytest.approx(expected[start].exact)


def test_a_count_is_rounded_and_an_average_of_nothing_is_null() -> None:
    run = Run(spec_of(*CALLS))
    rows = [Arriving(0, 1, 1, 1, 2, 0.5), Arriving(1, 2, 1, 1, 2, 0.5), Arriving(0, None, DELAY, 1)]
    (row,) = run.step(rows, None)
    assert (row["phase"], row["n"], row["s"], row["a"], row["m"]) == ("early", 0, 0, None, 0)
    assert row["n_upper"] > 100
    assert not row["n_reliable"]
    (row,) = run.step([], 100)
    assert (row["phase"], row["n"], row["s"], row["a"], row["n_upper"], row["s_upper"]) == (
        "final",
        0,
        None,
        None,
        0,
        None,
    )


def test_late_rows_are_counted_and_change_nothing() -> None:
    run = Run(spec_of(*CALLS))
    both = [Arriving(side, 1, 5, 5, 1, 1.0) for side in range(2)]
    run.step([*both, Arriving(0, 1, 30, 30)], 10)
    run.step([*both, *both], 20)
    assert (run.progress.rows, run.progress.late) == (7, 4)
    assert [row["n"] for row in run.results if row["phase"] == "final"] == [1]
    # a row below the watermark whose window is not final is in time
    run.step([Arriving(0, 1, 31, 31), Arriving(1, 1, 31, 31)], 35)
    run.step([Arriving(1, 1, 32, 32)], 40)
    assert run.progress.late == 4
    assert run.of("final")[30]["n"] == 4
    run.spec = replace(run.spec, late_fails=True)
    with pytest.raises(RowError, match="2 rows older than the watermark"):
        run.step(both, 50)


def test_a_window_that_is_final_when_its_answer_is_due_has_no_early_row() -> None:
    run = Run(spec_of(*CALLS))
    both = [Arriving(side, 1, 5, 5, 1, 1.0) for side in range(2)]
    run.step(both, 20)
    run.step([Arriving(0, 1, 30, 30)], 20)
    assert [row["phase"] for row in run.results] == ["final"]


def test_sums_of_integers_are_exact_and_end_at_bigint() -> None:
    run = Run(spec_of(CALLS[1]))
    most = 2**63 - 1
    run.step(
        [
            Arriving(0, 1, 0, 0, most),
            Arriving(0, 1, 1, 1, -most),
            Arriving(0, 2, 1, 1, most - 2),
            *[Arriving(1, key, 1, 1) for key in (1, 2)],
        ],
        None,
    )
    run.step([], 10)
    assert run.of("final")[0]["s"] == most - 2
    run.step([Arriving(0, 1, 10, 0, most), Arriving(1, 1, 11, 1), Arriving(1, 1, 11, 1)], None)
    with pytest.raises(RowOverflowError, match="beyond bigint"):
        run.step([], 20)


def test_values_that_are_not_finite_are_not_learned() -> None:
    run = Run(spec_of(CALLS[2]))
    for start in range(0, 100, LENGTH):
        value = math.nan if start == 20 else float(start % 3)
        rows = [Arriving(side, 1, start + 1, start, 1, value) for side in range(2)]
        run.step([*rows, Arriving(0, None, start + DELAY, start)], start - LATENESS)
    assert math.isnan(run.of("final")[20]["a"])
    assert all(math.isfinite(row["a_upper"]) for start, row in run.of("early").items() if start > 60)


def test_many_micro_batches_are_merged() -> None:
    run = Run(spec_of(*CALLS))
    for _ in range(100):
        run.step([Arriving(side, 1, 3, 3, 1, 1.0) for side in range(2)], None)
    assert run.spec.stream().rows(run.store) < 40
    run.step([], 10)
    assert run.of("final")[0]["n"] == 10_000


@pytest.mark.parametrize("estimator", FOLLOWING)
def test_estimators_that_follow_arrivals_are_refused(estimator: str) -> None:
    with pytest.raises(ValueError, match="keeps no arrivals"):
        spec_of(estimator=estimator)
