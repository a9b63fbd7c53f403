"""One value for each category of a sliding frame: a count, an exact sum, a mean or an extreme.

Values are int64 codes: integers themselves, doubles as integers in the same order (`double_code`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.kernels.jit import jit_without_allocation as jit
from sqlext_operators.window.kernels.sums import add_number, rounded_double, wrapped_integer

#: Kinds of values.
COUNT, INTEGER_SUM, DOUBLE_SUM, MEAN, EXTREME = range(5)
#: Kinds of doubles that are not numbers; 0 is a number.
NAN, INFINITY, MINUS_INFINITY = 1, 2, 3
#: What `CategoryTotals.best` holds for a category without folded rows: no code is above it.
NO_CODE = np.iinfo(np.int64).max

_LOWER_BITS = 0x7FFFFFFFFFFFFFFF


class RowValues(NamedTuple):
    """What each of n rows adds to its category.

    category int64[n], -1 for a row that does not count; number int64[n], the mantissa of a summand
    (kernels/sums.py), or for extremes an order code, the smaller of two the better; shift int64[n], special uint8[n]:
    the summand's shift and whether it is NaN or an infinity, of length 0 where all are 0.
    """

    category: Int64s
    number: Int64s
    shift: Int64s
    special: UInt8s


class CategoryTotals(NamedTuple):
    """The state of c categories; arrays that the kind of value does not need have length 0.

    counts int64[c], how many rows are in; limbs int64[c, l], specials int64[c, 3]: their exact sum; best int64[c], the
    best code that stays in; starts int64[c], heads, tails int64[2, c], queues int64[2, n]: for each of two slices
    and each category the queue queues[s, heads[s, c]:tails[s, c]] of rows that are still better than all later ones,
    in the category's own part of the array, from starts[c] on.
    """

    counts: Int64s
    limbs: Int64s
    specials: Int64s
    best: Int64s
    starts: Int64s
    heads: Int64s
    tails: Int64s
    queues: Int64s


class Measure(NamedTuple):
    """Which value: kind; base of sums; bits of the result's type; whether overflow counts (`checked`); whether the
    codes of an extreme are inverted (`largest`)."""

    kind: int
    base: int
    bits: int
    checked: bool
    largest: bool


@jit
def double_code(value: float) -> int:
    """An integer in the order of the doubles: NaN is the largest, -0.0 is 0.0."""
    if value != value:
        return NO_CODE
    bits = int(np.float64(value + 0.0).view(np.int64))
    return bits ^ ((bits >> 63) & _LOWER_BITS)


@jit
def code_double(code: int) -> float:
    """The double that a code stands for."""
    if code == NO_CODE:
        return np.nan
    return float(np.int64(code ^ ((code >> 63) & _LOWER_BITS)).view(np.float64))


@jit
def change(totals: CategoryTotals, rows: RowValues, measure: Measure, row: int, category: int, sign: int) -> None:
    """Add a row to its category's count and sum (sign 1), or remove it again (-1)."""
    totals.counts[category] += sign
    if measure.kind != COUNT and measure.kind != EXTREME:
        if len(rows.special) > 0 and rows.special[row] != 0:
            totals.specials[category, rows.special[row] - 1] += sign
        else:
            shift = rows.shift[row] if len(rows.shift) > 0 else 0
            add_number(totals.limbs[category], rows.number[row], shift, sign)


@jit
def enter(totals: CategoryTotals, rows: RowValues, measure: Measure, row: int, category: int, queue: int) -> None:
    """A row enters a slice; it is newer than all rows in it."""
    change(totals, rows, measure, row, category, 1)
    if measure.kind == EXTREME:
        number = rows.number[row]
        head = totals.heads[queue, category]
        tail = totals.tails[queue, category]
        while tail > head and rows.number[totals.queues[queue, tail - 1]] > number:
            tail -= 1
        totals.queues[queue, tail] = row
        totals.tails[queue, category] = tail + 1


@jit
def leave(totals: CategoryTotals, rows: RowValues, measure: Measure, row: int, category: int, queue: int) -> None:
    """The oldest row of a slice leaves it."""
    change(totals, rows, measure, row, category, -1)
    if measure.kind == EXTREME:
        head = totals.heads[queue, category]
        if head < totals.tails[queue, category] and totals.queues[queue, head] == row:
            totals.heads[queue, category] = head + 1


@jit
def forget(totals: CategoryTotals, measure: Measure, category: int) -> None:
    """A category has no rows any more."""
    totals.counts[category] = 0
    if measure.kind == EXTREME:
        totals.best[category] = NO_CODE
        for queue in range(2):
            totals.heads[queue, category] = totals.starts[category]
            totals.tails[queue, category] = totals.starts[category]
    elif measure.kind != COUNT:
        totals.limbs[category] = 0
        totals.specials[category] = 0


@jit
def value_of(
    totals: CategoryTotals, rows: RowValues, measure: Measure, category: int, scratch: Int64s
) -> tuple[int, bool]:
    """(the code of a category's value, whether it fits its type); `scratch` as in `rounded_double`."""
    count = totals.counts[category]
    if measure.kind == COUNT:
        return count, True
    if measure.kind == EXTREME:
        best = totals.best[category]
        for queue in range(2):
            head = totals.heads[queue, category]
            if head < totals.tails[queue, category]:
                best = min(best, rows.number[totals.queues[queue, head]])
        return ~best if measure.largest else best, True
    if measure.kind == INTEGER_SUM:
        total, fits = wrapped_integer(totals.limbs[category], measure.bits)
        return total, fits or not measure.checked
    return double_code(_double_value(totals, measure, category, count, scratch)), True


@jit
def _double_value(totals: CategoryTotals, measure: Measure, category: int, count: int, scratch: Int64s) -> float:
    specials = totals.specials[category]
    infinite = specials[INFINITY - 1] > 0
    minus_infinite = specials[MINUS_INFINITY - 1] > 0
    if specials[NAN - 1] > 0 or (infinite and minus_infinite):
        return np.nan
    if infinite:
        return np.inf
    if minus_infinite:
        return -np.inf
    total = rounded_double(totals.limbs[category], measure.base, scratch)
    if measure.kind == MEAN:
        return total / count
    return float(np.float32(total)) if measure.bits == 32 else total


@jit
def keep_rows(totals: CategoryTotals, rows: RowValues, measure: Measure, places: Int64s) -> None:
    """The rows at these places stay for good."""
    for row in places:
        category = rows.category[row]
        if category >= 0:
            change(totals, rows, measure, row, category, 1)
            if measure.kind == EXTREME:
                totals.best[category] = min(totals.best[category], rows.number[row])
