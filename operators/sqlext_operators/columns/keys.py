"""Partition and join keys of any type: routing hashes, exact dense codes inside a partition, and codes that compare
across the two sides of a join as the values do.

Equality is that of SQL grouping: NULL equals NULL and nothing else ('' is not NULL), NaN equals NaN, -0.0 equals 0.0
(docs/reference/windows.md, section 3). The hash only routes: it is the same in every process and for every input whose
key types agree (integers of any width hash alike), and no two keys are ever taken for equal because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.columns.codes import order_codes
from sqlext_operators.columns.compact import coded, plain_column, plain_type
from sqlext_operators.columns.flat import WORD_DIGITS, limbs
from sqlext_operators.kernels.key_hash import assign_codes, find_codes, hash_bytes, hash_integers, rehash
from sqlext_operators.kernels.lookups import search_codes

_NO_MASK: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
_FIRST_SLOTS = 1 << 10
LeftCodes = Callable[[pa.Array], Int64s]


class KeyTypeError(TypeError):
    """A column type that cannot be a key (arrays, maps, structs)."""


@dataclass(frozen=True)
class IntegerWords:
    """A key column as int64 words: one array for most types, two (high, low) for a decimal."""

    words: tuple[npt.NDArray[np.int64], ...]
    valid: npt.NDArray[np.uint8]


def is_key_type(kind: pa.DataType) -> bool:
    """Whether columns of this type can be keys."""
    kind = plain_type(kind)
    return _is_integer_like(kind) or _is_bytes(kind) or pa.types.is_null(kind)


def hash_keys(columns: Sequence[pa.Array]) -> npt.NDArray[np.uint64]:
    """uint64[n], a stable hash of each row of the key columns (one or more, equally long).

    Raises KeyTypeError for a type that cannot be a key.
    """
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        words = integer_words(column)
        if words is not None:
            for word in words.words:
                hash_integers(word, words.valid, hashes)
        else:
            data, offsets, valid = _byte_parts(plain_column(column))
            hash_bytes(data, offsets, valid, hashes)
    return hashes


def row_hashes(batch: pa.RecordBatch, keys: Sequence[str]) -> npt.NDArray[np.uint64]:
    """`hash_keys` of the columns `keys` of a batch; 0 without keys."""
    return hash_keys([batch.column(name) for name in keys]) if keys else np.zeros(batch.num_rows, np.uint64)


def integer_words(column: pa.Array) -> IntegerWords | None:
    """The column as int64 words whose equality is the key's equality; None for strings and binary.

    Raises KeyTypeError for a type that cannot be a key.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return IntegerWords((np.zeros(len(column), np.int64),), np.zeros(len(column), np.uint8))
    if _is_bytes(plain_type(kind)):
        return None
    if not _is_integer_like(kind):
        raise KeyTypeError(f"a column of type {kind} cannot be a key")
    if pa.types.is_decimal(kind):
        low, high = limbs(column)
        words = (np.ascontiguousarray(high), np.ascontiguousarray(low.view(np.int64)))
        return IntegerWords(words, validity(column))
    if pa.types.is_floating(kind):
        values = _plain(column.cast(pa.float64()), np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return IntegerWords((bits,), validity(column))
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    return IntegerWords((_plain(column, None).astype(np.int64, copy=False),), validity(column))


class KeyCodes:
    """Gives equal keys equal dense codes, 0 up, in order of first appearance, also across calls.

    One object serves one partition: codes of later blocks and spilled runs agree with earlier ones.
    Memory is O(distinct keys).
    """

    def __init__(self, width: int) -> None:
        self._columns = tuple(_ColumnCodes() for _ in range(width))
        self._pairs = tuple(_IntegerCodes() for _ in range(width - 1))

    def encode(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """int64[n], the codes of the rows of `columns` (as many as `width`, equally long)."""
        result = self._columns[0].encode(columns[0])
        for codes, pairs, column in zip(self._columns[1:], self._pairs, columns[1:], strict=True):
            # Codes of a partition are below 2^31, so that a pair of them is one exact integer.
            result = pairs.encode((result << 32) | codes.encode(column), _NO_MASK)
        return result

    def find(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """int64[n], the codes of the rows of `columns`, -1 for keys that were never encoded; remembers nothing."""
        result = self._columns[0].find(columns[0])
        for codes, pairs, column in zip(self._columns[1:], self._pairs, columns[1:], strict=True):
            second = codes.find(column)
            known = ((result >= 0) & (second >= 0)).astype(np.uint8)
            result = pairs.find((result << 32) | second, known)
        return result

    def __len__(self) -> int:
        """How many codes were given, over all calls."""
        return len(self._pairs[-1] if self._pairs else self._columns[0])


class _IntegerCodes:
    """Dense codes of int64 values and NULL."""

    def __init__(self) -> None:
        self._slots = np.zeros(_FIRST_SLOTS, np.int64)
        self._codes = np.full(_FIRST_SLOTS, -1, np.int32)
        self._state = np.array([0, -1], np.int64)

    def encode(self, values: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        out = np.empty(len(values), np.int64)
        done = 0
        while (done := assign_codes(values, valid, done, self._slots, self._codes, self._state, out)) < len(values):
            slots = np.zeros(len(self._slots) * 4, np.int64)
            codes = np.full(len(slots), -1, np.int32)
            rehash(self._slots, self._codes, slots, codes)
            self._slots, self._codes = slots, codes
        return out

    def find(self, values: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        out = np.empty(len(values), np.int64)
        find_codes(values, valid, self._slots, self._codes, self._state[1], out)
        return out

    def __len__(self) -> int:
        return int(self._state[0])


class _ColumnCodes:
    """Dense codes of one key column of any type."""

    def __init__(self) -> None:
        self._words: list[_IntegerCodes] = []
        self._known: pa.Array | None = None

    def encode(self, column: pa.Array) -> npt.NDArray[np.int64]:
        words = integer_words(column)
        if words is None:
            return self._encode_bytes(column)
        while len(self._words) < 2 * len(words.words) - 1:
            self._words.append(_IntegerCodes())
        result = self._words[0].encode(words.words[0], words.valid)
        if len(words.words) == 2:
            low = self._words[1].encode(words.words[1], words.valid)
            result = self._words[2].encode((result << 32) | low, _NO_MASK)
        return result

    def find(self, column: pa.Array) -> npt.NDArray[np.int64]:
        words = integer_words(column)
        if words is None:
            return self._find_bytes(column)
        if not self._words:
            return np.full(len(column), -1, np.int64)
        result = self._words[0].find(words.words[0], words.valid)
        if len(words.words) == 2:
            low = self._words[1].find(words.words[1], words.valid)
            known = ((result >= 0) & (low >= 0)).astype(np.uint8)
            result = self._words[2].find((result << 32) | low, known)
        return result

    def _find_bytes(self, column: pa.Array) -> npt.NDArray[np.int64]:
        if self._known is None:
            return np.full(len(column), -1, np.int64)
        places, values = _encoded(column)
        found = pc.index_in(values, value_set=self._known.cast(values.type)).fill_null(-1)
        lookup = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.asarray(lookup[places])

    def _encode_bytes(self, column: pa.Array) -> npt.NDArray[np.int64]:
        """Codes by Arrow's own exact hash table; only values not seen before touch the dictionary."""
        places, values = _encoded(column)
        if self._known is None:
            self._known = values
            lookup = np.arange(len(values), dtype=np.int64)
        else:
            found = pc.index_in(values, value_set=self._known.cast(values.type))
            fresh = np.flatnonzero(~found.is_valid().to_numpy(zero_copy_only=False))
            lookup = found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            lookup[fresh] = len(self._known) + np.arange(len(fresh))
            if len(fresh):
                self._known = pa.concat_arrays([self._known.cast(values.type), values.take(pa.array(fresh))])
        return np.asarray(lookup[places])

    def __len__(self) -> int:
        if self._words:
            return len(self._words[-1])
        return 0 if self._known is None else len(self._known)


def _encoded(column: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """(places, values): each row's place among the distinct values, in order of first appearance; NULL is one."""
    if not pa.types.is_dictionary(column.type):
        encoded = column.dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
    places, values = coded(column)
    used = places.unique()
    order = np.zeros(len(values), np.int32)
    order[used.to_numpy(zero_copy_only=False)] = np.arange(len(used))
    return order[places.to_numpy(zero_copy_only=False)], values.take(used)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or (pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind))
    )


def _is_integer_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
        or pa.types.is_decimal128(kind)
    )


def _plain(column: pa.Array, dtype: npt.DTypeLike | None) -> npt.NDArray[np.int64]:
    """The value buffer of a fixed-width column, with any value at NULLs; temporal types as their integers."""
    if dtype is None:
        width = column.type.bit_width
        signed = not pa.types.is_unsigned_integer(column.type)
        dtype = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    if len(column) == 0:
        return np.empty(0, dtype)
    values: npt.NDArray[np.int64] = np.frombuffer(column.buffers()[1], dtype=dtype)
    return values[column.offset : column.offset + len(column)]


def _byte_parts(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """(data, offsets, valid) of a string or binary column."""
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    if len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64), _NO_MASK
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offset_buffer, data_buffer = column.buffers()
    stored = np.frombuffer(offset_buffer, dtype="i8" if large else "i4")
    offsets: npt.NDArray[np.int64] = stored[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return data, offsets, validity(column)


def null_keys(keys: Sequence[pa.Array], null_safe: Sequence[bool]) -> npt.NDArray[np.bool_] | None:
    """bool[n], rows with a NULL in a key that matches no NULL; None if there is no such row."""
    masks = [
        column.is_null().to_numpy(zero_copy_only=False)
        for column, safe in zip(keys, null_safe, strict=True)
        if not safe and column.null_count
    ]
    return np.logical_or.reduce(masks) if masks else None


def value_codes(right: pa.Array) -> tuple[Int64s, LeftCodes]:
    """(int64[n] codes of the column `right`, how to code left values); codes at NULLs are undefined.

    Left values have the same type, or another width of integer or float.
    """
    if _is_bytes(right.type) or (pa.types.is_decimal(right.type) and right.type.precision > WORD_DIGITS):
        return _byte_codes(_sortable(right))
    # Integers, floats, booleans, dates, times and short decimals are their own codes.
    return order_codes(right), order_codes


def validity(array: pa.Array) -> UInt8s:
    """uint8[n], 0 for NULL; empty if there is no NULL."""
    if array.null_count == 0:
        return np.empty(0, np.uint8)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.uint8)


def _byte_codes(right: pa.Array) -> tuple[Int64s, LeftCodes]:
    """Twice the rank among the distinct right values; left values between two of them have odd codes."""
    encoded = pc.dictionary_encode(right)
    order = pc.sort_indices(encoded.dictionary)
    rank = np.zeros(len(order) + 1, np.int64)
    rank[order.to_numpy(zero_copy_only=False)] = 2 * np.arange(len(order))
    known = _byte_parts(encoded.dictionary.take(order))[:2]

    def left_codes(array: pa.Array) -> Int64s:
        codes = np.empty(len(array), np.int64)
        search_codes(*known, *_byte_parts(_sortable(array))[:2], codes)
        return codes

    return rank[pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)], left_codes


def _sortable(array: pa.Array) -> pa.Array:
    """The values as binary in the same order: decimals as 16 bytes, highest first, the sign flipped."""
    if not pa.types.is_decimal(array.type):
        return array.cast(pa.large_binary())
    low, high = limbs(array)
    words = np.empty((len(array), 2), ">u8")
    words[:, 0] = high.view(np.uint64) ^ np.uint64(1 << 63)
    words[:, 1] = low
    offsets = np.arange(0, 16 * len(array) + 1, 16, dtype=np.int64)
    bitmap = pa.py_buffer(np.packbits(validity(array), bitorder="little")) if array.null_count else None
    return pa.Array.from_buffers(pa.large_binary(), len(array), [bitmap, pa.py_buffer(offsets), pa.py_buffer(words)])
