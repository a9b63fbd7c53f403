"""The traps of windows over streams, one by one (docs/streams.md)."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

from tests.operators.exchange.memory_chunks import MemoryChunks

Rows = list[tuple[int, Any, int | None, Any]]
CALLS = (Call("sum", ("v",), "s"), Call("count", ("v",), "n"), Call("count", (), "rows"))


class Stream:
    """A window over FROM (tag 0) and one union (tag 1); keys are of type `key`, values bigint or `value`."""

    def __init__(
        self,
        frame: Frame,
        calls: tuple[Call, ...] = CALLS,
        *,
        key: pa.DataType | None = None,
        value: pa.DataType | None = None,
        condense_from: int = 0,
    ) -> None:
        sequence = SequenceSpec(("k",), "ts", ("v",), ("id", "ts"))
        window = WindowUnionSpec(("k",), "ts", ("id", "ts"), (Window(frame, (1,), calls),))
        self.operator = WindowStreamSpec(WindowOperatorSpec(sequence, window, 2), condense_from=condense_from).stream()
        self.schema = pa.schema(
            [
                ("id", pa.int64()),
                ("k", key or pa.int64()),
                ("ts", pa.timestamp("us", "UTC")),
                ("v", value or pa.int64()),
            ]
        )
        self.store, self.progress, self.count = MemoryChunks(), Progress(), 0

    def step(self, rows: Rows, watermark: int | None) -> list[dict[str, Any]]:
        """(tag, key, time, value) in the order of arrival; the results that have become final, by id."""
        blocks = []
        for tag in (0, 1):
            chosen = [(self.count + n, *row[1:]) for n, row in enumerate(rows) if row[0] == tag]
            columns = [pa.array([row[i] for row in chosen], field.type) for i, field in enumerate(self.schema)]
            blocks += (
                [Block(0, tag, self.count, pa.RecordBatch.from_arrays(columns, schema=self.schema))] if chosen else []
            )
        self.count += len(rows)
        found = list(self.operator.step(self.store, blocks, watermark, self.progress))
        if watermark is not None:
            self.store.watermark = max(watermark, self.store.watermark or watermark)
        return sorted((row for batch in found for row in batch.to_pylist()), key=lambda row: int(row["id"]))


def test_both_bounds_are_closed() -> None:
    stream = Stream(Frame("range", -10, 5, end_following=True))
    rows: Rows = [(0, 1, 100, 0), (1, 1, 89, 1), (1, 1, 90, 2), (1, 1, 105, 4), (1, 1, 106, 8)]
    assert [row["s"] for row in [*stream.step(rows, None), *stream.step([], 200)]] == [6]


def test_a_row_waits_until_the_watermark_is_past_what_follows() -> None:
    stream = Stream(Frame("range", -10, 5, end_following=True))
    assert stream.step([(0, 1, 100, 1)], 105) == []
    assert stream.operator.wakes_at(stream.store) == 106
    # at the watermark: not late, and in the window
    assert stream.step([(1, 1, 105, 2)], 105) == []
    assert [row["s"] for row in stream.step([], 106)] == [3]


def test_a_row_at_the_watermark_is_not_late_and_one_below_is() -> None:
    stream = Stream(Frame("range", -10, 0))
    stream.step([], 100)
    stream.step([(0, 1, 100, 1), (0, 1, 99, 2)], 100)
    assert stream.progress.late == 1
    assert [row["s"] for row in stream.step([], 101)] == [1]


def test_rows_that_are_late_inside_a_batch_are_kept() -> None:
    """The batch itself brings the watermark past them, but nothing has been answered before."""
    stream = Stream(Frame("range", -10, 0))
    stream.step([], 50)
    found = stream.step([(0, 1, 95, 1), (0, 1, 51, 2), (1, 1, 50, 4)], 100)
    assert [row["s"] for row in found] == [1, 6]
    assert stream.progress.late == 0


def test_an_idle_input_keeps_its_rows_until_the_watermark_moves() -> None:
    stream = Stream(Frame("range", -10, 0))
    for time in range(100, 200, 10):
        assert stream.step([(0, 1, time, 1)], 90) == []
    assert len(stream.step([], 1000)) == 10
    assert not list(stream.store.all())


def test_empty_windows_count_nothing_and_sum_nothing() -> None:
    stream = Stream(Frame("range", -10, -1))
    stream.step([(0, 1, 100, 7)], None)
    (row,) = stream.step([], 200)
    assert (row["s"], row["n"], row["rows"]) == (None, 0, 0)


def test_equal_rows_are_all_kept() -> None:
    stream = Stream(Frame("range", -10, 0))
    rows: Rows = [(1, 1, 100, 1)] * 3 + [(0, 1, 100, 1)] * 2
    found = [*stream.step(rows, None), *stream.step([], 200)]
    # earlier FROM rows of the same time are in the window, later ones are not
    assert [row["rows"] for row in found] == [4, 5]


def test_null_keys_are_one_key_and_null_times_are_counted() -> None:
    stream = Stream(Frame("range", -10, 0))
    rows: Rows = [(0, None, 100, 1), (1, None, 99, 2), (1, 0, 99, 4), (0, 1, None, 8)]
    assert [row["s"] for row in [*stream.step(rows, None), *stream.step([], 200)]] == [3]
    assert stream.progress.timeless == 1


def test_nan_and_the_two_zeros_are_keys_as_in_grouping() -> None:
    stream = Stream(Frame("range", -10, 0), key=pa.float64())
    rows: Rows = [(0, math.nan, 100, 1), (1, -math.nan, 99, 2), (0, 0.0, 100, 4), (1, -0.0, 99, 8)]
    assert [row["s"] for row in [*stream.step(rows, None), *stream.step([], 200)]] == [3, 12]


def test_times_before_1970() -> None:
    stream = Stream(Frame("range", -10, 0))
    rows: Rows = [(0, 1, -100, 1), (1, 1, -110, 2), (1, 1, -111, 4), (0, 1, 3, 8), (1, 1, -7, 16)]
    assert [row["s"] for row in [*stream.step(rows, None), *stream.step([], 200)]] == [3, 24]


def test_windows_longer_than_time_itself() -> None:
    stream = Stream(Frame("range", -(2**63 - 1), 0))
    stream.step([(1, 1, -(2**60), 1), (0, 1, 2**50, 2)], None)
    assert [row["s"] for row in stream.step([], 2**50 + 1)] == [3]


def test_a_row_is_given_out_once() -> None:
    stream = Stream(Frame("range", -10, 0))
    found = stream.step([(0, 1, time, 1) for time in range(100)], None)
    for watermark in (10, 10, 55, 55, 54, 99, 500, 500):
        found += stream.step([], watermark)
    assert sorted(row["id"] for row in found) == list(range(100))


@pytest.mark.parametrize(("excluded", "sums"), [(False, [1, 3, 7]), (True, [None, 1, 3])])
def test_a_stream_joined_with_itself(excluded: bool, sums: list[int | None]) -> None:
    """FROM and UNION are the same stream: the current row is in its own window unless it is excluded."""
    stream = Stream(Frame("range", -10, 0, exclude_current_row=excluded, instance_not_in_window=False))
    rows: Rows = [(0, 1, 100, 1), (0, 1, 101, 2), (0, 1, 102, 4)]
    assert [row["s"] for row in [*stream.step(rows, None), *stream.step([], 200)]] == sums


@pytest.mark.parametrize("condense_from", [0, 10**9])
def test_sums_of_doubles_do_not_drift(condense_from: int) -> None:
    """A huge value that has left the window leaves no error behind."""
    stream = Stream(
        Frame("range", -50, 0), (Call("sum", ("v",), "s"),), value=pa.float64(), condense_from=condense_from
    )
    found = stream.step([(1, 1, 0, 1e18), (1, 1, 1, -1e18), (1, 1, 2, 0.1)], None)
    for time in range(3, 200, 3):
        found += stream.step([(0, 1, time, 0.5)], time)
    sums = {row["id"]: row["s"] for row in [*found, *stream.step([], 1000)]}
    assert sums[3] == 0.6
    assert list(sums.values())[-1] == 0.5 * 17


@pytest.mark.parametrize("condense_from", [0, 10**9])
def test_maxsize_takes_the_newest_rows_of_all_batches(condense_from: int) -> None:
    stream = Stream(Frame("range", -100, 0, maxsize=3), condense_from=condense_from)
    found = []
    for time in range(0, 60, 10):
        found += stream.step([(1, 1, time, time), (0, 1, time + 5, 1)], time)
    sums = [row["s"] for row in [*found, *stream.step([], 1000)]]
    assert sums[-1] == 1 + 50 + 1
