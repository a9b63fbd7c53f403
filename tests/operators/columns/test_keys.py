"""Keys: equality as SQL groups it, and hashes that agree across inputs and processes."""

from __future__ import annotations

import datetime
import math
import struct
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.keys import KeyCodes, KeyTypeError, hash_keys, is_key_type

KEY_TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-3, 3),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1, 7, 11]),
    pa.string(): st.sampled_from(
        ["", "a", "b", "ab", "NULL", "\x00", "longer than eight bytes", "longer than eight bytez"]
    ),
    pa.binary(): st.binary(max_size=20),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(datetime.UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(5, 2): st.decimals("-999.99", "999.99", places=2),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, -math.nan, 1.5, math.inf]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, 1.5]),
    pa.null(): st.none(),
}


def identity(value: object) -> object:
    """Two values are the same key exactly if their identities are equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@st.composite
def key_columns(draw: st.DrawFn) -> list[list[pa.Array]]:
    """One or more blocks of the same key columns."""
    kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=3))
    blocks = []
    for size in draw(st.lists(st.integers(0, 12), min_size=1, max_size=4)):
        columns = []
        for kind in kinds:
            values = draw(st.lists(st.none() | KEY_TYPES[kind], min_size=size + 1, max_size=size + 1))
            columns.append(pa.array(values, kind)[1:])  # a slice: buffers do not start at the first row
        blocks.append(columns)
    return blocks


@given(key_columns())
def test_codes_are_dense_and_equal_exactly_for_equal_keys(blocks: list[list[pa.Array]]) -> None:
    codes = KeyCodes(len(blocks[0]))
    known: dict[tuple[object, ...], int] = {}
    for columns in blocks:
        rows = list(zip(*(map(identity, column.to_pylist()) for column in columns), strict=True))
        given_codes = codes.encode(columns).tolist()
        for row, code in zip(rows, given_codes, strict=True):
            assert known.setdefault(row, code) == code
    assert sorted(known.values()) == list(range(len(known)))
    assert len(codes) == len(known)


@given(key_columns())
def test_equal_keys_hash_alike_whatever_the_block(blocks: list[list[pa.Array]]) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for columns in blocks:
        rows = list(zip(*(map(identity, column.to_pylist()) for column in columns), strict=True))
        for row, value in zip(rows, hash_keys(columns).tolist(), strict=True):
            assert seen.setdefault(row, value) == value


@given(st.lists(st.none() | st.integers(-128, 127), min_size=1))
def test_integers_of_any_width_hash_alike(values: list[int | None]) -> None:
    hashes = [hash_keys([pa.array(values, kind)]).tolist() for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())]
    assert all(item == hashes[0] for item in hashes)


def test_large_and_small_strings_hash_alike() -> None:
    values = ["", None, "a", "ü" * 9]
    assert hash_keys([pa.array(values)]).tolist() == hash_keys([pa.array(values, pa.large_string())]).tolist()


def test_hashes_are_the_same_in_another_process() -> None:
    program = (
        "import pyarrow as pa\nfrom sqlext_operators.columns.keys import hash_keys\n"
        "print(hash_keys([pa.array(['a', None, 'bc']), pa.array([1, 2, None])]).tolist())"
    )
    here = hash_keys([pa.array(["a", None, "bc"]), pa.array([1, 2, None])]).tolist()
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(here)


def test_null_is_not_the_empty_string_nor_zero() -> None:
    codes = KeyCodes(1)
    assert len(set(codes.encode([pa.array([None, "", "0"])]).tolist())) == 3
    codes = KeyCodes(1)
    assert len(set(codes.encode([pa.array([None, 0])]).tolist())) == 2


def test_codes_survive_the_growth_of_the_table() -> None:
    codes = KeyCodes(1)
    values = np.random.default_rng(1).permutation(50_000)
    first = codes.encode([pa.array(values)])
    again = codes.encode([pa.array(values[::-1])])
    assert first.tolist() == again[::-1].tolist()
    assert len(codes) == 50_000


def test_negative_nan_payloads_are_one_key() -> None:
    quiet, other = struct.unpack("<dd", struct.pack("<QQ", 0x7FF8000000000000, 0xFFF8000000000123))
    column = pa.array(np.array([quiet, other]))
    assert len(set(KeyCodes(1).encode([column]).tolist())) == 1
    assert len(set(hash_keys([column]).tolist())) == 1


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.int32(), pa.int32())]
)
def test_nested_types_are_no_keys(kind: pa.DataType) -> None:
    assert not is_key_type(kind)
    with pytest.raises(KeyTypeError):
        hash_keys([pa.nulls(1, kind)])
