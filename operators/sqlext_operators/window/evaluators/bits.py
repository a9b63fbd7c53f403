"""bool_and, bool_or, bit_and, bit_or and bit_xor."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.flat import fixed_width, to_array, truth, valid_mask
from sqlext_operators.window.evaluators.base import PrefixCounts, Rows, Totalled
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding import sliding_or


class Truths(Totalled):
    """Whether every value, or one, is true: by the numbers of values and of true ones."""

    def __init__(self, site: CallSite, *, every: bool) -> None:
        self.trues = PrefixCounts()
        super().__init__(site, self.trues)
        self.every = every

    def load(self, rows: Rows) -> None:
        self.counts.load(valid_mask(rows.args[0]), rows.candidates)
        self.trues.load(truth(rows.args[0]), rows.candidates)

    def evaluate(self, frames: Frames) -> pa.Array:
        count, true = self.counts.totals(frames), self.trues.totals(frames)
        return to_array(true == count if self.every else true > 0, count > 0, pa.bool_())


class Bits(Totalled):
    """AND, OR or XOR of integers.

    AND is OR of the inverted values. XOR is its own inverse: the XOR of a slice is that of two prefixes. `carry` is
    the result over what has been folded.
    """

    def __init__(self, site: CallSite, *, operation: str) -> None:
        super().__init__(site)
        self.operation = operation
        self.carry = 0

    def load(self, rows: Rows) -> None:
        mask = valid_mask(rows.args[0])
        self.counts.load(mask, rows.candidates)
        values = fixed_width(rows.args[0]).astype(np.int64)
        if self.operation == "and":
            np.invert(values, out=values)
        self._values: Int64s = values if mask is None else np.where(mask, values, 0)
        self._chosen = self._values if rows.candidates is None else self._values[rows.candidates]
        if self.operation == "xor":
            self._prefix = np.append(np.int64(0), np.bitwise_xor.accumulate(self._chosen))
        else:
            count = len(self._chosen)
            self._queues = tuple((np.zeros(4, np.int64), np.empty(count, np.int64)) for _ in range(2))

    def evaluate(self, frames: Frames) -> pa.Array:
        total = self._slice(0, frames, frames.lo, frames.hi)
        if frames.lo2 is not None and frames.hi2 is not None:
            total = self._combine(total, self._slice(1, frames, frames.lo2, frames.hi2))
        if frames.current is not None:
            total = self._combine(total, np.where(frames.current, self._values[frames.row], 0))
        carried = frames.carried()
        total[:carried] = self._combine(total[:carried], np.int64(self.carry))
        if self.operation == "and":
            np.invert(total, out=total)
        dtype = self.site.result_type
        return to_array(total.astype(f"int{dtype.bit_width}"), self.counts.totals(frames) > 0, dtype)

    def _slice(self, queue: int, frames: Frames, lo: Int64s, hi: Int64s) -> Int64s:
        """int64[m], the result over the candidates of one slice of each frame."""
        if self.operation == "xor":
            return self._combine(self._prefix[hi], self._prefix[lo])
        out = np.empty(len(lo), np.int64)
        sliding_or(self._chosen, lo, hi, frames.fresh, *self._queues[queue], out)
        return out

    def _combine(self, left: Int64s, right: Int64s | np.int64) -> Int64s:
        combine = np.bitwise_xor if self.operation == "xor" else np.bitwise_or
        found: Int64s = combine(left, right)
        return found

    def reset(self) -> None:
        super().reset()
        self.carry = 0

    def fold(self, start: int, end: int) -> None:
        super().fold(start, end)
        reduce = np.bitwise_xor if self.operation == "xor" else np.bitwise_or
        self.carry = int(self._combine(reduce.reduce(self._chosen[start:end], keepdims=True), np.int64(self.carry))[0])
