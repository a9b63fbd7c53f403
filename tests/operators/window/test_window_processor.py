"""What the processor keeps between pieces, and how it hands out its results."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window import processor as processor_module
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

TYPES = {"x": pa.int64(), "f": pa.float64(), "s": pa.string()}


def make(frame: Frame, *calls: Call, sources: tuple[int, ...] = ()) -> WindowUnionProcessor:
    spec = WindowUnionSpec(("k",), "ts", ("id",), (Window(frame, sources, calls),))
    return WindowUnionProcessor(spec, TYPES, pa.schema([("id", pa.int64())]))


def rows(start: int, end: int, *, source: int = 0) -> Piece:
    """Rows of one group and one source with orders start ... end - 1; x, f and s count them."""
    order = np.arange(start, end)
    payload = pa.RecordBatch.from_pydict({"id": pa.array(order if source == 0 else order[:0])})
    args = {"x": pa.array(order), "f": pa.array(order * 1.0), "s": pa.array([str(i) for i in order], pa.string())}
    return Piece(np.zeros(len(order), np.int64), order, np.full(len(order), source, np.uint8), args, payload)


def drain(processor: WindowUnionProcessor, pieces: list[Piece]) -> tuple[list[dict[str, Any]], int]:
    """(all output rows, the largest number of rows that was kept)."""
    found, most = [], 0
    for i, piece in enumerate(pieces):
        for batch in processor.process(piece, i == len(pieces) - 1):
            found += batch.to_pylist()
        most = max(most, processor.retained_rows)
    return found, most


PIECES = [rows(i, i + 100) for i in range(0, 1000, 100)]


def test_unbounded_windows_keep_no_rows() -> None:
    functions = ("sum", "avg", "min", "max", "distinct_count", "first_value", "last_value")
    calls = [Call(name, ("x",), name) for name in functions]
    calls += [Call("count", (), "count"), Call("sum", ("f",), "fsum"), Call("max", ("s",), "smax")]
    found, most = drain(make(Frame("range", None, 0), *calls), PIECES)
    assert most == 0
    values = (999, 499500, 499.5, 0, 999, 1000, 0, 999, 1000, 499500.0, "999")
    assert found[-1] == dict(zip(("id", *functions, "count", "fsum", "smax"), values, strict=True))


@pytest.mark.parametrize(
    ("frame", "most"),
    [
        (Frame("range", -30, 0), 31),  # the next row may tie with the last
        (Frame("rows", -30, 0), 30),
        (Frame("range", None, 0, maxsize=20), 20),
        (Frame("range", -300, 0, maxsize=20), 20),
        (Frame("range", -30, -10), 31),
        (Frame("rows", 1, 5, start_following=True, end_following=True), 5),
        (Frame("range", -3, 5, end_following=True), 9),
    ],
)
def test_bounded_windows_keep_what_they_may_see(frame: Frame, most: int) -> None:
    found, kept = drain(make(frame, Call("count", (), "n"), Call("min", ("x",), "low")), PIECES)
    assert [row["id"] for row in found] == list(range(1000))
    assert kept <= most


def test_a_key_without_from_rows_keeps_nothing_in_an_unbounded_window() -> None:
    pieces = [*(rows(i, i + 100, source=1) for i in range(0, 500, 100)), rows(500, 501)]
    processor = make(Frame("range", None, 0), Call("sum", ("f",), "f"), Call("max", ("x",), "m"), sources=(1,))
    found, most = drain(processor, pieces)
    assert most == 0
    assert found == [{"id": 500, "f": 125250.0, "m": 500}]


def test_following_rows_are_output_once_they_are_complete() -> None:
    processor = make(Frame("range", 0, 10, end_following=True), Call("count", (), "n"))
    first = [row for batch in processor.process(rows(0, 100), False) for row in batch.to_pylist()]
    assert [row["id"] for row in first] == list(range(89))
    rest = [row for batch in processor.process(rows(100, 100), True) for row in batch.to_pylist()]
    assert [row["n"] for row in rest] == [11, *range(10, 0, -1)]
    assert processor.retained_rows == 0


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_module, "MAX_BATCH_ROWS", 64)
    processor = make(Frame("range", -9, 0), Call("count", (), "n"))
    sizes = [batch.num_rows for batch in processor.process(rows(0, 200), True)]
    assert sizes == [64, 64, 64, 8]
    monkeypatch.setattr(processor_module, "MAX_BATCH_WEIGHT", 50)
    processor = make(Frame("range", -9, 0), Call("frame_rows", ("x",), "r"))
    batches = list(processor.process(rows(0, 200), True))
    assert all(batch.num_rows == 1 or sum(map(len, batch["r"].to_pylist())) <= 50 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 200


def test_empty_partitions() -> None:
    processor = make(Frame("range", -9, 0), Call("count", (), "n"))
    assert list(processor.process(rows(0, 0), False)) == []
    assert list(processor.process(rows(0, 0), True)) == []
    assert processor.output_schema == pa.schema([("id", pa.int64()), ("n", pa.int64())])


def test_a_hot_key_in_numbers() -> None:
    """200,000 rows of one key in uneven pieces, against sums of slices."""
    edges = [0, 1, 7, 50_000, 50_001, 199_999, 200_000]
    pieces = [rows(a, b) for a, b in pairwise(edges)]
    processor = make(Frame("range", -50_000, 0), Call("sum", ("x",), "s"), Call("min", ("f",), "m"))
    batches = [b for i, p in enumerate(pieces) for b in processor.process(p, i == len(pieces) - 1)]
    table = pa.Table.from_batches(batches)
    prefix = np.concatenate([[0], np.cumsum(np.arange(200_000))])
    low = np.maximum(np.arange(200_000) - 50_000, 0)
    assert np.array_equal(table["s"].to_numpy(), prefix[1:] - prefix[low])
    assert np.array_equal(table["m"].to_numpy(), low)


@pytest.mark.parametrize(
    "frame",
    [
        Frame("rows", -1, 0, maxsize=3),
        Frame("range", -1, 0, maxsize=0),
        Frame("range", -1, 5),
        Frame("range", -1, None),
        Frame("range", None, 5, start_following=True, end_following=True),
        Frame("range", 0, -1),
    ],
)
def test_frames_that_the_planner_must_refuse(frame: Frame) -> None:
    with pytest.raises(ValueError, match="bad window frame"):
        make(frame, Call("count", (), "n"))


def test_unknown_function() -> None:
    with pytest.raises(ValueError, match="no window function 'leap'"):
        make(Frame("range", -1, 0), Call("leap", ("x",), "n"))
