"""Arrow arrays as flat numpy arrays and back; NULLs are handled here and nowhere in the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools

#: Decimals of up to so many digits fit into one int64.
WORD_DIGITS = 18
_FIXED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def valid_mask(array: pa.Array) -> Bools | None:
    """bool[n], which values are not NULL; None if none is NULL."""
    if array.null_count == 0:
        return None
    mask: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def truth(array: pa.Array) -> Bools:
    """bool[n] of a condition; NULL is false."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    mask: Bools = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return mask


def usable(args: tuple[pa.Array, ...], condition: int | None) -> Bools | None:
    """bool[n], rows with a value and, if argument `condition` is one, a true condition; None for all rows.

    The value is the first argument, unless that is the condition (``count_where(*, c)``).
    """
    mask = None if condition == 0 or not args else valid_mask(args[0])
    if condition is None:
        return mask
    chosen = truth(args[condition])
    return chosen if mask is None else chosen & mask


def fixed_width(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an integer, float, date, timestamp, duration or time array, without a copy.

    Integers of the type's width for all but float32 and float64; values at NULL places are undefined.
    """
    dtype = array.type
    if pa.types.is_floating(dtype):
        kind: Any = np.float32 if dtype.bit_width == 32 else np.float64
    else:
        kind = _FIXED[dtype.bit_width]
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, count=len(array) + array.offset)[array.offset :]


def limbs(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The (low, high) halves of a decimal128 array's unscaled values."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), np.uint64), np.zeros(len(array), np.int64)
    words = np.frombuffer(data, np.uint64, count=2 * (len(array) + array.offset))[2 * array.offset :].reshape(-1, 2)
    return words[:, 0], words[:, 1].view(np.int64)


def to_array(values: npt.NDArray[Any], valid: Bools | None, dtype: pa.DataType) -> pa.Array:
    """An array of `dtype` from values of its width (integers for dates and times); `valid` None: no NULLs."""
    count = len(values)
    bitmap, nulls = _bitmap(valid)
    if pa.types.is_boolean(dtype):
        data = pa.py_buffer(np.packbits(values.astype(np.bool_), bitorder="little"))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(dtype, count, [bitmap, data], nulls)


def to_decimals(
    low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64], valid: Bools | None, dtype: pa.DataType
) -> pa.Array:
    """A decimal128 array from the halves of its unscaled values."""
    words = np.empty((len(low), 2), np.uint64)
    words[:, 0] = low
    words[:, 1] = high.view(np.uint64)
    bitmap, nulls = _bitmap(valid)
    return pa.Array.from_buffers(dtype, len(low), [bitmap, pa.py_buffer(words)], nulls)


#: So many values are parts of the array put together: 1 µs for one and 5 for four, where Arrow's `take` has 7.
_FEW = 4


def take(array: pa.Array, places: npt.NDArray[np.int64]) -> pa.Array:
    """array[places]; NULL where the place is negative."""
    if len(places) == 1 or (len(places) <= _FEW and not pa.types.is_dictionary(array.type)):
        parts = [array.slice(place, 1) if place >= 0 else pa.nulls(1, array.type) for place in places.tolist()]
        return parts[0] if len(parts) == 1 else pa.concat_arrays([array.slice(0, 0), *parts])
    missing = places < 0
    return array.take(pa.array(places, mask=missing) if missing.any() else pa.array(places))


def _bitmap(valid: Bools | None) -> tuple[pa.Buffer | None, int]:
    if valid is None or valid.all():
        return None, 0
    return pa.py_buffer(np.packbits(valid, bitorder="little")), int(len(valid) - np.count_nonzero(valid))
