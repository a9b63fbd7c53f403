"""distinct_count."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.kernels.sliding_distinct import sliding_distinct
from sqlext_operators.window.codes import dense_codes
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames, IntArray
from sqlext_operators.window.functions.definition import CallSite


class DistinctCount(Evaluator):
    """Number of distinct values, NULL counting as the type's zero value.

    Of an unbounded window's folded rows the distinct values are kept, as many as there are.
    """

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.folded: pa.Array | None = None
        self._permanent: IntArray = np.zeros(0, np.int64)

    @property
    def kept_values(self) -> int:
        return 0 if self.folded is None else len(self.folded)

    def load(self, rows: Rows) -> None:
        self._rows = rows
        self._values = rows.shared(zero_filled, rows.args[0])
        if self.folded is None:
            codes, count = rows.shared(dense_codes, self._values)
        else:
            self._values = pa.concat_arrays([self._values, self.folded])
            codes, count = dense_codes(self._values)
        self._all_codes = codes[: rows.count]
        self._codes = self._all_codes if rows.candidates is None else self._all_codes[rows.candidates]
        self._permanent = codes[rows.count :]
        self._counts = np.zeros(count, np.int64)
        self._counts[self._permanent] = 1
        self._cursor = np.array([0, 0, 0, 0, len(self._permanent), 1], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty(len(frames), np.int64)
        lo2, hi2 = (frames.hi, frames.hi) if frames.lo2 is None or frames.hi2 is None else (frames.lo2, frames.hi2)
        own: IntArray = np.full(len(frames), -1)
        if frames.own is not None:
            own = np.where(frames.own, self._all_codes[frames.row], -1)
        slices = (frames.lo, frames.hi, lo2, hi2)
        sliding_distinct(self._codes, *slices, own, frames.fresh, self._permanent, self._counts, self._cursor, out)
        return pa.array(out)

    def reset(self) -> None:
        self.folded = None
        self._permanent = np.zeros(0, np.int64)

    def fold(self, start: int, end: int) -> None:
        places = self._rows.places(end)[start:]
        any_place = np.full(len(self._counts), -1, np.int64)
        any_place[self._all_codes[places]] = places
        any_place[self._permanent] = self._rows.count + np.arange(len(self._permanent))
        self.folded = self._values.take(pa.array(any_place[any_place >= 0]))


def zero_filled(array: pa.Array) -> pa.Array:
    """NULLs as the zero value of the type; dates are left as they are, NULL among them counting as a value."""
    dtype = array.type
    if array.null_count == 0 or pa.types.is_date(dtype):
        return array
    zero: object = 0
    if pa.types.is_boolean(dtype):
        zero = False
    elif pa.types.is_decimal(dtype):
        zero = Decimal(0)
    elif pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        zero = b""
    elif pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        zero = ""
    return pc.fill_null(array, pa.scalar(zero, dtype))


def distinct_count(site: CallSite) -> Evaluator:
    """The evaluator of distinct_count."""
    return DistinctCount(site)
