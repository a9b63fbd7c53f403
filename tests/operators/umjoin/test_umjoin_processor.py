"""The multi-way join of inputs in memory against its brute-force twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.keys import KeyTypeError
from sqlext_operators.umjoin.processor import MultiwayJoin
from sqlext_operators.umjoin.spec import COUNT, MultiwayInput, MultiwayJoinSpec

from tests.operators.umjoin.umjoin_data import check_schema, expected_rows, found_rows, joins
from tests.properties import examples


@given(joins(), st.sampled_from([1, 2, 7, 1000]), st.sampled_from([1, 3, 16_384]))
@examples(300, share=8)
def test_join_agrees_with_twin(
    join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], batch_rows: int, bindings: int
) -> None:
    spec, tables = join
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlext_operators.umjoin.processor._BINDINGS", bindings)
        operator = MultiwayJoin(spec, tables)
        check_schema(spec, tables, operator.schema)
        batches = list(operator.batches(batch_rows))
    if operator.schema.names:
        assert all(batch.schema == operator.schema for batch in batches)
    assert found_rows(spec, batches, batch_rows) == expected_rows(spec, tables)
    if operator.schema.names == [COUNT]:
        assert len(batches) <= 1


def edges(rng: np.random.Generator, rows: int, vertices: int) -> pa.RecordBatch:
    """A graph whose few first vertices have most of the edges."""
    ends = (vertices * rng.random((2, rows)) ** 3).astype(np.int64)
    return pa.RecordBatch.from_pydict({"a": ends[0], "b": ends[1], "id": np.arange(rows)})


def cycle(length: int, payload: Sequence[str] = (), *, count: bool = True) -> MultiwayJoinSpec:
    inputs = tuple(MultiwayInput("inner", (i, (i + 1) % length), ("a", "b"), tuple(payload)) for i in range(length))
    return MultiwayJoinSpec(inputs, length, count)


@pytest.mark.parametrize("length", [2, 3, 4, 5])
@pytest.mark.parametrize("spread", [1, 1 << 40])
def test_cycles_of_a_graph_are_counted(length: int, spread: int) -> None:
    """Against the trace of the adjacency matrix; vertices far apart get their codes from a hash table."""
    graph = edges(np.random.default_rng(length), 3_000, 60)
    matrix = np.zeros((60, 60), np.int64)
    np.add.at(matrix, (graph.column("a").to_numpy(), graph.column("b").to_numpy()), 1)
    expected = np.trace(np.linalg.matrix_power(matrix, length))
    columns = [pa.array(graph.column(name).to_numpy() * spread) for name in "ab"]
    graph = pa.RecordBatch.from_arrays([*columns, graph.column("id")], names=["a", "b", "id"])
    (batch,) = MultiwayJoin(cycle(length), [graph] * length).batches()
    assert batch.to_pydict() == {COUNT: [expected]}


def test_counts_come_with_the_payload_of_one_input() -> None:
    """Triangles by edge: what hangs on no payload is counted below the binding, one row an edge."""
    graph = edges(np.random.default_rng(1), 2_000, 50)
    spec = cycle(3)
    with_edges = MultiwayJoinSpec(
        (MultiwayInput("inner", (0, 1), ("a", "b"), ("id",)), *spec.inputs[1:]), spec.classes, count=True
    )
    found = pa.Table.from_batches(list(MultiwayJoin(with_edges, [graph] * 3).batches()))
    assert found.num_rows == len(set(found.column("id").to_pylist()))
    (total,) = MultiwayJoin(spec, [graph] * 3).batches()
    assert sum(found.column(COUNT).to_pylist()) == total.column(0)[0].as_py()


def star(rows: int, *, count: bool, payload: tuple[str, ...] = ()) -> tuple[MultiwayJoinSpec, list[pa.RecordBatch]]:
    """Four inputs of `rows` rows with one key."""
    table = pa.RecordBatch.from_pydict({"k": np.zeros(rows, np.int64), "id": np.arange(rows)})
    inputs = (MultiwayInput("inner", (0,), ("k",), payload), *[MultiwayInput("inner", (0,), ("k",))] * 3)
    return MultiwayJoinSpec(inputs, 1, count), [table] * 4


def test_many_rows_of_one_key_stream() -> None:
    """10^12 rows of the result, of which the first batches are read."""
    spec, tables = star(1_000, count=False, payload=("id",))
    batches = MultiwayJoin(spec, tables).batches(50_000)
    assert [next(batches).num_rows for _ in range(20)] == [50_000] * 20


def test_the_largest_counts() -> None:
    spec, tables = star(50_000, count=True)
    (batch,) = MultiwayJoin(spec, tables).batches()
    assert batch.column(0).to_pylist() == [50_000**4]
    for payload in ((), ("id",)):
        spec, tables = star(60_000 if not payload else 2_100_000, count=True, payload=payload)
        with pytest.raises(OverflowError, match="more rows than a bigint can count"):
            list(MultiwayJoin(spec, tables).batches())


def test_a_count_that_is_too_large_on_the_way_is_none() -> None:
    """The product of the first class overflows, but no row has the second one."""
    rows = 60_000
    big = pa.RecordBatch.from_pydict({"k": np.zeros(rows, np.int64), "j": np.arange(rows) % 2})
    other = pa.RecordBatch.from_pydict({"k": np.ones(2, np.int64), "j": np.array([0, 1])})
    keyed = MultiwayInput("inner", (0,), ("k",))
    both = MultiwayInput("inner", (0, 1), ("k", "j"))
    anti = MultiwayInput("anti", (1,), ("j",))
    spec = MultiwayJoinSpec((*[keyed] * 4, both, anti), 2, count=True)
    assert list(MultiwayJoin(spec, [big] * 5 + [other]).batches()) == []


def test_several_millions_of_slices_in_all_codes() -> None:
    """Sorted, reversed and random inputs of a key and a composite key."""
    rng = np.random.default_rng(5)
    rows = 20_000
    keys = rng.integers(0, 300, (3, rows))
    tables = [
        pa.RecordBatch.from_pydict({"x": np.sort(keys[0]), "id": np.arange(rows)}),
        pa.RecordBatch.from_pydict({"x": np.sort(keys[1])[::-1].copy(), "y": keys[2], "id": np.arange(rows)}),
        pa.RecordBatch.from_pydict({"y": np.arange(300), "id": np.arange(300)}),
    ]
    spec = MultiwayJoinSpec(
        (
            MultiwayInput("inner", (0,), ("x",), ("id",)),
            MultiwayInput("inner", (0, 1), ("x", "y"), ("id",)),
            MultiwayInput("left", (1,), ("y",), ("id",)),
        ),
        2,
    )
    batches = list(MultiwayJoin(spec, tables).batches())
    found = pa.concat_arrays([batch.column(0) for batch in batches]).to_numpy()
    second = pa.concat_arrays([batch.column(1) for batch in batches]).to_numpy()
    third = pa.concat_arrays([batch.column(2) for batch in batches]).to_numpy()
    x = [tables[i].column("x").to_numpy() for i in range(2)]
    assert (x[0][found] == x[1][second]).all()
    assert (tables[1].column("y").to_numpy()[second] == third).all()
    ones, others = (np.bincount(values, minlength=300) for values in x)
    assert len(found) == (ones * others).sum() == len(set(zip(found.tolist(), second.tolist(), strict=True)))


def test_nested_types_are_no_keys() -> None:
    table = pa.RecordBatch.from_arrays([pa.array([[1]])], names=["k"])
    item = MultiwayInput("inner", (0,), ("k",))
    with pytest.raises(KeyTypeError, match=r"a column of type list<item: int64> cannot be a key"):
        MultiwayJoin(MultiwayJoinSpec((item, item), 1), [table, table])


def test_batches_stay_as_they_are_when_more_come() -> None:
    """Buffers are used again, also that of the counts."""
    spec, _ = star(1, count=True, payload=("id",))
    rows = pa.RecordBatch.from_pydict({"k": np.repeat(np.arange(5), np.arange(5)), "id": np.arange(10)})
    batches = list(MultiwayJoin(spec, [rows] * 4).batches(1))
    assert [batch.to_pylist() for batch in batches] == [
        [{"id": row, COUNT: key**3}] for row, key in enumerate(rows.column("k").to_pylist())
    ]
