"""Integer codes that compare across the two sides of a join as the values do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.columns.codes import order_codes
from sqlext_operators.columns.flat import limbs
from sqlext_operators.kernels.byte_search import search_codes

LeftCodes = Callable[[pa.Array], Int64s]

#: Decimals of more digits do not fit into one int64.
_WORD_DIGITS = 18


def value_codes(right: pa.Array) -> tuple[Int64s, LeftCodes]:
    """(int64[n] codes of the column `right`, how to code left values); codes at NULLs are undefined.

    Left values have the same type, or another width of integer or float.
    """
    if _is_bytes(right.type) or (pa.types.is_decimal(right.type) and right.type.precision > _WORD_DIGITS):
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
    known = _bytes_of(encoded.dictionary.take(order))

    def left_codes(array: pa.Array) -> Int64s:
        codes = np.empty(len(array), np.int64)
        search_codes(*known, *_bytes_of(_sortable(array)), codes)
        return codes

    return rank[pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)], left_codes


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or (pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind))
    )


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


def _bytes_of(array: pa.Array) -> tuple[UInt8s, Int64s]:
    """(data, offsets) of a large_binary array."""
    _, offsets, data = array.buffers()
    values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if len(array) == 0:
        return values, np.zeros(1, np.int64)
    return values, np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
