"""Rows that arrive late, and an operator that is fed with them step by step, for tests of early answers of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlext_operators.early_windows.stream import EarlyWindowSpec
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

from tests.operators.exchange.memory_chunks import MemoryChunks

BOUNDS = ("lower", "upper", "coverage", "reliable")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("ts", pa.int64()), ("v", pa.int64()), ("x", pa.float64())])
CALLS = (("n", "count", ()), ("m", "count", ("v",)), ("s", "sum", ("v",)), ("a", "avg", ("x",)))


@dataclass(frozen=True)
class Row:
    """A row of an input: its number, key, time, and values."""

    tag: int
    id: int
    key: int | None
    time: int | None
    whole: int | None = None
    double: float | None = None


@dataclass(frozen=True)
class Step:
    """What comes in a micro-batch, and the watermark that is known then."""

    watermark: int | None
    rows: tuple[Row, ...]


def operator_of(frames: Sequence[tuple[Frame, tuple[int, ...]]], inputs: int = 2) -> WindowOperatorSpec:
    """All calls over each frame, which is over FROM and some of the unions."""
    windows = tuple(
        Window(frame, sources, tuple(Call(function, args, f"{name}{place}") for name, function, args in CALLS))
        for place, (frame, sources) in enumerate(frames)
    )
    payload = ("id", "k", "ts")
    sequence = SequenceSpec(("k",), "ts", ("v", "x"), payload, piece_rows=7)
    return WindowOperatorSpec(sequence, WindowUnionSpec(("k",), "ts", payload, windows), inputs, 5)


def spec_of(
    operator: WindowOperatorSpec, delay: int, estimator: str = "shrink", condense_from: int = 20_000, lag: int = 0
) -> EarlyWindowSpec:
    outputs = [call.output for window in operator.window.windows for call in window.calls]
    bounds = tuple(tuple(f"{name}_{bound}" for bound in BOUNDS) for name in outputs)
    windows = WindowStreamSpec(operator, condense_from=condense_from)
    return EarlyWindowSpec(windows, bounds, "phase", delay, estimator, 0.95, lag)  # type: ignore[arg-type]


def blocks(rows: Sequence[Row], seq: int = 0) -> list[Block]:
    """One block for each input."""
    found = []
    for tag in sorted({row.tag for row in rows}):
        own = [row for row in rows if row.tag == tag]
        values = [(row.id, row.key, row.time, row.whole, row.double) for row in own]
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*values, strict=True), SCHEMA, strict=True)]
        found.append(Block(0, tag, seq, pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)))
    return found


class Run:
    """A stream's operator that is fed step by step; with `again` every step is done twice, in a new process."""

    def __init__(self, spec: EarlyWindowSpec | WindowStreamSpec, *, again: bool = False) -> None:
        self.spec = spec
        self.store = MemoryChunks()
        self.progress = Progress()
        self.again = again
        self.seq = 0

    def step(self, step: Step) -> list[dict[str, Any]]:
        attempts = []
        for _ in range(1 + self.again):
            store = self.store
            if self.again:
                store = MemoryChunks(self.store.index(), self.store.data)
                store.watermark, store.next_no = self.store.watermark, self.store.next_no
            progress = replace(self.progress)
            found = self.spec.stream().step(store, blocks(step.rows, self.seq), step.watermark, progress)
            attempts.append([row for batch in found for row in batch.to_pylist()])
        assert repr(attempts[0]) == repr(attempts[-1])
        if step.watermark is not None:
            store.watermark = max(step.watermark, step.watermark if store.watermark is None else store.watermark)
        self.store, self.progress = store, progress
        self.seq += len(step.rows)
        return attempts[0]
