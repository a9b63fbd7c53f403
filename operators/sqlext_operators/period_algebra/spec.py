"""What the operators of the period algebra have to compute: plain frozen data, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.codes import own_codes
from sqlext_operators.columns.empty_periods import Empty, refuse_empty
from sqlext_operators.columns.flat import fixed_width, valid_mask

#: normalize   the maximal periods that a key's periods cover without a gap
#: gaps        what is not covered between the first start and the last end of a key
#: concurrent  the maximal periods with a constant number (at least 1) of a key's periods, with that number
#: difference  the maximal periods that input 0's periods of a key cover and input 1's do not
Operation = Literal["normalize", "gaps", "concurrent", "difference"]


@dataclass(frozen=True)
class PeriodAlgebraSpec:
    """One operation over the periods [start, end) of rows with equal keys; NULL keys are equal.

    `keys`, `start` and `end` name columns that every input has; `ends` is the type of both ends. A period with a NULL
    or NaN end covers nothing; `empty` says what one does that is empty or reversed. The output is the keys, then
    `start` and `end`, then for "concurrent" the column `count` (bigint). Periods of a key come in ascending order; they
    do not overlap, and touch only if their counts differ.
    """

    operation: Operation
    keys: tuple[str, ...]
    start: str
    end: str
    ends: pa.DataType
    count: str = ""
    empty: Empty = "drop"

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return 2 if self.operation == "difference" else 1


#: The names of the two columns of codes.
START, END = "__sqlext_start", "__sqlext_end"


def coded(spec: PeriodAlgebraSpec, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The keys and the codes START < END (int64, in the order of the values) of the rows whose periods cover anything.

    Raises EmptyPeriodError as the specification says, ValueError for a type without codes of its own.
    """
    start, end = rows.column(spec.start), rows.column(spec.end)
    first, last = own_codes(start), own_codes(end)
    if first is None or last is None:
        raise ValueError(f"periods of {start.type} have no codes")
    if spec.empty == "point":
        last = last + ((first == last) & (first < _greatest(end.type)))
    good = first < last
    known = _known(start, end)
    if spec.empty == "error":
        refuse_empty(start, end, ~good if known is None else known & ~good)
    good = good if known is None else good & known
    columns = [*(rows.column(name) for name in spec.keys), pa.array(first), pa.array(last)]
    kept = pa.RecordBatch.from_arrays(columns, names=[*spec.keys, START, END])
    return kept if good.all() else kept.filter(pa.array(good))


def _known(start: pa.Array, end: pa.Array) -> Bools | None:
    """bool[n], rows without a NULL and without a NaN at the end (one at the start is less than nothing); None: all."""
    masks = [mask for mask in (valid_mask(start), valid_mask(end)) if mask is not None]
    if pa.types.is_floating(end.type):
        masks.append(~np.isnan(fixed_width(end)))
    return np.logical_and.reduce(masks) if masks else None


def _greatest(kind: pa.DataType) -> int:
    """The code of the largest value of a type, which has no next one."""
    return int(10**kind.precision) - 1 if pa.types.is_decimal(kind) else (1 << (kind.bit_width - 1)) - 1
