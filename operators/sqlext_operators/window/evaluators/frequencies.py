"""top, topn_frequency, mode, top1_ratio and entropy; and what functions of value frequencies share: the codes of the
values, and the folded rows as counts.

CPU time, ns a row, over 1M rows with one slice that slides by one row (numba 0.68, a busy 2-core machine), codes and
texts of the values included; windows of 10 / 1,000 / 100,000 rows:

    distinct values          topn_frequency(x, 3)   top(x, 3)         top1_ratio(x)
    5 integers               150 / 130 / 125        125 / 120 / 115   40 / 35 / 35
    1,000 strings            200 / 205 / 175        200 / 170 / 150   35 / 50 / 35
    600,000 integers         780 / 490 / 850        960 / 620 / 930   290 / 270 / 260

The first two columns were measured before `top_texts` stopped counting references; the list has figures since.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import encoded, ranked
from sqlext_operators.columns.flat import take, to_array
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.window.evaluators.base import WEIGHT_BYTES, Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels import counted as heaps
from sqlext_operators.window.kernels import top_texts as tops
from sqlext_operators.window.kernels.counted import MOVES, SIZE, sliding_top
from sqlext_operators.window.kernels.sliding_counts import REST, UPPER, sliding_entropy, sliding_mode, sum_terms
from sqlext_operators.window.texts import Texts, value_texts

_FILLER = np.frombuffer(b"NULL", np.uint8).copy()
#: Bytes of text that the output begins with for each row; it is doubled when full.
_FIRST_BYTES = 16
#: Codes that are in are kept as a list while frames hold at most so many rows, and no more values are wanted.
_FEW_ROWS, _FEW_WANTED = 64, 8


class ValueCounts(Evaluator):
    """Non-NULL values by their place among the values at hand.

    For an unbounded window it keeps the distinct values of the folded rows and their counts. After `load`: values are
    the distinct ones, ascending if `in_order`; codes int64[candidates] and all_codes int64[buffer rows] are places in
    it, -1 for NULL; permanent int64[p] are the folded ones' codes, with their numbers in permanent_counts; counts
    int64[values] holds these numbers and is for the kernel to change.
    """

    takes_dictionaries = True
    #: Whether the values are ascending; else they are in any order.
    in_order: ClassVar[bool] = True

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.folded: tuple[pa.Array, Int64s] | None = None
        self.folded_rows = 0

    @property
    def kept_values(self) -> int:
        return 0 if self.folded is None else len(self.folded[1])

    def load(self, rows: Rows) -> None:
        encode = ranked if self.in_order else encoded
        if self.folded is None:
            codes, self.values = rows.shared(encode, rows.args[0])
        else:
            codes, self.values = encode(pa.concat_arrays([rows.args[0], self.folded[0]]))
        self.all_codes = codes[: rows.count]
        self.codes = self.all_codes if rows.candidates is None else self.all_codes[rows.candidates]
        self.permanent = codes[rows.count :]
        self.permanent_counts: Int64s = np.zeros(0, np.int64) if self.folded is None else self.folded[1]
        self.counts: Int64s = np.zeros(len(self.values), np.int64)
        self.counts[self.permanent] = self.permanent_counts
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make the kernel's state from the codes and the permanent counts."""

    def is_empty(self, frames: Frames) -> Bools:
        """bool[m], frames without any row, not even one with NULL."""
        empty: Bools = frames.sizes() == 0
        if self.folded_rows:
            empty[: frames.carried()] = False
        return empty

    def reset(self) -> None:
        self.folded = None
        self.folded_rows = 0

    def fold(self, start: int, end: int) -> None:
        counts = np.zeros(len(self.values) + 1, np.int64)  # the last one for NULL, code -1
        np.add.at(counts, self.codes[start:end], self.amounts(start, end))
        if self.folded is not None:
            counts[self.permanent] += self.permanent_counts
        present = self.showable_codes(np.flatnonzero(counts[:-1]))
        self.folded = self.values.take(pa.array(present)), counts[present]
        self.folded_rows += end - start

    def amounts(self, start: int, end: int) -> Int64s:
        """How often each of the candidates [start, end) counts."""
        return np.ones(end - start, np.int64)

    def showable_codes(self, codes: Int64s) -> Int64s:
        """The folded rows' codes that a later result may show, ascending."""
        return codes


class TopTexts(ValueCounts):
    """The largest values (`by_value`) or the most frequent ones as a text."""

    def __init__(self, site: CallSite, *, by_value: bool) -> None:
        super().__init__(site)
        self.by_value = by_value
        self.n = int(site.constants[0] or 0)

    def prepare(self) -> None:
        self._texts = Texts.of(value_texts(self.values, self.site.time_zone))
        distinct = len(self.values)
        most = int(self.permanent_counts.max(initial=0)) + 2 * len(self.codes) + 1
        if most >= heaps.MOST:
            raise RowOverflowError(
                f"{self.site.function.name}() can count a value at most {heaps.MOST} times",
                "give the window a shorter frame",
                condition="result-too-large",
            )
        self._counted = np.empty(distinct, np.int64), np.full(distinct, -1)
        size = heaps.insert(*self._counted, self.permanent, self.permanent_counts, self.by_value)
        room = min(self.n, distinct) + 2
        self._scratch = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
        self._ranges = np.empty((MOVES, 2), np.int64)
        self._cursor = np.zeros(6, np.int64)
        self._cursor[tops.SIZE] = size
        self._is_list = len(self.permanent) == 0 and self.n <= _FEW_WANTED

    def weights(self, frames: Frames) -> Int64s:
        values = np.full(len(frames), self.n)
        if self.by_value and not self.site.unbounded:
            values = np.minimum(values, frames.sizes())
        longest = max(self._texts.longest, len(_FILLER)) + 1
        return values * longest // WEIGHT_BYTES

    def evaluate(self, frames: Frames) -> pa.Array:
        count = len(frames)
        offsets = np.empty(count + 1, np.int64)
        out = np.empty(_FIRST_BYTES * count, np.uint8)
        texts = self._texts.offsets, self._texts.data, _FILLER
        sizes = frames.sizes()
        if self._is_list and int(sizes.max(initial=0)) > _FEW_ROWS:
            heaps.ordered(*self._counted, self._cursor[tops.SIZE], self.by_value)
            self._is_list = False
        given = self.codes, frames.slices, frames.current_of(self.all_codes), frames.fresh, self.is_empty(frames)
        self._cursor[tops.WRITTEN] = 0
        done = 0
        while True:
            state = self._counted, self._scratch, self._ranges, self._cursor
            done = tops.top_texts(*given, done, self.n, self.by_value, self._is_list, *state, texts, offsets, out)
            if done == count:
                break
            out = np.concatenate([out, np.empty(len(out), np.uint8)])
        size = int(offsets[-1])
        strings = pa.Array.from_buffers(
            pa.large_string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(out[:size].copy())]
        )
        return strings.cast(pa.string())

    def showable_codes(self, codes: Int64s) -> Int64s:
        # a later frame holds all of these values, so only the n largest can be shown
        return codes[max(0, len(codes) - self.n) :] if self.by_value else codes


class Mode(ValueCounts):
    """The most frequent value; of equally frequent ones the smallest, or the largest (`directed` is true)."""

    def __init__(self, site: CallSite, *, directed: bool = False) -> None:
        super().__init__(site)
        self.largest = directed and bool(site.constants[0])

    def prepare(self) -> None:
        distinct = len(self.values)
        self._counted = np.empty(distinct, np.int64), np.full(distinct, -1)
        self._cursor = np.zeros(5, np.int64)
        self._mode_codes = self._preferred(self.codes)
        permanent = self._preferred(self.permanent)
        self._cursor[SIZE] = heaps.insert(*self._counted, permanent, self.permanent_counts, False)
        self._ranges = np.empty((MOVES, 2), np.int64)

    def _preferred(self, codes: Int64s) -> Int64s:
        """The codes and back: the heap prefers the smaller one of equally frequent codes."""
        return np.where(codes < 0, -1, len(self.values) - 1 - codes) if self.largest else codes

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty(len(frames), np.int64)
        current = self._preferred(frames.current_of(self.all_codes))
        given = self._mode_codes, frames.slices, current, frames.fresh
        sliding_top(*given, *self._counted, self._ranges, self._cursor, out)
        return take(self.values, self._preferred(out))


class Top1Ratio(ValueCounts):
    """The share of the most frequent value among all non-NULL values; 0 if there is none."""

    in_order = False

    def prepare(self) -> None:
        self._ties = np.zeros(2 * len(self.codes) + 2, np.int64)
        total, mode = int(self.permanent_counts.sum()), int(self.permanent_counts.max(initial=0))
        self._cursor = np.array([0, 0, 0, 0, 1, total, mode, mode], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        mode, total = np.empty(len(frames), np.int64), np.empty(len(frames), np.int64)
        given = self.codes, frames.slices, frames.current_of(self.all_codes), frames.fresh, self.permanent
        sliding_mode(*given, self.counts, self._ties, self._cursor, mode, total)
        return pa.array(mode / np.maximum(total, 1))


class Entropy(ValueCounts):
    """log2(n) - sum(c * log2(c)) / n for the counts c of n values: Shannon's entropy in bits, within 1e-14."""

    in_order = False

    def prepare(self) -> None:
        self._sums = sum_terms(self.counts)
        self._cursor = np.array([0, 0, 0, 0, 1], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty((len(frames), 4), np.int64)
        given = self.codes, frames.slices, frames.current_of(self.all_codes), frames.fresh, self.permanent
        sliding_entropy(*given, self.counts, self._sums, self._cursor, out)
        upper, rest, total, distinct = out.T
        n = np.maximum(total, 1)
        bits = np.log2(n) - (upper / UPPER + rest / (UPPER * REST)) / n
        return to_array(np.where(distinct > 1, np.maximum(bits, 0.0), 0.0), total > 0, pa.float64())
