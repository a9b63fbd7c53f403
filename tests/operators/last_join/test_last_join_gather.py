"""The exchange of a LAST JOIN without Spark: scatter, any order of arrival, any memory budget, against the twin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.exchange.blocks import Block, BlockSpools
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.scatter import MatchRouter, Router, ScatterSpec, scatter
from sqlext_operators.last_join.operator import LastJoinOperatorSpec
from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, RightSide

from tests.operators.exchange.placements import placements
from tests.operators.last_join import reference
from tests.properties import examples

LEFT = pa.schema([("id", pa.int64()), ("k", pa.string()), ("j", pa.int32()), ("x", pa.int64())])
RIGHT = pa.schema([("rid", pa.int64()), ("rk", pa.string()), ("rj", pa.int64()), ("o", pa.int64()), ("x", pa.int64())])
PARTITIONS = 3


def spec_of(null_safe: Sequence[bool], keys: int, rights: int) -> LastJoinSpec:
    right_keys, safe = ("rk", "rj")[:keys], tuple(null_safe[:keys])
    sides = [
        RightSide(right_keys, safe, ("rid",), ("o",), (False,), (JoinComparison("x", ">=", "o"),)),
        RightSide(right_keys, tuple(not item for item in safe), ("rid", "x")),
    ]
    return LastJoinSpec(("k", "j")[:keys], ("id", "k"), tuple(sides[:rights]))


def rows_of(schema: pa.Schema, count: int, seed: int) -> pa.RecordBatch:
    random_ = random.Random(seed)
    columns: list[Any] = [list(range(count))]
    columns.append([random_.choice(["a", "b", "c", "", None]) for _ in range(count)])
    columns += [[random_.choice([0, 1, 2, None]) for _ in range(count)] for _ in schema.names[2:]]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wires_of(tag: int, rows: pa.RecordBatch, router: Router, block_bytes: int) -> list[pa.RecordBatch]:
    """What two tasks send of one input."""
    spec = ScatterSpec(tag, tuple(rows.schema.names), router, PARTITIONS, block_bytes)
    half = rows.num_rows // 2
    parts = (rows.slice(0, half), rows.slice(half))
    return [wire for number, part in enumerate(parts) for wire in scatter(spec, number, [part])]


def router_of(keys: tuple[str, ...], null_safe: tuple[bool, ...], placement: Placement | None, *, keep: bool) -> Router:
    """By the hash of the keys, or by a placement of which the left side owns its rows."""
    if placement is None:
        return MatchRouter(keys, null_safe, keep)
    return PlacedRouter(keys, None, PlacedRows(placement), "owned" if keep else "copies", null_safe, keep)


def join(
    join_spec: LastJoinSpec,
    left: pa.RecordBatch,
    rights: list[pa.RecordBatch],
    seed: int,
    memory: int,
    block: int,
    placement: Placement | None = None,
) -> list[tuple[Any, ...]]:
    """The joined rows of all partitions; blocks arrive in random order."""
    any_safe = tuple(any(side.null_safe[i] for side in join_spec.rights) for i in range(len(join_spec.keys)))
    wires = wires_of(0, left, router_of(join_spec.keys, any_safe, placement, keep=True), block)
    for tag, (side, rows) in enumerate(zip(join_spec.rights, rights, strict=True), 1):
        wires += wires_of(tag, rows, router_of(side.keys, side.null_safe, placement, keep=False), block)
    rows_on_wire = [wire.slice(i, 1) for wire in wires for i in range(wire.num_rows)]
    random.Random(seed).shuffle(rows_on_wire)
    spec = LastJoinOperatorSpec(join_spec, left.schema, tuple(rows.schema for rows in rights), memory, batch_rows=7)
    result: list[tuple[Any, ...]] = []
    for partition in range(PARTITIONS):
        own = [wire for wire in rows_on_wire if wire.column(0)[0].as_py() == partition]
        for batch in run_operator(spec, partition, own):
            assert 0 < batch.num_rows <= 7
            result += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return result


@given(
    st.tuples(st.booleans(), st.booleans()),
    st.integers(0, 2),
    st.integers(1, 2),
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 10)),
    st.integers(0, 1000),
    st.sampled_from([1, 300, 1 << 20]),
    st.sampled_from([64, 4096]),
)
@examples(150)
def test_gather_agrees_with_twin(
    null_safe: tuple[bool, bool],
    keys: int,
    rights: int,
    counts: tuple[int, int, int],
    seed: int,
    memory: int,
    block: int,
) -> None:
    spec = spec_of(null_safe, keys, rights)
    left = rows_of(LEFT, counts[0], seed)
    others = [rows_of(RIGHT, count, seed + 1 + place) for place, count in enumerate(counts[1 : 1 + rights])]
    expected = reference.last_join(spec, left.to_pylist(), [rows.to_pylist() for rows in others])
    found = join(spec, left, others, seed, memory, block)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(st.tuples(st.booleans(), st.booleans()), st.integers(0, 2), st.integers(0, 1000), st.data())
@examples(100, share=8)
def test_a_placement_agrees_with_twin(null_safe: tuple[bool, bool], keys: int, seed: int, data: st.DataObject) -> None:
    spec = spec_of(null_safe, keys, 2)
    left, others = rows_of(LEFT, 30, seed), [rows_of(RIGHT, 30, seed + 1), rows_of(RIGHT, 30, seed + 2)]
    values = [(k, j) for k in ("a", "b", "c", "", None) for j in (0, 1, 2, None)]
    columns = [pa.array([k for k, _ in values], pa.string()), pa.array([j for _, j in values], pa.int32())]
    placement = data.draw(placements(columns[:keys], None, PARTITIONS))
    expected = reference.last_join(spec, left.to_pylist(), [rows.to_pylist() for rows in others])
    found = join(spec, left, others, seed, data.draw(st.sampled_from([1, 1 << 20])), 64, placement)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_left_rows_without_a_key_are_spread_and_right_ones_are_dropped() -> None:
    batch = pa.RecordBatch.from_pydict({"k": pa.array([None] * 90 + ["a"] * 10)})
    kept = MatchRouter(("k",), (False,), keep=True).route(batch, 3)
    assert kept.rows is None
    assert np.bincount(kept.pids[:90]).tolist() == [30, 30, 30]
    dropped = MatchRouter(("k",), (False,), keep=False).route(batch, 3)
    assert dropped.rows is not None
    assert dropped.rows.tolist() == list(range(90, 100))
    assert set(dropped.pids.tolist()) == set(kept.pids[90:].tolist())
    safe = MatchRouter(("k",), (True,), keep=False).route(batch, 3)
    assert safe.rows is None
    assert len(set(safe.pids[:90].tolist())) == 1


def test_spools_give_blocks_back_in_order_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with BlockSpools() as spools:
        assert list(spools.read("none")) == []
        for number in range(5):
            batch = pa.RecordBatch.from_pydict({"v": list(range(number))})
            spools.add("x" if number % 2 else "y", Block(3, 1, 100 - number, batch))
        for _ in range(2):
            assert [block.seq for block in spools.read("x")] == [99, 97]
            assert [block.batch.num_rows for block in spools.read("y")] == [0, 2, 4]
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_files_are_removed_when_the_consumer_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIMIT closes the generator; an error in the task does too."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    spec = spec_of((False, False), 1, 1)
    left, right = rows_of(LEFT, 60, 1), rows_of(RIGHT, 60, 2)
    wires = wires_of(0, left, MatchRouter(("k",), (False,), keep=True), 64)
    wires += wires_of(1, right, MatchRouter(("rk",), (False,), keep=False), 64)
    gather_spec = LastJoinOperatorSpec(spec, LEFT, (RIGHT,), memory_bytes=1)
    batches = run_operator(gather_spec, 0, wires)
    next(batches)
    assert len(list(tmp_path.iterdir())) == 1
    batches.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
