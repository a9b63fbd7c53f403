"""Values of order columns at the ends of their types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlext_operators.columns.codes import NULL_ORDER, order_values, order_with_nulls
from sqlext_operators.errors import RowError

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_the_value_that_stands_for_null(kind: pa.DataType) -> None:
    assert order_with_nulls(pa.array([LEAST + 1, None, MOST], pa.int64()).view(kind)).tolist() == [
        LEAST + 1,
        int(NULL_ORDER),
        MOST,
    ]
    with pytest.raises(RowError, match="the smallest value of 64 bits"):
        order_with_nulls(pa.array([5, None, LEAST], pa.int64()).view(kind))


@pytest.mark.parametrize(("kind", "bits"), [(pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.date32(), 32)])
def test_smaller_types_have_their_whole_range(kind: pa.DataType, bits: int) -> None:
    ends = [-(2 ** (bits - 1)), None, 2 ** (bits - 1) - 1]
    column = pa.array(ends, getattr(pa, f"int{bits}")())
    found = order_values(column.view(kind) if kind == pa.date32() else column).tolist()
    assert found == [ends[0], int(NULL_ORDER), ends[2]]
