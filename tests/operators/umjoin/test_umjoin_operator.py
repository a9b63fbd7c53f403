"""The exchange of a multi-way join without Spark: Shares routing to cells, any order of arrival, any memory budget,
against the twin."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
from sqlext_operators.exchange.scatter import KeyRouter, Router, ScatterSpec, scatter
from sqlext_operators.umjoin.operator import MultiwayOperatorSpec
from sqlext_operators.umjoin.shares_routing import SharesRouter
from sqlext_operators.umjoin.spec import COUNT, MultiwayInput, MultiwayJoinSpec

from tests.operators.exchange.placements import placements
from tests.operators.umjoin.umjoin_data import check_schema, expected_rows, found_rows, joins
from tests.properties import examples

BATCH_ROWS = 7


def wires_of(
    spec: MultiwayJoinSpec, tables: Sequence[pa.RecordBatch], shares: tuple[int, ...], partitions: int, block: int
) -> list[pa.RecordBatch]:
    """What two tasks send of each input, one wire row a batch."""
    return routed(tables, [SharesRouter.of(item, shares) for item in spec.inputs], partitions, block)


def routed(
    tables: Sequence[pa.RecordBatch], routers: Sequence[Router], partitions: int, block: int
) -> list[pa.RecordBatch]:
    """What two tasks send of each input by these routers."""
    wires = []
    for tag, (router, rows) in enumerate(zip(routers, tables, strict=True)):
        sent = ScatterSpec(tag, tuple(rows.schema.names), router, partitions, block)
        half = rows.num_rows // 2
        for number, part in enumerate((rows.slice(0, half), rows.slice(half))):
            wires += list(scatter(sent, number, [part]))
    return [wire.slice(i, 1) for wire in wires for i in range(wire.num_rows)]


def exchanged(
    spec: MultiwayJoinSpec,
    tables: Sequence[pa.RecordBatch],
    shares: tuple[int, ...],
    seed: int,
    memory: int,
    tasks: int,
    block: int = 64,
) -> Counter[tuple[Any, ...]]:
    """The join by way of all cells, some of them in one task; blocks arrive in random order."""
    partitions = int(np.prod(shares)) + 1
    wires = wires_of(spec, tables, shares, partitions, block)
    random.Random(seed).shuffle(wires)
    return found_of(spec, tables, wires, partitions, tasks, memory)


def found_of(
    spec: MultiwayJoinSpec,
    tables: Sequence[pa.RecordBatch],
    wires: Sequence[pa.RecordBatch],
    partitions: int,
    tasks: int,
    memory: int,
) -> Counter[tuple[Any, ...]]:
    """The join of what arrives."""
    gather = MultiwayOperatorSpec(spec, tuple(rows.schema for rows in tables), memory, BATCH_ROWS)
    check_schema(spec, tables, gather.output)
    found: Counter[tuple[Any, ...]] = Counter()
    for task in range(min(tasks, partitions)):
        own = [wire for wire in wires if wire.column(0)[0].as_py() % min(tasks, partitions) == task]
        batches = list(run_operator(gather, task, own))
        assert all(batch.schema == gather.output for batch in batches if gather.output.names)
        if gather.output.names == [COUNT]:
            assert len(batches) <= 1
        found += found_rows(spec, batches, BATCH_ROWS)
    return found


@given(joins(), st.data())
@examples(100, share=8)
def test_exchange_agrees_with_twin(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], data: st.DataObject) -> None:
    spec, tables = join
    shares = tuple(data.draw(st.integers(1, 3)) for _ in range(spec.classes))
    seed, tasks = data.draw(st.integers(0, 1000)), data.draw(st.sampled_from([1, 3, 1000]))
    memory = data.draw(st.sampled_from([200, 600, 1 << 20]))
    assert exchanged(spec, tables, shares, seed, memory, tasks) == expected_rows(spec, tables)


@given(joins(shared=True), st.data())
@examples(100, share=8)
def test_a_placement_agrees_with_twin(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], data: st.DataObject) -> None:
    """One inner input is split, the others are copied; all by one of the shared keys."""
    spec, tables = join
    assert spec.shared
    split = data.draw(st.sampled_from([i for i, item in enumerate(spec.inputs) if item.kind == "inner"]))
    names = [dict(zip(item.classes, item.keys, strict=True))[spec.shared[0]] for item in spec.inputs]
    placement = data.draw(placements([tables[split].column(names[split])], None, 3))
    owned = data.draw(st.sampled_from(["owned", "both"]))
    routers = [
        PlacedRouter((name,), None, PlacedRows(placement), owned if i == split else "copies", (False,))
        for i, name in enumerate(names)
    ]
    wires = routed(tables, routers, 3, 64)
    tasks, memory = data.draw(st.sampled_from([1, 3])), data.draw(st.sampled_from([200, 1 << 20]))
    assert found_of(spec, tables, wires, 3, tasks, memory) == expected_rows(spec, tables)


@given(joins(), st.integers(0, 1000))
@examples(10)
def test_chunks_of_large_buckets(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], seed: int) -> None:
    check_chunks(join, seed)


@pytest.mark.slow
@given(joins(), st.integers(0, 1000))
@examples(150)
def test_chunks_of_many_large_buckets(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], seed: int) -> None:
    check_chunks(join, seed)


def check_chunks(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], seed: int) -> None:
    """Two buckets, whose inputs are joined in several chunks each, all with all."""
    spec, tables = join
    memory = sum(rows.nbytes for rows in tables) // 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlext_operators.exchange.operator.BUCKETS", 2)
        assert exchanged(spec, tables, (1,) * spec.classes, seed, memory, 1) == expected_rows(spec, tables)


def table(rows: int, seed: int = 0) -> pa.RecordBatch:
    values = np.random.default_rng(seed).integers(0, 50, (2, rows))
    return pa.RecordBatch.from_pydict({"a": values[0], "b": values[1], "id": np.arange(rows)})


def test_rows_stand_in_every_cell_of_the_dimensions_they_lack() -> None:
    router = SharesRouter((0, 2), ("a", "b"), (3, 4, 2))
    assert (router.cells, router.copies) == (24, 4)
    rows = table(500)
    routes = router.route(rows, 24)
    assert routes.rows is not None
    cells = [tuple(np.unravel_index(pid, (3, 4, 2))) for pid in routes.pids.tolist()]
    for row in range(500):
        own = [cell for cell, place in zip(cells, routes.rows.tolist(), strict=True) if place == row]
        assert len(own) == len(set(own)) == 4
        assert {cell[1] for cell in own} == {0, 1, 2, 3}
        assert len({(cell[0], cell[2]) for cell in own}) == 1
    places = np.bincount(routes.pids, minlength=24)
    assert places.min() > 0


def test_coordinates_of_one_value_in_two_classes_are_independent() -> None:
    rows = pa.RecordBatch.from_pydict({"a": np.arange(10_000), "b": np.arange(10_000)})
    pids = SharesRouter((0, 1), ("a", "b"), (4, 4)).route(rows, 16).pids
    assert np.bincount(pids, minlength=16).min() > 500


def test_one_shared_class_is_hash_partitioning() -> None:
    routes = SharesRouter((1, 0), ("a", "b"), (5, 1)).route(table(1_000), 5)
    assert routes.rows is None
    assert routes.done is None
    assert np.bincount(routes.pids, minlength=5).min() > 100
    assert len(KeyRouter(("b",)).route(table(1_000), 5).pids) == len(routes.pids)


def test_rows_with_null_keys_are_dropped() -> None:
    rows = pa.RecordBatch.from_pydict({"a": pa.array([1, None, 2, None]), "b": pa.array([1, 1, None, None])})
    for shares in ((1, 1), (2, 2), (1, 1, 3), (2, 1, 2)):
        router = SharesRouter((0, 1), ("a", "b"), shares)
        routes = router.route(rows, router.cells)
        assert routes.rows is not None
        assert set(routes.rows.tolist()) == {0}


def test_many_copies_are_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlext_operators.exchange.scatter._COPIED_BYTES", 1)
    spec = MultiwayJoinSpec((MultiwayInput("inner", (0,), ("a",), ("id",)), MultiwayInput("inner", (1,), ("b",))), 2)
    tables = [table(60, 1), table(40, 2)]
    routes = SharesRouter.of(spec.inputs[0], (2, 20)).route(tables[0], 40)
    assert routes.done == 6
    assert len(routes.pids) == 120
    assert exchanged(spec, tables, (2, 20), 0, 1 << 20, 1000) == expected_rows(spec, tables)


def test_shares_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="one place or more"):
        SharesRouter((0,), ("a",), (0,))
    with pytest.raises(ValueError, match="6 cells do not fit into 5 partitions"):
        SharesRouter((0,), ("a",), (2, 3)).route(table(3), 5)


def test_buckets_are_cut_by_what_all_inputs_share() -> None:
    def cut(*classes: tuple[int, ...]) -> tuple[int, ...]:
        inputs = tuple(MultiwayInput("inner", found, tuple("abc"[: len(found)])) for found in classes)
        spec = MultiwayJoinSpec(inputs, max((place for found in classes for place in found), default=-1) + 1)
        return MultiwayOperatorSpec(spec, ()).cut

    assert cut((0, 1), (1, 0), (0, 1, 2), (0, 1)) == (0, 1)
    assert cut((0, 1), (1, 2), (2, 3), (1, 3)) == (1,)
    assert cut((), ()) == ()


def test_counts_of_buckets_are_added_up() -> None:
    """One row a task, whatever the buckets; a sum that is too large is no number."""
    key = MultiwayInput("inner", (0,), ("k",))
    spec = MultiwayJoinSpec((key,) * 4, 1, count=True)
    rows = pa.RecordBatch.from_pydict({"k": np.repeat(np.arange(40), 100)})
    assert exchanged(spec, [rows] * 4, (1,), 1, 100_000, 1, 10_000) == {(): 40 * 100**4}
    rows = pa.RecordBatch.from_pydict({"k": np.repeat(np.arange(2), 50_000)})
    with pytest.raises(OverflowError, match="more rows than a bigint can count"):
        exchanged(spec, [rows] * 4, (1,), 1, 2_000_000, 1, 400_000)


def test_files_are_removed_when_the_consumer_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    item = MultiwayInput("inner", (0,), ("a",), ("id",))
    spec = MultiwayJoinSpec((item, item), 1)
    rows = table(200)
    gather = MultiwayOperatorSpec(spec, (rows.schema,) * 2, 100, BATCH_ROWS)
    batches = run_operator(gather, 0, wires_of(spec, [rows, rows], (1,), 1, 64))
    next(batches)
    assert any(tmp_path.iterdir())
    batches.close()  # type: ignore[attr-defined]
    assert not any(tmp_path.iterdir())
