"""Operators take blocks in any order, in memory or from disk, and give the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.exchange.blocks import Block, WireBatch, decode
from sqlext_operators.exchange.operator import CollectedInput, Collector, OperatorSpec, run_operator
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.umjoin.operator import MultiwayOperatorSpec
from sqlext_operators.umjoin.spec import MultiwayJoinSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

from tests.operators.umjoin.test_umjoin_operator import wires_of
from tests.operators.umjoin.umjoin_data import joins
from tests.operators.window.window_data import frames
from tests.properties import examples

CALLS = (
    Call("sum", ("v",), "total"),
    Call("min", ("v",), "least"),
    Call("count", (), "rows"),
    Call("distinct_count", ("v",), "kinds"),
)


def window_spec(frame: Frame, unions: int, memory_bytes: int) -> WindowOperatorSpec:
    """One window over FROM and all union sources."""
    sequence = SequenceSpec(("k",), "ts", ("v",), ("k", "ts", "v"), memory_bytes=memory_bytes, piece_rows=5)
    window = Window(frame, tuple(range(1, unions + 1)), CALLS)
    return WindowOperatorSpec(sequence, WindowUnionSpec(("k",), "ts", ("k", "ts", "v"), (window,)), unions + 1, 7)


rows_of_inputs = st.lists(
    st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers(-4, 4), st.none() | st.integers(-9, 9)), max_size=20),
    min_size=1,
    max_size=3,
)


def blocks_of(wires: Iterable[pa.RecordBatch]) -> list[Block]:
    return [block for wire in wires for block in decode(wire)]


def window_blocks(inputs: Sequence[Sequence[tuple[Any, ...]]]) -> list[Block]:
    """The blocks of one partition, a few rows each."""
    schema = pa.schema([("k", pa.int32()), ("ts", pa.int64()), ("v", pa.int64())])
    found: list[Block] = []
    for tag, rows in enumerate(inputs):
        columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        parts = [batch.slice(start, 3) for start in range(0, len(rows), 3)]
        found += blocks_of(scatter(ScatterSpec(tag, ("k", "ts", "v"), KeyRouter(("k",)), 1, 32), 0, parts))
    return found


def results(batches: Iterable[pa.RecordBatch]) -> Counter[str]:
    """The rows of batches, each as text: NaN and lists have no equality."""
    found: Counter[str] = Counter()
    for batch in batches:
        found.update(map(str, batch.to_pylist()) if batch.num_columns else ["{}"] * batch.num_rows)
    return found


def whole(spec: OperatorSpec, blocks: Sequence[Block]) -> Counter[str]:
    """The results of one operator, by its entry point on the workers."""
    wires = []
    for block in blocks:
        wire = WireBatch()
        wire.add(block)
        wires.append(wire.finish())
    return results(run_operator(spec, 0, wires))


@given(rows_of_inputs, frames(), st.sampled_from([1, 300, 1 << 20]), st.data())
@examples(60)
def test_a_window_operator_takes_blocks_in_any_order(
    inputs: list[list[tuple[Any, ...]]], frame: Frame, memory: int, data: st.DataObject
) -> None:
    spec = window_spec(frame, len(inputs) - 1, memory)
    blocks = window_blocks(inputs)
    shuffled = data.draw(st.permutations(blocks))
    expected = whole(spec, blocks)
    assert sum(expected.values()) == len(inputs[0])
    assert whole(spec, shuffled) == expected


@given(joins(), st.sampled_from([1, 400, 1 << 20]), st.data())
@examples(60)
def test_a_multi_way_join_takes_blocks_in_any_order(
    join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], memory: int, data: st.DataObject
) -> None:
    joined, tables = join
    spec = MultiwayOperatorSpec(joined, tuple(rows.schema for rows in tables), memory, 7)
    blocks = blocks_of(wires_of(joined, tables, (1,) * joined.classes, 1, 64))
    assert whole(spec, data.draw(st.permutations(blocks))) == whole(spec, blocks)


@pytest.mark.parametrize("memory", [1, 100, 1 << 20])
def test_a_collector_hands_out_all_that_it_took_in(memory: int) -> None:
    """Also what streams, and what is not cut; and every part has the rows that meet."""
    blocks = window_blocks([[(i % 5, i, i) for i in range(40)]] * 3)
    inputs = [CollectedInput(("k",), streams=True), CollectedInput(("k",)), CollectedInput(())]
    with Collector(inputs, memory) as collector:
        for block in blocks:
            collector.add(block)
        parts = [[list(part.blocks(tag)) for tag in range(3)] for part in collector.parts()]
    cut = results(block.batch for part in parts for tag in (0, 1) for block in part[tag])
    assert cut == results(block.batch for block in blocks if block.tag < 2)
    for part in parts:
        assert results(block.batch for block in part[2]) == results(block.batch for block in blocks if block.tag == 2)
    keys = [{k for tag in (0, 1) for block in part[tag] for k in block.batch.column("k").to_pylist()} for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys)) == 5
