"""Early rows hold what has come, final rows are those of the plain stream, however rows come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.early_windows.answers import ROW_ESTIMATORS
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.spec import Frame
from sqlext_operators.window.stream import WindowStreamSpec

from tests.operators.early_windows.row_data import BOUNDS, Row, Run, Step, blocks, operator_of, spec_of
from tests.properties import examples

END = Step(1 << 40, ())
NAMES = ("id", "k", "ts", "n0", "m0", "s0", "a0")


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    end = draw(st.integers(-4, 4))
    start = draw(st.none() | st.integers(end - 12, end))
    ahead = start is not None and start > 0
    return Frame(
        "range",
        start,
        end,
        start_following=ahead,
        end_following=end > 0 or (end == 0 and draw(st.booleans())),
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=draw(st.booleans()),
        instance_not_in_window=draw(st.booleans()),
    )


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Micro-batches with disorder: some rows are late, some have no key or no time."""
    delay = draw(st.integers(0, 8))
    found: list[Step] = []
    seen = watermark = None
    number = 0
    for _ in range(draw(st.integers(1, 7))):
        base = 0 if seen is None else seen
        times = st.integers(base - delay - 2, base + draw(st.integers(0, 8)))
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            number += 1
            value = draw(st.none() | st.integers(-3, 3))
            time = draw(times) if draw(st.integers(0, 20)) else None
            key = draw(st.sampled_from([0, 1, 2, None]))
            rows.append(Row(draw(st.integers(0, 1)), number, key, time, value, None if value is None else value / 2))
        found.append(Step(watermark, tuple(rows)))
        known = [row.time for row in rows if row.time is not None]
        seen = max([*known, *([] if seen is None else [seen])], default=None)
        if seen is not None and draw(st.integers(0, 3)):
            watermark = seen - delay if watermark is None else max(watermark, seen - delay)
    return found


def plain_results(operator: WindowOperatorSpec, rows: list[Row]) -> dict[int, dict[str, Any]]:
    """Batch over the rows in the order of arrival."""
    with operator.operator() as running:
        for seq, row in enumerate(rows):
            for block in blocks([row], seq):
                running.push(block)
        return {row["id"]: row for batch in running.finish() for row in batch.to_pylist()}


class Twin:
    """What early rows should be, worked out row by row."""

    def __init__(self, operator: WindowOperatorSpec, delay: int, lag: int) -> None:
        self.operator, self.delay, self.lag = operator, delay, lag
        self.ahead = reach_of(operator.window).ahead
        self.rows: list[Row] = []
        self.answered: set[int] = set()
        self.clock: int | None = None
        self.done: int | None = None

    def step(self, step: Step) -> dict[int, dict[str, Any]]:
        """The early rows of a step by number, without bounds."""
        timed = [row for row in step.rows if row.time is not None]
        times = [row.time for row in timed]
        self.rows += [row for row in timed if self.done is None or row.time >= self.done]
        if step.watermark is not None:
            self.done = step.watermark if self.done is None else max(self.done, step.watermark)
        times += [] if self.clock is None else [self.clock]
        times += [] if self.done is None else [self.done + self.lag]
        self.clock = max(times, default=None)
        due = [
            row.id
            for row in self.rows
            if row.tag == 0
            and row.id not in self.answered
            and row.time + self.delay <= self.clock
            and (self.done is None or row.time + self.ahead >= self.done)
        ]
        self.answered |= set(due)
        results = plain_results(self.operator, self.rows)
        return {number: results[number] for number in due}


@given(st.lists(frames(), min_size=1, max_size=2), steps(), st.data())
@examples(100, share=8)
def test_early_rows_hold_what_has_come_and_final_rows_are_the_plain_ones(
    found: list[Frame], given_steps: list[Step], data: st.DataObject
) -> None:
    operator = operator_of([(frame, (1,) if data.draw(st.booleans()) else ()) for frame in found])
    delay, lag = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 2))
    condense = data.draw(st.sampled_from([0, 20_000]))
    estimator = data.draw(st.sampled_from(["none", "none", "coverage", "shrink"]))
    run = Run(spec_of(operator, delay, estimator, condense, lag), again=True)
    plain = Run(WindowStreamSpec(operator, condense_from=condense))
    twin = Twin(operator, delay, lag)
    early_seen: set[int] = set()
    for step in [*given_steps, END]:
        wakes = run.spec.stream().wakes_at(run.store)
        rows = run.step(step)
        if rows and not step.rows:
            assert wakes is not None
            assert wakes <= step.watermark
        outputs = [name for name in rows[0] if name.rsplit("_", 1)[-1] not in (*BOUNDS, "phase")] if rows else []
        final = [{name: row[name] for name in outputs} for row in rows if row["phase"] == "final"]
        assert repr(final) == repr(plain.step(step))
        early = {row["id"]: row for row in rows if row["phase"] == "early"}
        assert len(early) == sum(row["phase"] == "early" for row in rows)
        expected = twin.step(step)
        assert early.keys() == expected.keys()
        early_seen |= early.keys()
        for number, row in early.items():
            if estimator == "none":
                assert {name: row[name] for name in outputs} == expected[number]
            check_bounds(row, expected[number], outputs[3:])
        for row in rows:
            if row["phase"] == "final":
                for name in outputs[3:]:
                    bounds = [row[f"{name}_{bound}"] for bound in BOUNDS]
                    value = None if row[name] is None else float(row[name])
                    assert bounds == [value, value, 1.0, True]
    assert run.progress.rows == plain.progress.rows
    assert (run.progress.late, run.progress.timeless) == (plain.progress.late, plain.progress.timeless)
    kinds = {chunk.kind for chunk in run.store.all()}
    assert (1 << 20) + 2 not in kinds  # no record is left


def check_bounds(row: dict[str, Any], there: dict[str, Any], outputs: list[str]) -> None:
    for name in outputs:
        lower, upper, coverage, reliable = (row[f"{name}_{bound}"] for bound in BOUNDS)
        assert 0 < coverage <= 1
        if name.startswith(("n", "m")):
            assert row[name] >= there[name]
            assert there[name] <= lower <= upper
        elif there[name] is None:
            assert (row[name], lower, upper, reliable) == (None, None, None, False)
            continue
        assert lower - 0.5 <= row[name] <= upper + 0.5


def test_a_complete_frame_is_exact_in_its_early_row() -> None:
    operator = operator_of([(Frame("range", -10, -5), (1,)), (Frame("range", -10, 0), (1,))])
    run = Run(spec_of(operator, 2))
    run.step(Step(None, tuple(Row(tag, tag, 1, 10 + tag, 5, 0.5) for tag in range(2))))
    run.step(Step(8, (Row(0, 3, 1, 16, 7, 1.5),)))
    rows = run.step(Step(12, (Row(1, 4, 1, 18, 1, 1.0),)))
    (early,) = [row for row in rows if row["phase"] == "early" and row["id"] == 3]
    assert [early[f"s0{bound}"] for bound in ("", "_lower", "_upper", "_coverage", "_reliable")] == [
        10,
        10,
        10,
        1,
        True,
    ]
    assert not early["s1_reliable"]


def test_what_is_not_estimated_is_refused() -> None:
    for frame in (
        Frame("rows", -3, 0),
        Frame("range", None, 0, maxsize=3),
        Frame("range", -3, None, end_following=True),
    ):
        with pytest.raises(ValueError, match="no sum over time"):
            _ = spec_of(operator_of([(frame, ())]), 1)
    with pytest.raises(ValueError, match="about window joins"):
        spec_of(operator_of([(Frame("range", -3, 0), ())]), 1, "svi")
    assert set(ROW_ESTIMATORS) == {"none", "coverage", "shrink"}
