"""Columns on the wire: what `compact` makes is smaller, and every value comes back, with its type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.codes import dense_codes, ranked
from sqlext_operators.columns.compact import compact, concatenate, in_utc, is_distinct, plain, restore, together
from sqlext_operators.columns.keys import KeyCodes, hash_keys
from sqlext_operators.exchange.blocks import Block, WireBatch, decode
from sqlext_operators.window.evaluators.distinct import zero_filled

TEXTS = st.none() | st.sampled_from(["", "a", "b", "ccc"])


def sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch after its way through a wire row."""
    wire = WireBatch()
    wire.add(Block(0, 0, 7, batch))
    ((block),) = decode(wire.finish())
    assert block.seq == 7
    return block.batch


def batch_of(rows: int) -> pa.RecordBatch:
    """Columns of all kinds; each NULL in some rows."""
    random = np.random.default_rng(rows)
    places = np.arange(rows)
    mask = random.random(rows) < 0.2
    columns = {
        "few": pa.array([f"v{i % 5}" for i in places], pa.string(), mask=mask),
        "many": pa.array([f"id-{i}" for i in places], pa.string()),
        "bytes": pa.array([b"x", b"yy"]).take(pa.array(places % 2)),
        "byte": pa.array(places % 100 - 50, pa.int64(), mask=mask),
        "short": pa.array(places % 100 * 300, pa.int32()),
        "wide": pa.array(places * 2**40, pa.int64()),
        "edges": pa.array(np.resize([-128, 127], rows), pa.int16()),
        "beyond": pa.array(np.resize([-129, 127], rows), pa.int16()),
        "nulls": pa.nulls(rows, pa.int64()),
        "no text": pa.nulls(rows, pa.string()),
        "double": pa.array(random.random(rows)),
        "time": pa.array(places, pa.timestamp("us", "UTC")),
        "decimal": pa.array([Decimal(int(i)) for i in places], pa.decimal128(9, 2)),
        "list": pa.array([[int(i)] for i in places], pa.list_(pa.int64())),
        "flag": pa.array(mask),
    }
    fields = [pa.field(name, column.type, name != "many") for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))


@pytest.mark.parametrize("rows", [0, 1, 40, 1_000])
@pytest.mark.parametrize("blocks", [1, 7])
def test_all_values_come_back(rows: int, blocks: int) -> None:
    batch = batch_of(rows)
    packed = compact(batch, blocks)
    back = sent(packed)
    assert plain(back).equals(batch)
    assert plain(back).schema.equals(batch.schema, check_metadata=True)
    assert plain(restore(packed)).equals(batch)


def test_what_is_packed() -> None:
    batch = batch_of(1_000)
    packed = compact(batch, 4)
    kinds = {name: packed.schema.field(name).type for name in batch.schema.names}
    assert kinds["few"] == pa.dictionary(pa.int8(), pa.string())
    assert kinds["bytes"] == pa.dictionary(pa.int8(), pa.binary())
    assert kinds["byte"] == kinds["edges"] == pa.int8()
    assert kinds["short"] == kinds["beyond"] == pa.int16()
    same = ("many", "wide", "double", "time", "decimal", "list", "flag")
    assert all(kinds[name] == batch.schema.field(name).type for name in same)
    assert sum(packed.column(name).nbytes for name in ("few", "byte", "short")) < 5_000
    assert sent(packed).schema.field("few").type == pa.dictionary(pa.int32(), pa.string())


def test_a_dictionary_is_cut_to_the_values_that_rows_have() -> None:
    values = pa.array([f"v{i}" for i in range(500)])
    places = pa.array(np.resize([3, 400, None, 3], 100), pa.int32())
    wide = pa.RecordBatch.from_arrays([pa.DictionaryArray.from_arrays(places, values)], names=["x"])
    packed = compact(wide, 1)
    assert packed.column(0).dictionary.to_pylist() == ["v3", "v400"]
    assert sent(packed).column(0).to_pylist() == wide.column(0).to_pylist()
    every = pa.RecordBatch.from_arrays([values.dictionary_encode()], names=["x"])
    assert compact(every, 1).schema.field("x").type == pa.string()
    assert sent(compact(every, 1)).column(0).equals(values)


@given(st.lists(TEXTS, min_size=1), st.lists(TEXTS))
def test_functions_of_dictionaries_are_those_of_their_values(first: list[str | None], second: list[str | None]) -> None:
    arrays = [pa.array(part, pa.string()) for part in (first, second)]
    unused = pa.array(["zz", "b"])
    coded = [pa.concat_arrays([unused, array]).dictionary_encode().slice(2) for array in arrays]
    values, both = pa.array(first + second, pa.string()), concatenate(coded, pa.string())
    assert pa.types.is_dictionary(both.type)
    assert is_distinct(both)
    assert both.to_pylist() == values.to_pylist()
    assert concatenate([coded[0], arrays[1]], pa.string()).equals(values)
    batches = [pa.RecordBatch.from_arrays([column], names=["x"]) for column in (coded[0], arrays[1])]
    assert together(batches).column(0).equals(values)
    assert (hash_keys([both]) == hash_keys([values])).all()
    assert (KeyCodes(1).encode([both]) == KeyCodes(1).encode([values])).all()
    known = KeyCodes(1)
    known.encode([arrays[0]])
    assert (known.find([both]) == known.find([values])).all()
    (codes, kinds), (plain_codes, plain_kinds) = ranked(both), ranked(values)
    names, plain_names = kinds.to_pylist(), plain_kinds.to_pylist()
    assert names == sorted(names)
    assert [names[i] if i >= 0 else None for i in codes] == [plain_names[i] if i >= 0 else None for i in plain_codes]
    for array in (both, zero_filled(both)):
        found, count = dense_codes(array)
        assert found.max() < count
        pairs = set(zip(found.tolist(), array.to_pylist(), strict=True))
        assert len(pairs) == len(set(found.tolist())) == len(set(array.to_pylist()))
    assert zero_filled(both).to_pylist() == zero_filled(values).to_pylist()


def test_a_dictionary_of_a_file_may_not_be_one_of_ours() -> None:
    places = pa.array([0, 1, 2], pa.int32())
    assert not is_distinct(pa.DictionaryArray.from_arrays(places, pa.array(["a", "b", "a"])))
    assert not is_distinct(pa.DictionaryArray.from_arrays(places, pa.array(["a", None, "b"])))
    assert is_distinct(pa.DictionaryArray.from_arrays(places, pa.array(["a", "", "b"])))


def test_instants_are_in_utc_wherever_they_are() -> None:
    """State has them in UTC, Spark hands them over in the session's zone."""
    berlin, utc = pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")

    def kinds(zoned: pa.DataType) -> dict[str, pa.DataType]:
        return {
            "t": zoned,
            "wall": pa.timestamp("us"),
            "list": pa.list_(zoned),
            "struct": pa.struct([("a", zoned), ("b", pa.list_(pa.struct([("c", zoned)])))]),
            "map": pa.map_(pa.string(), zoned),
            "n": pa.int64(),
        }

    rows = {
        "t": [1, None],
        "wall": [2, 3],
        "list": [[4, None], None],
        "struct": [{"a": 5, "b": [{"c": 6}]}, None],
        "map": [[("x", 7), ("y", None)], None],
        "n": [8, 9],
    }
    given, expected = (
        pa.record_batch([pa.array(rows[name], kind) for name, kind in kinds(zone).items()], names=list(rows))
        for zone in (berlin, utc)
    )
    assert in_utc(given).equals(expected)
    assert in_utc(expected) is expected
    keys = pa.record_batch([pa.array([1])], schema=pa.schema([pa.field("k", pa.int64(), nullable=False)]))
    assert in_utc(keys) is keys
