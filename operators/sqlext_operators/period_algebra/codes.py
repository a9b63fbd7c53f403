"""The periods of a batch as pairs of integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.codes import own_codes
from sqlext_operators.columns.empty_periods import refuse_empty
from sqlext_operators.columns.flat import fixed_width, valid_mask
from sqlext_operators.period_algebra.spec import PeriodAlgebraSpec

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
    """bool[n], rows without a NULL and without a NaN at the end (one at the start is less than nothing); None for all
    rows."""
    masks = [mask for mask in (valid_mask(start), valid_mask(end)) if mask is not None]
    if pa.types.is_floating(end.type):
        masks.append(~np.isnan(fixed_width(end)))
    return np.logical_and.reduce(masks) if masks else None


def _greatest(kind: pa.DataType) -> int:
    """The code of the largest value of a type, which has no next one."""
    return int(10**kind.precision) - 1 if pa.types.is_decimal(kind) else (1 << (kind.bit_width - 1)) - 1
