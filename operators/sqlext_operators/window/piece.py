"""A run of consecutive rows of one partition's sorted sequence: what the exchange hands to a window operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: The order value of a row whose order key is NULL: it sorts first, and no bounded range reaches it or leaves it.
NULL_ORDER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Piece:
    """n rows in sequence order: group, then order, then union rows before FROM rows, then input order.

    At equal order the union sources come last listed first (source 3, 2, 1), then FROM (source 0), so that the
    first listed union is the newest (docs/reference/windows.md, section 3).

    group    int64[n], non-decreasing; equal keys have equal ids, and ids keep their meaning in later pieces of the
             same partition (a key that is cut in two continues under the same id)
    order    int64[n], non-decreasing in a group; all zero without an order column; NULL_ORDER for NULL
    source   uint8[n], 0 for FROM, i for the i-th union source
    args     argument columns by name, length n each
    payload  the columns passed through, one row for each row of source 0, in sequence order
    """

    group: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    source: npt.NDArray[np.uint8]
    args: dict[str, pa.Array]
    payload: pa.RecordBatch


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A batch of `count` rows and no columns (what SELECT count(*) OVER w passes through)."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
