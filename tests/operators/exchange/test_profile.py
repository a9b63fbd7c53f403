"""The stopwatch of a task, with a clock that only the parts move."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from sqlext_operators.exchange import profile
from sqlext_operators.exchange.blocks import WIRE_SCHEMA, Block, BlockSpools
from sqlext_operators.exchange.profile import StepFigures, Stopwatch, as_step, counted, measured, recorded, timed
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter


class Clock:
    """Time passes only in `work` and `wait`; only work costs CPU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.cpu = 0.0
        made = Stopwatch

        def stopwatch(step: int) -> Stopwatch:
            return made(step, lambda: self.now, lambda: self.cpu)

        monkeypatch.setattr(profile, "Stopwatch", stopwatch)

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.cpu += seconds

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def batch(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": pa.array(range(rows), pa.int64())})


def test_parts_inside_parts_and_generators_add_up_to_the_tasks_time(clock: Clock) -> None:
    def source() -> Iterator[pa.RecordBatch]:
        for rows in (2, 3):
            clock.work(1)
            clock.wait(16)
            yield batch(rows)

    def pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in batches:
            clock.work(32)
            with measured("spill"):
                clock.work(64)
            yield item

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in timed("sort", pairs(batches)):
            with measured("evaluate", "total", "IntegerSum"):
                clock.work(128)
                with measured("output"):
                    clock.work(256)
            clock.work(512)
            yield item

    def entry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        clock.work(2048)  # before the step
        yield from as_step(7, "rest", task, batches)

    reports: list[tuple[StepFigures, ...]] = []
    for _ in recorded(7, entry, source(), reports.append):
        clock.wait(1024)
    ((figures,),) = reports
    assert figures.step == 7
    assert figures.seconds == {
        ("receive",): 2,
        ("elsewhere",): 2048 + 2 * (16 + 1024),
        ("sort",): 2 * 32,
        ("spill",): 2 * 64,
        ("evaluate", "total", "IntegerSum"): 2 * 128,
        ("output",): 2 * 256,
        ("rest",): 2 * 512,
    }
    assert sum(figures.seconds.values()) == clock.now
    assert figures.counts == {"out": 5}


def test_a_step_inside_a_step_has_its_own_figures(clock: Clock) -> None:
    def operator(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in batches:
            clock.work(2)
            counted("in", item.num_rows)
            yield item.slice(1)

    def sender(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in as_step(1, "evaluate", operator, batches):
            clock.work(8)
            counted("in", item.num_rows)
            yield item

    def source() -> Iterator[pa.RecordBatch]:
        clock.work(32)
        yield batch(4)

    reports: list[tuple[StepFigures, ...]] = []
    list(recorded(2, lambda batches: as_step(2, "scatter", sender, batches), source(), reports.append))
    inner, outer = reports[0]
    assert (inner.step, inner.counts) == (1, {"in": 4, "out": 3})
    assert {name: value for name, value in inner.seconds.items() if value} == {("evaluate",): 2, ("receive",): 32}
    assert (outer.step, outer.counts) == (2, {"in": 3, "out": 3})
    assert {name: value for name, value in outer.seconds.items() if value} == {("scatter",): 8}


def test_a_task_that_fails_or_is_left_reports_nothing(clock: Clock) -> None:
    def entry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in batches:
            with measured("sort"):
                clock.work(1)
                if not item.num_rows:
                    raise ValueError("no rows")
            yield item

    reports: list[tuple[StepFigures, ...]] = []
    left = recorded(0, entry, iter([batch(1), batch(1)]), reports.append)
    next(left)
    del left
    assert profile._watch is None
    with pytest.raises(ValueError, match="no rows"):
        list(recorded(0, entry, iter([batch(0)]), reports.append))
    assert profile._watch is None
    assert reports == []
    list(recorded(0, entry, iter([batch(1)]), reports.append))
    assert len(reports) == 1


def test_nothing_is_measured_without_a_stopwatch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopwatch, "turn", lambda *_: pytest.fail("a clock was read"))
    items = [1, 2]
    assert timed("sort", items) is items
    assert measured("sort") is measured("evaluate", "total", "IntegerSum")
    spec = ScatterSpec(0, ("a",), KeyRouter(("a",)), 2)
    with measured("sort"):
        found = list(as_step(0, "scatter", scatter, spec, 0, [batch(5)]))
    assert [wire.schema for wire in found] == [WIRE_SCHEMA]


def test_scatter_counts_its_rows_and_bytes() -> None:
    spec = ScatterSpec(0, ("a",), KeyRouter(("a",)), 3)
    reports: list[tuple[StepFigures, ...]] = []
    found = list(
        recorded(4, lambda batches: scatter(spec, 0, batches), iter([batch(50), batch(0), batch(7)]), reports.append)
    )
    ((figures,),) = reports
    assert figures.counts == {"in": 57, "moved": 57, "moved bytes": sum(wire.nbytes for wire in found)}


def test_what_goes_to_disk_is_counted() -> None:
    def entry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with BlockSpools() as spools:
            for item in batches:
                spools.add("a", Block(0, 0, 0, item))
            for block in spools.read("a"):
                yield block.batch

    reports: list[tuple[StepFigures, ...]] = []
    sent = [batch(1000), batch(10)]
    assert list(recorded(0, entry, iter(sent), reports.append)) == sent
    ((figures,),) = reports
    assert figures.counts["spilled bytes"] > sum(item.nbytes for item in sent)
    assert figures.seconds[("spill",)] > 0
