"""What a deployment takes of the state of a stream's window: every row that a later window may hold, in its order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.bucket_state import BucketState
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.expressions.nodes import TaskColumn
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.serving.steps import InputSpec, ProjectStep
from sqlext_operators.serving.store import KeptSpec
from sqlext_operators.serving.streamed import Bucket, StreamedWindow, as_kept, computed, one_of_each
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

from tests.operators.exchange.memory_chunks import MemoryChunks

BACK, AHEAD, NEWEST = 40, 5, 3
WINDOW = WindowUnionSpec(
    ("k",),
    "ts",
    ("id", "ts"),
    (
        Window(Frame("range", -BACK, AHEAD, end_following=True), (1,), (Call("sum", ("v",), "s"),)),
        Window(Frame("rows", -NEWEST, 0), (1,), (Call("first_value", ("v",), "f"),)),
    ),
)
SPEC = WindowOperatorSpec(SequenceSpec(("k",), "ts", ("v",), ("id", "ts")), WINDOW, 2)
Row = tuple[int, int, int, int]


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = {name: pa.array([row[n] for row in rows], pa.int64()) for n, name in enumerate(("id", "k", "ts", "v"))}
    return pa.RecordBatch.from_pydict(columns)


def after(steps: int, seed: int) -> tuple[Bucket, list[list[Row]], int]:
    """A bucket after some micro-batches, the rows of its inputs that were in time, and its watermark."""
    rng = random.Random(seed)
    stream, store = WindowStreamSpec(SPEC).stream(), MemoryChunks()
    rows: list[list[Row]] = [[], []]
    watermark = 0
    for step in range(steps):
        blocks = []
        for tag in range(2):
            new = [(rng.randrange(3), 10 * step + rng.randrange(-8, 12)) for _ in range(rng.randrange(12))]
            numbered = [(n, key, time, 1000 * step + n) for n, (key, time) in enumerate(new)]
            rows[tag] += [row for row in numbered if row[2] >= watermark]
            if numbered:
                blocks.append(Block(0, tag, 1000 * step, batch(numbered)))
        mark = max(watermark, 10 * step - 9)
        list(stream.step(store, blocks, mark, Progress()))
        store.watermark = watermark = mark
    state = BucketState("{}", "o", watermark, store.next_no, None, 0, store.index())
    return Bucket(state, store.data), rows, watermark


@pytest.mark.parametrize("seed", range(20))
def test_every_row_that_a_later_window_may_hold_is_there(seed: int) -> None:
    bucket, rows, watermark = after(12, seed)
    streamed = StreamedWindow(WINDOW, 2)
    cutoff = streamed.cutoff([bucket.state])
    assert cutoff == watermark - BACK - AHEAD
    for tag in (0, 1):
        stored = streamed.rows(bucket, tag)
        assert stored is not None
        found = list(zip(*(stored.column(name).to_pylist() for name in ("k", "ts", "v")), strict=True))
        every = sorted((row[1:] for row in rows[tag]), key=lambda row: row[1])
        assert [row for row in found if row[1] >= cutoff] == [row for row in every if row[1] >= cutoff]
        for key in range(3):
            older = [row for row in every if row[0] == key and row[1] < cutoff][-NEWEST:]
            there = [row for row in found if row[0] == key and row[1] < cutoff][-NEWEST:]
            assert there == older
    waiting = [row for part in streamed.waiting(bucket) for row in part.to_pylist()]
    assert Counter(row["v"] for row in waiting) == Counter(row[3] for row in rows[0] if row[2] >= watermark - AHEAD)
    assert all(row.keys() == {"id", "k", "ts", "v"} for row in waiting)


def test_a_bucket_without_a_watermark_lacks_rows_without_a_time_only() -> None:
    state = BucketState("{}", "o", None, 0, None, 0, MemoryChunks().index())
    streamed = StreamedWindow(WINDOW, 2)
    assert streamed.cutoff([state]) == np.iinfo(np.int64).min + 1
    assert streamed.rows(Bucket(state, {}), 1) is None


def test_a_damaged_chunk_is_told() -> None:
    bucket, _, _ = after(6, 1)
    damaged = {number: data[:-1] for number, data in bucket.chunks.items()}
    with pytest.raises(TaskError, match="damaged"):
        StreamedWindow(WINDOW, 2).rows(Bucket(bucket.state, damaged), 0)
    with pytest.raises(TaskError, match="lacks chunk"):
        StreamedWindow(WINDOW, 2).rows(Bucket(bucket.state, {}), 0)
    with pytest.raises(TaskError, match="list of the stream's chunks cannot be read"):
        StreamedWindow(WINDOW, 2).rows(
            Bucket(BucketState("{}", "o", 1, 0, None, 0, bucket.state.index[:90]), bucket.chunks), 0
        )


def test_a_row_of_the_state_says_what_it_was_made_of() -> None:
    state = BucketState("{}", "o", 5, 9, None, 2, MemoryChunks().index())
    assert BucketState.of(state.row) == state
    changed = list(state.row)
    changed[3] = 6
    with pytest.raises(TaskError, match="damaged"):
        BucketState.of(changed)
    with pytest.raises(TaskError, match="in format 99"):
        BucketState.of((99, *state.row[1:]))


def test_of_each_key_and_time_the_bucket_with_the_most_rows_is_taken() -> None:
    rows = [(n, n % 2, n // 4, 100 + n) for n in range(24)]
    # the first bucket lacks the newest rows, the second one the oldest, and one copy of the middle
    first, second, third = rows[:16], rows[6:], rows[:0]
    parts = [batch(part).select(["k", "ts", "v"]) for part in (first, third, second)]
    taken = one_of_each(parts, ["k"], "ts")
    found = sorted(zip(*(taken.column(name).to_pylist() for name in ("ts", "k", "v")), strict=True))
    assert found == sorted((row[2], row[1], row[3]) for row in rows)
    assert one_of_each([parts[1]], ["k"], "ts").num_rows == 0
    without_keys = one_of_each(parts, [], "ts")
    assert Counter(without_keys.column("ts").to_pylist()) == Counter(row[2] for row in rows)


def test_columns_are_those_of_the_input() -> None:
    given = pa.RecordBatch.from_pydict(
        {
            "a": pa.array(["x", "y", "x"]).dictionary_encode(),
            "t": pa.array([1, 2, 3], pa.timestamp("us", "Europe/Berlin")),
        }
    )
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("a", pa.string())])
    assert as_kept(given, schema).schema == schema
    for other in (("b", pa.string()), ("a", pa.int64()), ("t", pa.timestamp("us"))):
        with pytest.raises(TaskError, match="other columns than the deployment keeps") as caught:
            as_kept(given, pa.schema([other]))
        assert caught.value.condition == "checkpoint-mismatch"


def test_rows_that_wait_go_through_the_steps_behind_them() -> None:
    number = pa.int64()
    steps = (
        ProjectStep((("t.k", TaskColumn("k", number)), ("t.v", TaskColumn("v", number)))),
        ProjectStep((("q.key", TaskColumn("t.k", number)), ("q.v", TaskColumn("t.v", number)))),
        ProjectStep((("x", TaskColumn("q.v", number)),)),
    )
    item = InputSpec("t", steps, KeptSpec(pa.schema([("x", number)]), (), None))
    for names in (("t.k", "t.v"), ("q.key", "q.v"), ("q.v",)):
        rows = pa.RecordBatch.from_pydict({name: pa.array([7], number) for name in names})
        assert computed(rows, item).to_pylist() == [{"x": 7}]
    with pytest.raises(TaskError, match="the rows that wait have k, v only"):
        computed(pa.RecordBatch.from_pydict({"k": pa.array([7]), "v": pa.array([7])}), item)
