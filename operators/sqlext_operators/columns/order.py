"""Order columns as integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: The order value of a row whose order key is NULL: it sorts first, and no bounded range reaches it or leaves it.
NULL_ORDER = np.iinfo(np.int64).min


def order_values(column: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n] of an order column: integers as they are, timestamps in microseconds, NULL as NULL_ORDER."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif column.type != pa.int64():
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(int(NULL_ORDER))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
