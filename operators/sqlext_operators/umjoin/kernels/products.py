"""The rows of bindings: products of slices, a buffer at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit


@jit
def fill_products(
    low: Any,
    high: Any,
    counts: Int64s,
    bindings: int,
    repeated: bool,
    rows: Int32s,
    state: Int64s,
    out: Any,
    out_counts: Int64s,
) -> int:
    """Write the rows of the first `bindings` bindings until the buffers are full; returns how many.

    A binding's rows are all combinations of rows[low[c, b]:high[c, b]] over the columns c, with -1 for an empty slice;
    its count comes with each of them in out_counts; with `repeated`, each row comes that often instead. out
    int32[columns, capacity], out_counts int64[capacity]. state int64[columns + 2] = the binding, and the place in each
    slice and in the repetition, to continue from; zeros at first. After the last call, state[0] is `bindings`.
    """
    columns, capacity = len(out), len(out_counts)
    digits = state[1:]
    b = state[0]
    count = 0
    while b < bindings and count < capacity:
        times = counts[b] if repeated else 1
        longest, length = columns, times
        for c in range(columns):
            if high[c, b] - low[c, b] > length:
                longest, length = c, high[c, b] - low[c, b]
        run = min(length - digits[longest], capacity - count)
        for c in range(columns):
            at = low[c, b] + digits[c]
            if c == longest:
                _copy(rows[at : at + run], out[c, count : count + run])
            else:
                _repeat(rows[at] if high[c, b] > low[c, b] else np.int32(-1), out[c, count : count + run])
        _repeat(counts[b], out_counts[count : count + run])
        count += run
        digits[longest] += run
        if digits[longest] == length:
            digits[longest] = 0
            b += _carried(low, high, times, b, longest, digits)
    state[0] = b
    return count


@jit
def _carried(low: Any, high: Any, times: int, b: int, longest: int, digits: Int64s) -> int:
    """Count up by one in the digits other than the `longest`; returns 1 if all of them are back at 0."""
    columns = len(low)
    for c in range(columns + 1):
        if c == longest:
            continue
        digits[c] += 1
        if digits[c] < (times if c == columns else high[c, b] - low[c, b]):
            return 0
        digits[c] = 0
    return 1


@jit
def _repeat(value: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = value


@jit
def _copy(values: Int32s, out: Int32s) -> None:
    for k in range(len(out)):
        out[k] = values[k]
