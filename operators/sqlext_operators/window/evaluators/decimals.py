"""sum and avg of decimals, exact: 128-bit integers as sums of 32-bit limbs in int64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, UInt64s
from sqlext_operators.columns.flat import WORD_DIGITS, limbs, to_decimals, usable
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.window.evaluators.base import PrefixSums, Rows, Totalled
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.functions.types import sql_name

_MASK = 0xFFFFFFFF


def split_limbs(low: UInt64s, high: Int64s, *, is_short: bool) -> list[Int64s]:
    """128-bit integers as four limbs of 32 bits, the top one signed; two if they are short."""
    words = (low.view(np.int64),) if is_short else (low.view(np.int64), high)
    found = []
    for place in range(2 * len(words)):
        word, is_top = words[place // 2], place == 2 * len(words) - 1
        found.append(word & _MASK if place % 2 == 0 else word >> 32 if is_top else (word >> 32) & _MASK)
    return found


def joined_limbs(sums: Sequence[Int64s], *, is_short: bool) -> tuple[UInt64s, Int64s, Bools]:
    """(low, high, fits) of sums of limbs, as `DecimalTotals.totals` gives them."""
    digits, carry = [], np.zeros(len(sums[0]), np.int64)
    for limb in sums[:-1]:
        limb = limb + carry
        digits.append(limb & _MASK)
        carry = limb >> 32
    top = sums[-1] + carry
    if is_short:
        low = digits[0] | ((top & _MASK) << 32)
        return low.view(np.uint64), top >> 32, np.ones(len(top), np.bool_)
    low = digits[0] | (digits[1] << 32)
    high = digits[2] | ((top & _MASK) << 32)
    return low.view(np.uint64), high, (top >> 31) == (top >> 63)


class DecimalTotals:
    """Exact sums of decimals over frames, of up to 2**31 values each.

    A value is split into limbs of 32 bits, the top one signed; int64 sums of limbs cannot overflow, and are combined
    into 128 bits at the end.
    """

    def __init__(self, dtype: pa.DataType) -> None:
        self.is_short = dtype.precision <= WORD_DIGITS  # two limbs instead of four
        self.parts = tuple(PrefixSums() for _ in range(2 if self.is_short else 4))

    def load(self, array: pa.Array, mask: Bools | None, candidates: Int64s | None) -> None:
        """The buffer's values; those where `mask` is false count as 0."""
        low, high = limbs(array)
        if mask is not None:
            low, high = np.where(mask, low, np.uint64(0)), np.where(mask, high, 0)
        for part, limb in zip(self.parts, split_limbs(low, high, is_short=self.is_short), strict=True):
            part.load(limb, candidates)

    def totals(self, frames: Frames) -> tuple[UInt64s, Int64s, Bools]:
        """(low, high, fits): the halves of the 128-bit sums, and whether they fit into 128 bits."""
        return joined_limbs([part.totals(frames) for part in self.parts], is_short=self.is_short)


class DecimalSum(Totalled):
    """sum of decimals; a sum beyond the result's precision is NULL, or an error under ANSI."""

    def __init__(self, site: CallSite) -> None:
        self.sums = DecimalTotals(site.types[0])
        super().__init__(site, *self.sums.parts)

    def load(self, rows: Rows) -> None:
        mask = usable(rows.args, self.site.condition)
        self.counts.load(mask, rows.candidates)
        self.sums.load(rows.args[0], mask, rows.candidates)

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high, fits = self.sums.totals(frames)
        fits &= within_precision(low, high, self.site.result_type.precision)
        valid = self.counts.totals(frames) > 0
        check_fits(fits | ~valid, self.site)
        return to_decimals(low, high, fits & valid, self.site.result_type)


class DecimalAverage(DecimalSum):
    """avg of decimals: the exact quotient, rounded half up (away from zero) to the result's scale."""

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high, fits = self.sums.totals(frames)
        counts = self.counts.totals(frames)
        valid = counts > 0
        scale = 10 ** (self.site.result_type.scale - self.site.types[0].scale)
        low, high, divided = divide(low, high, scale, np.where(valid, counts, 1))
        fits &= divided & within_precision(low, high, self.site.result_type.precision)
        check_fits(fits | ~valid, self.site)
        return to_decimals(low, high, fits & valid, self.site.result_type)


def check_fits(fits: Bools, site: CallSite) -> None:
    """Raise RowOverflowError under ANSI if a result does not fit its type."""
    if site.ansi and not fits.all():
        raise RowOverflowError(
            f"{site.function.name}() overflowed {sql_name(site.result_type)}",
            "cast its argument to a smaller scale or to double, or set spark.sql.ansi.enabled=false",
            condition="overflow",
        )


def within_precision(low: UInt64s, high: Int64s, precision: int) -> Bools:
    """Whether |value| < 10**precision."""
    biggest = 10**precision - 1
    beyond = _is_above(low, high, biggest) | _is_above(*_negate(low, high), biggest)
    return np.logical_not(beyond)


def _is_above(low: UInt64s, high: Int64s, bound: int) -> Bools:
    top, bottom = bound >> 64, np.uint64(bound & (2**64 - 1))
    above: Bools = (high > top) | ((high == top) & (low > bottom))
    return above


def _negate(low: UInt64s, high: Int64s) -> tuple[UInt64s, Int64s]:
    return ~low + np.uint64(1), ~high + (low == 0)


def divide(low: UInt64s, high: Int64s, scale: int, counts: Int64s) -> tuple[UInt64s, Int64s, Bools]:
    """(low, high, fits) of value * scale / counts, rounded half away from zero.

    Values whose scaled size fits 62 bits are divided at once, the others one by one as Python integers (1 us each).
    """
    small = (high == (low.view(np.int64) >> 63)) & (np.abs(low.view(np.int64) // 2) < (1 << 60) // scale)
    scaled = np.where(small, low.view(np.int64), 0) * scale
    quotient = np.sign(scaled) * ((2 * np.abs(scaled) + counts) // (2 * counts))
    out_low, out_high = quotient.view(np.uint64).copy(), quotient >> 63
    fits = np.ones(len(low), np.bool_)
    for i in np.flatnonzero(~small):
        value = ((int(high[i]) << 64) + int(low[i])) * scale
        count = int(counts[i])
        whole = (2 * abs(value) + count) // (2 * count)
        whole = -whole if value < 0 else whole
        fits[i] = -(2**127) <= whole < 2**127
        out_low[i] = whole & (2**64 - 1)
        out_high[i] = ((whole >> 64) + 2**63) % 2**64 - 2**63
    return out_low, out_high, fits
