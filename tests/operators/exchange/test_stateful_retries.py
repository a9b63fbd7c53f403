"""Attempts of a task that fail after they have changed the chunk files: the next attempt gives the same rows."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.chunks import ChunkCache, decoded
from sqlext_operators.exchange.stateful import StatefulOperator, StatefulSpec
from sqlext_operators.exchange.stream import StreamSpec
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.stream_join import IntervalStreamSpec
from sqlext_operators.interval_join.stream_sides import OpenPeriod, StreamSide
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

#: Spark's own, from 4.2 on.
TwsTester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs Spark 4.2").TwsTester

KEY, BATCHES, ROWS = 7, 12, 60
_CALLS = (Call("sum", ("v",), "s"), Call("distinct_count", ("v",), "d"))
WINDOWS = {
    "range": Window(Frame("range", -3_000_000, 0), (1,), _CALLS),
    "rows": Window(Frame("rows", -20, 0), (1,), (*_CALLS, Call("lag", ("v",), "l", (2,)))),
    "unbounded": Window(Frame("range", None, 0), (1,), _CALLS),
}


def window_stream(window: Window) -> WindowStreamSpec:
    sequence = SequenceSpec(("k",), "ts", ("v",), ("id", "ts"))
    union = WindowUnionSpec(("k",), "ts", ("id", "ts"), (window,))
    return WindowStreamSpec(WindowOperatorSpec(sequence, union, 2), condense_from=50)


def join_stream(kind: Kind) -> IntervalStreamSpec:
    """Overlaps of the two inputs, whose columns start with l and r."""
    overlaps = (Condition("lts", "<", "rte"), Condition("lte", ">", "rts"))
    sides = [IntervalSide((f"{n}k",), (f"{n}ts", f"{n}te"), ((f"{n}ts", f"{n}te"),), (f"{n}id",)) for n in "lr"]
    join = IntervalJoinSpec(kind, sides[0], sides[1], (False,), (overlaps,))
    names = [[f"{n}{name}" for name in ("id", "k", "ts", "v", "te")] for n in "lr"]
    schemas = [pa.schema([(name, pa.int64()) for name in own]) for own in names]
    left, right = (StreamSide(schema, f"{n}ts", (f"{n}ts",)) for schema, n in zip(schemas, "lr", strict=True))
    return IntervalStreamSpec(join, left, right)


def open_stream(kind: Kind) -> IntervalStreamSpec:
    """The same where both sides' periods come as two rows, with the event time in v."""
    found = join_stream(kind)
    left, right = (
        replace(side, time=f"{n}v", open=OpenPeriod(f"{n}ts", f"{n}te", (f"{n}id",), (f"{n}te", f"{n}v")))
        for side, n in ((found.left, "l"), (found.right, "r"))
    )
    return replace(found, left=left, right=right)


STREAMS: dict[str, StreamSpec] = {name: window_stream(window) for name, window in WINDOWS.items()}
STREAMS |= {"left join": join_stream("left"), "full join": join_stream("full")}
STREAMS |= {"open join": open_stream("inner"), "open semi join": open_stream("semi")}


def new_tester(spec: StreamSpec, folder: Path | None) -> TwsTester:
    """A task's processor in a new worker."""
    operator: Any = StatefulOperator(StatefulSpec(spec, {}), ChunkCache(folder))
    return TwsTester(operator, timeMode="EventTime", eventTimeExtractor=lambda row: 1 << 60)


def wire(
    rng: random.Random, batch: int, prefixes: str, opened: list[list[tuple[int, int, int]]] | None = None
) -> list[Row]:
    """Rows of a second of event time, up to a second late; no two have one time. The columns of the inputs start with
    the prefixes, if there are any."""
    found = WireBatch()
    for tag in range(2):
        times = [1_000_000 * (batch + 2) + 2 * rng.randrange(500_000) + tag for _ in range(ROWS)]
        times = [time - 1_000_000 * rng.randrange(2) for time in dict.fromkeys(times)]
        columns = {
            "id": [1_000 * batch + n for n in range(len(times))],
            "k": [rng.randrange(3) for _ in times],
            "ts": times,
            "v": [rng.randrange(9) for _ in times],
            "te": [time + 200_000 * rng.randrange(9) for time in times],
        }
        if opened is not None:  # new periods open, those of the micro-batch before are closed
            waiting = opened[tag]
            opened[tag] = list(zip(columns["id"], columns["k"], times, strict=True))
            number, key, starts = (list(values) for values in zip(*(opened[tag] + waiting), strict=True))
            ends = [1_000_000 * (batch + 1) + 2 * rng.randrange(500_000) + tag for _ in waiting]
            known = [None] * len(opened[tag]) + [
                max(end, start) for end, (*_, start) in zip(ends, waiting, strict=True)
            ]
            at = [start if end is None else end for start, end in zip(starts, known, strict=True)]
            columns = {"id": number, "k": key, "ts": starts, "v": at, "te": known}
        columns = {f"{prefixes[tag : tag + 1]}{name}": values for name, values in columns.items()}
        found.add(Block(0, tag, 0, pa.RecordBatch.from_pydict(columns)))
    return [Row(pid=KEY, tag=row["tag"], block=row["block"]) for row in found.finish().to_pylist()]


def state_of(tester: TwsTester) -> Any:
    handle = tester.handle
    return copy.deepcopy((handle.value_states["meta"].state, handle.map_states["chunks"].state, handle._timers))


def restore(tester: TwsTester, state: Any, watermark: int) -> None:
    meta, chunks, timers = copy.deepcopy(state)
    tester.handle.value_states["meta"].state = meta
    tester.handle.map_states["chunks"].state = chunks
    tester.handle._timers = timers
    tester._currentWatermarkMs = watermark
    tester.handle.setWatermark(watermark)


def rows_of(answers: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for answer in answers:
        block = answer.asDict()["block"]
        if block is not None:
            found += decoded(pa.py_buffer(block)).to_pylist()
    return found


def step(tester: TwsTester, state: Any, watermark: int, rows: list[Row]) -> list[dict[str, Any]]:
    """One micro-batch: input rows, then expired timers."""
    restore(tester, state, watermark)
    return rows_of([*tester.test(KEY, rows), *tester._handleExpiredTimers()])


def run(spec: StreamSpec, folder: Path, seed: int, *, disturbed: bool) -> list[dict[str, Any]]:
    rng, chaos = random.Random(seed), random.Random(seed)
    prefixes = "lr" if isinstance(spec, IntervalStreamSpec) else ""
    has_open = isinstance(spec, IntervalStreamSpec) and spec.left.open is not None
    opened: list[list[tuple[int, int, int]]] | None = [[], []] if has_open else None
    tester = new_tester(spec, folder)
    state = state_of(tester)
    found: list[dict[str, Any]] = []
    for batch in range(BATCHES + 2):
        rows = wire(rng, batch, prefixes, opened) if batch < BATCHES else []
        watermark = 1_000 * batch if batch <= BATCHES else 1_000_000
        while disturbed and chaos.random() < 0.5:
            step(tester, state, watermark, rows)  # an attempt whose state is not committed
            if chaos.random() < 0.5:
                tester = new_tester(spec, folder)
        if disturbed and chaos.random() < 0.3:
            for path in folder.iterdir():
                path.write_bytes(chaos.randbytes(100))
        new = step(tester, state, watermark, rows)
        found += sorted(new, key=str)
        state = state_of(tester)
    return found


@pytest.mark.few
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STREAMS)
def test_failed_attempts_change_no_row(tmp_path: Path, name: str, seed: int) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "disturbed").mkdir()
    spec = STREAMS[name]
    alone = run(spec, tmp_path / "alone", seed, disturbed=False)
    assert len(alone) > BATCHES * (ROWS - 5) // (2 if "semi" in name else 1)
    assert run(spec, tmp_path / "disturbed", seed, disturbed=True) == alone
