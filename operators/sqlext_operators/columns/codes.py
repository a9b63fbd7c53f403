"""Integer codes of values: of order columns, order-preserving for min and max, dense for distinct values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.compact import coded, plain_type
from sqlext_operators.columns.flat import WORD_DIGITS, fixed_width, limbs, to_array, to_decimals
from sqlext_operators.errors import RowError


def order_codes(array: pa.Array) -> Int64s:
    """int64[n] in the order of the values; equal values have equal codes. Undefined where the value is NULL.

    NaN is above every other number and -0.0 equals 0.0. Integers, dates and times are their own codes; strings,
    binary and long decimals get their rank among the array's distinct values, so codes of different
    arrays cannot be compared.
    """
    codes = own_codes(array)
    return _ranks(array) if codes is None else codes


def own_codes(array: pa.Array) -> Int64s | None:
    """`order_codes` that are the same in every array; None for a type whose values have no code of their own."""
    dtype = array.type
    if pa.types.is_boolean(dtype):
        codes: Int64s = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes
    if pa.types.is_floating(dtype):
        return _float_codes(fixed_width(array).astype(np.float64))
    if pa.types.is_decimal(dtype):
        return limbs(array)[0].view(np.int64) if dtype.precision <= WORD_DIGITS else None
    if pa.types.is_primitive(dtype):
        return fixed_width(array).astype(np.int64, copy=False)
    return None


def values_of(codes: Int64s, dtype: pa.DataType) -> pa.Array:
    """The values of a type whose `own_codes` these are; the type is no boolean."""
    if pa.types.is_floating(dtype):
        return pa.array(floats_of(codes), pa.float64()).cast(dtype)
    if pa.types.is_decimal(dtype):
        return to_decimals(codes.view(np.uint64), codes >> 63, None, dtype)
    return to_array(codes.astype(f"i{dtype.bit_width // 8}", copy=False), None, dtype)


def dense_codes(array: pa.Array) -> tuple[Int64s, int]:
    """(codes int64[n], count): equal values have equal codes below `count`; of a dictionary, some may have no row.

    NULLs are equal, all NaNs are equal, and so are -0.0 and 0.0.
    """
    if pa.types.is_dictionary(array.type):
        places, values = coded(array)
        return places.to_numpy().astype(np.int64), len(values)
    if pa.types.is_floating(array.type):
        array = pa.array(order_codes(array), mask=None if array.null_count == 0 else ~array.is_valid().to_numpy(False))
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def ranked(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """(codes int64[n], values): the distinct values ascending, and each value's place among them; -1 for NULL.

    Of a dictionary, all its values. The order is that of `order_codes`; all NaNs are one value, -0.0 and 0.0 are 0.0.
    """
    codes, values = _encoded(array)
    order = pc.sort_indices(values)
    rank = np.empty(len(order) + 1, np.int64)
    rank[order.to_numpy(zero_copy_only=False)] = np.arange(len(order))
    rank[-1] = -1
    return rank[codes], _in_type(values.take(order), array)


def encoded(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """As `ranked`, with the distinct values in any order."""
    codes, values = _encoded(array)
    return codes, _in_type(values, array)


def _encoded(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """(codes, values) as of `encoded`; floats as their `order_codes`, booleans as int8."""
    dtype = plain_type(array.type)
    plain = array
    if pa.types.is_floating(dtype):
        plain = pa.array(order_codes(array), mask=None if array.null_count == 0 else ~array.is_valid().to_numpy(False))
    elif pa.types.is_boolean(dtype):
        plain = array.cast(pa.int8())
    made = pc.dictionary_encode(plain)
    places = pc.fill_null(made.indices.cast(pa.int64()), -1) if array.null_count else made.indices
    return places.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), made.dictionary


def _in_type(values: pa.Array, array: pa.Array) -> pa.Array:
    """Values of `_encoded` in the type of the array that they are of."""
    dtype = plain_type(array.type)
    if pa.types.is_floating(dtype):
        return pa.array(floats_of(fixed_width(values)), pa.float64()).cast(dtype)
    return values if values.type == dtype else values.cast(dtype)


def floats_of(codes: Int64s) -> npt.NDArray[np.float64]:
    """The doubles whose `_float_codes` these are."""
    bits = codes ^ ((codes >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    return bits.view(np.float64)


def _float_codes(values: npt.NDArray[np.float64]) -> Int64s:
    """The bits of a double, as integers in the same order (negative numbers have their lower bits flipped)."""
    plain = values + 0.0
    is_nan = np.isnan(plain)
    if is_nan.any():
        plain[is_nan] = np.nan
    bits = plain.view(np.int64)
    bits ^= (bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF)
    return bits


def _ranks(array: pa.Array) -> Int64s:
    encoded = pc.dictionary_encode(array)
    order = pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    indices = pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)
    rank[len(order)] = 0
    ranks: Int64s = rank[indices]
    return ranks


#: The order value of a row whose order key is NULL: it sorts first, and no bounded range reaches it or leaves it.
NULL_ORDER = np.iinfo(np.int64).min


def order_values(column: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n] of an order column: integers as they are, timestamps in µs, dates in days, NULL as NULL_ORDER."""
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    if pa.types.is_timestamp(column.type):
        if column.type.unit != "us":
            column = column.cast(pa.timestamp("us", column.type.tz))
        column = column.view(pa.int64())
    elif column.type != pa.int64():
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(int(NULL_ORDER))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def order_with_nulls(column: pa.Array) -> npt.NDArray[np.int64]:
    """`order_values` where nothing else says which values are NULL. Raises RowError for the one value of 64 bits that
    could not be told from it."""
    values = order_values(column)
    # 0.4 ns a row
    if len(values) and values.min() == NULL_ORDER and np.count_nonzero(values == NULL_ORDER) > column.null_count:
        raise RowError(
            f"rows cannot be ordered by {NULL_ORDER}, the smallest value of 64 bits: it stands for NULL",
            "add 1 to it, or leave such rows out",
            condition="overflow",
        )
    return values
