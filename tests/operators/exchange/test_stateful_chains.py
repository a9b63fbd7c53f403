"""Windows over the results of windows, as Spark runs them but without Spark: a chain gives what batch gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyspark.sql import Row as SparkRow
from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.chunks import ChunkCache, decoded
from sqlext_operators.exchange.stateful import FIGURES, StatefulOperator, StatefulSpec
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

from tests.properties import examples

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
KEYS = ("a", "b", "c")
NOTHING = pa.RecordBatch.from_pylist([], SCHEMA)
#: Microseconds; times lie between the milliseconds of watermarks too.
TICK = 250
BUCKETS = 2


class Value:
    """A value variable of the state."""

    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class Map:
    """A map variable of the state."""

    def __init__(self) -> None:
        self.items: dict[tuple[int], tuple[bytes]] = {}

    def getValue(self, key: tuple[int]) -> Any:  # noqa: N802 - Spark's name
        return self.items.get(key)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:  # noqa: N802 - Spark's name
        self.items[key] = value

    def removeKey(self, key: tuple[int]) -> None:  # noqa: N802 - Spark's name
        del self.items[key]


class Handle:
    """What Spark gives to a processor, for one key."""

    def __init__(self) -> None:
        self.timers: set[int] = set()
        self.map, self.value = Map(), Value()

    def getMapState(self, *about: str) -> Map:  # noqa: N802 - Spark's name
        return self.map

    def getValueState(self, *about: str) -> Value:  # noqa: N802 - Spark's name
        return self.value

    def registerTimer(self, time: int) -> None:  # noqa: N802 - Spark's name
        self.timers.add(time)

    def deleteTimer(self, time: int) -> None:  # noqa: N802 - Spark's name
        self.timers.discard(time)


@dataclass(frozen=True)
class Times:
    watermark: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 - Spark's name
        return self.watermark


class Stage:
    """A stateful operator with a task for each bucket, by the remainder of a key; its state outlives the workers."""

    def __init__(self, spec: StatefulSpec, key: str) -> None:
        self._spec, self._key = spec, key
        self._handles = [Handle() for _ in range(BUCKETS)]
        self.figures: Counter[str] = Counter()

    def step(self, inputs: Sequence[pa.RecordBatch], watermark: int) -> pa.RecordBatch:
        """The results of a micro-batch: Spark first hands over the new rows, then the timers that are due."""
        found = []
        for bucket, handle in enumerate(self._handles):
            operator = StatefulOperator(self._spec, ChunkCache(None))
            operator.init(handle)
            rows = list(self._rows(bucket, inputs))
            if rows:
                found += self._taken(operator.handleInputRows((bucket,), rows, Times(watermark)))
            for timer in sorted(time for time in handle.timers if time <= watermark):
                found += self._taken(operator.handleExpiredTimer((bucket,), Times(watermark), None))
                handle.timers.discard(timer)
        return whole(found[0].schema, found) if found else NOTHING

    def _rows(self, bucket: int, inputs: Sequence[pa.RecordBatch]) -> Iterator[SparkRow]:
        wire = WireBatch()
        for tag, batch in enumerate(inputs):
            chosen = [key % BUCKETS == bucket for key in batch.column(self._key).to_pylist()]
            if any(chosen):
                wire.add(Block(bucket, tag, tag, batch.filter(pa.array(chosen))))
        yield from (SparkRow(**row) for row in wire.finish().to_pylist())

    def _taken(self, rows: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        for row in (row.asDict() for row in rows):
            self.figures.update({name: row[name] for name in FIGURES})
            if row["block"] is not None:
                yield decoded(pa.py_buffer(row["block"]))


@dataclass(frozen=True)
class Case:
    """A window a key, each over the results of the one before and a stream of its own; `batches` are the micro-batches'
    rows by input, with the watermark of each in milliseconds."""

    windows: tuple[WindowOperatorSpec, ...]
    batches: tuple[tuple[int, tuple[pa.RecordBatch, ...]], ...]


def window_spec(number: int, frame: Frame) -> WindowOperatorSpec:
    """The window number n: it passes all columns on, and counts and adds up ids."""
    key = KEYS[number]
    payload = (*SCHEMA.names, *(f"{name}{n}" for n in range(number) for name in ("n", "s")))
    calls = (Call("count", (), f"n{number}"), Call("sum", ("id",), f"s{number}"))
    union = WindowUnionSpec((key,), "ts", payload, (Window(frame, (1,), calls),))
    return WindowOperatorSpec(SequenceSpec((key,), "ts", ("id",), payload), union, 2)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Frames in which the order of rows with equal times does not count."""
    end = draw(st.integers(-12, 24).filter(bool)) * TICK
    start = end - draw(st.integers(0, 40)) * TICK
    return Frame("range", start, end, start_following=start > 0, end_following=end > 0)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chosen = draw(st.lists(frames(), min_size=2, max_size=len(KEYS)))
    windows = tuple(window_spec(number, frame) for number, frame in enumerate(chosen))
    delay = draw(st.integers(0, 4))
    batches, newest, before, no = [], -1, -1, 0
    for step in range(draw(st.integers(1, 6))):
        watermark = max(newest // 1000 - delay, before) if newest >= 0 else 0
        inputs = []
        for _ in range(len(windows) + 1):
            rows = []
            times = draw(st.lists(st.integers(max(0, 16 * step - 20), 16 * step + 12), max_size=8))
            for time in (time * TICK + 1_000_000 for time in times):
                if before <= 0 or time >= before * 1000:  # no row is late
                    rows.append((no, time, *(draw(st.integers(0, 3)) for _ in KEYS)))
                    newest, no = max(newest, time), no + 1
            columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(len(SCHEMA))]
            inputs.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        batches.append((watermark, tuple(inputs)))
        before = watermark
    return Case(windows, tuple(batches))


def wide(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """Rows of a union with a column for each of the results so far."""
    for name in (f"{name}{n}" for n in range(number) for name in ("n", "s")):
        batch = with_column(batch, name, pa.nulls(batch.num_rows, pa.int64()))
    return batch


def in_batch(case: Case) -> Counter[str]:
    tables = [whole(SCHEMA, [inputs[i] for _, inputs in case.batches]) for i in range(len(case.windows) + 1)]
    rows = tables[0]
    for number, spec in enumerate(case.windows):
        with spec.operator() as operator:
            for tag, batch in enumerate((rows, wide(tables[number + 1], number))):
                operator.push(Block(0, tag, tag, batch))
            found = list(operator.finish())
        if not found:
            return Counter()
        rows = whole(found[0].schema, found)
    return Counter(map(str, rows.to_pylist()))


def stages_of(case: Case) -> list[Stage]:
    """The operators as the planner makes them: each waits for as long as those below it."""
    delay, stages = 0, []
    for number, spec in enumerate(case.windows):
        chained = frozenset([0] if number else [])
        stages.append(Stage(StatefulSpec(WindowStreamSpec(spec), {}, delay=delay, chained=chained), KEYS[number]))
        delay += reach_of(spec.window).ahead
    return stages


def in_stream(case: Case, stages: Sequence[Stage]) -> Counter[str]:
    found: Counter[str] = Counter()
    for watermark, inputs in (*case.batches, (10**9, (NOTHING,) * (len(stages) + 1))):
        rows = inputs[0]
        for number, stage in enumerate(stages):
            rows = stage.step((rows, wide(inputs[number + 1], number)), watermark)
        found.update(map(str, rows.to_pylist()))
    return found


@given(cases())
@examples(100, share=8)
def test_a_chain_gives_the_rows_of_batch(case: Case) -> None:
    stages = stages_of(case)
    expected = in_batch(case)
    assert in_stream(case, stages) == expected
    assert [stage.figures["late_rows"] for stage in stages] == [0] * len(stages)
    assert sum(stage.figures["rows_in"] for stage in stages) == sum(
        batch.num_rows for _, inputs in case.batches for batch in inputs
    )
    event(f"{len(stages)} windows, rows: {bool(expected)}")


def one_row(time: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": time, "ts": time, "a": 0, "b": 0, "c": 0}], SCHEMA)


def test_without_the_delay_rows_would_be_late() -> None:
    frame = Frame("range", -1_000, 5_000, end_following=True)
    other = (12, (NOTHING, NOTHING, one_row(14_000)))
    batches = ((0, (one_row(10_000), NOTHING, NOTHING)), other, (16, (one_row(20_000), NOTHING, NOTHING)))
    case = Case((window_spec(0, frame), window_spec(1, frame)), batches)
    stages = stages_of(case)
    assert in_stream(case, stages) == in_batch(case)
    assert stages[1].figures["late_rows"] == 0
    hasty = [stages_of(case)[0], Stage(replace(stages[1]._spec, delay=0), "b")]
    in_stream(case, hasty)
    assert hasty[1].figures["late_rows"] == 1


@pytest.mark.parametrize(("delay", "timer"), [(0, 16), (1, 16), (999, 16), (1_000, 17), (2_500, 18)])
def test_a_timer_waits_for_the_delay_too(delay: int, timer: int) -> None:
    """A window to 5 ms after a row of 10 ms is complete at the first watermark after 15 ms."""
    spec = window_spec(0, Frame("range", 0, 5_000, end_following=True))
    stage = Stage(StatefulSpec(WindowStreamSpec(spec), {}, delay=delay), "a")
    stage.step((one_row(10_000), NOTHING), 0)
    assert stage._handles[0].timers == {timer}
    assert stage.step((NOTHING, NOTHING), timer - 1).num_rows == 0
    assert stage.step((NOTHING, NOTHING), timer).num_rows == 1
