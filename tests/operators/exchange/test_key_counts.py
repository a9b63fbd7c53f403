"""What a bucket of a stream tells about its keys."""

from __future__ import annotations

import pyarrow as pa
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.stream_placement import MOST_KEYS, BucketReport, CountedInputs


def block(tag: int, keys: list[int | None], copies: list[bool] | None = None) -> Block:
    batch = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "s": ["x"] * len(keys)})
    return Block(0, tag, 0, batch if copies is None else with_column(batch, COPY, pa.array(copies)))


def test_rows_are_counted_by_input_and_key_and_copies_are_not() -> None:
    blocks = [block(0, [1, 2, 1]), block(1, [1, None, None, 2], [False, False, True, True]), block(1, [])]
    rows, keys = CountedInputs((("k",), ("k",))).of(blocks)
    assert rows == (3, 2)
    assert {item.name: item.rows for item in keys} == {"1": (2, 1), "2": (1, 0), "NULL": (0, 1)}
    assert keys[0].key == int(hash_keys([pa.array([1], pa.int64())])[0])


def test_the_owned_input_comes_first_and_each_input_has_its_keys() -> None:
    other = Block(0, 2, 0, pa.RecordBatch.from_pydict({"j": pa.array([1, 1, 1], pa.int64())}))
    found = CountedInputs((("k",), ("k",), ("j",)), owned=2).of([block(0, [1, 1]), block(1, [1]), other])
    assert found[0] == (3, 2, 1)
    assert [item.rows for item in found[1]] == [(3, 2, 1)]


def test_only_keys_with_many_rows_are_told() -> None:
    even = [block(0, list(range(1000)))]
    assert CountedInputs((("k",),)).of(even) == ((1000,), ())
    _, few = CountedInputs((("k",),)).of([block(0, [n % 20 for n in range(1000)])])
    assert len(few) == MOST_KEYS
    assert CountedInputs((("k",),)).of([]) == ((0,), ())


def test_without_keys_all_rows_have_one() -> None:
    rows, keys = CountedInputs(((),)).of([block(0, [1, 2])])
    assert rows == (2,)
    assert [(item.key, item.rows) for item in keys] == [(0, (2,))]


def test_long_keys_are_cut_and_reports_are_read_back() -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["y" * 100]})
    rows, keys = CountedInputs((("k",),)).of([Block(3, 0, 0, batch)])
    assert keys[0].name == "y" * 40 + "..."
    report = BucketReport(3, 7, None, -5, None, rows, keys)
    assert BucketReport.of_text(report.to_text()) == report
