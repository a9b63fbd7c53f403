"""Batches with other names or more columns, and several as one, as pyarrow's own calls give them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlext_operators.columns.reshape import renamed, rows_without_columns, stacked, with_column

FIELDS = [pa.field("a", pa.int64(), nullable=False, metadata={b"wide": b"int64"}), pa.field("b", pa.string())]
BATCH = pa.RecordBatch.from_arrays(
    [pa.array([1, 2]), pa.array(["x", None])], schema=pa.schema(FIELDS, metadata={b"of": b"all"})
)


def test_fields_stay_but_for_their_names() -> None:
    found = renamed(BATCH, ["c", "d"])
    assert found.schema.equals(
        pa.schema([field.with_name(name) for field, name in zip(FIELDS, "cd", strict=True)]), check_metadata=True
    )
    assert found.columns == BATCH.columns
    with pytest.raises(ValueError, match="shorter"):
        renamed(BATCH, ["c"])


def test_one_more_column() -> None:
    found = with_column(BATCH, "c", pa.array([0.5, 1.5]))
    assert found.schema.equals(
        pa.schema([*FIELDS, pa.field("c", pa.float64())], metadata={b"of": b"all"}), check_metadata=True
    )
    assert found.column(2).to_pylist() == [0.5, 1.5]
    assert with_column(rows_without_columns(2), "c", pa.array([1, 2])).num_rows == 2
    with pytest.raises(ValueError, match="same length"):
        with_column(BATCH, "c", pa.array([0.5]))


def test_rows_one_below_the_other() -> None:
    found = stacked([BATCH, BATCH.slice(1)])
    assert found.to_pylist() == [*BATCH.to_pylist(), BATCH.to_pylist()[1]]
    assert found.schema.equals(BATCH.schema, check_metadata=True)
    assert stacked([rows_without_columns(2), rows_without_columns(3)]).num_rows == 5


@pytest.mark.skipif(not hasattr(pa.RecordBatch, "append_column"), reason="an older pyarrow")
def test_as_pyarrow() -> None:
    column = pa.array([1, 2])
    pairs = [
        (renamed(BATCH, ["c", "d"]), BATCH.rename_columns(["c", "d"])),
        (with_column(BATCH, "c", column), BATCH.append_column("c", column)),
    ]
    for ours, theirs in pairs:
        assert ours.equals(theirs, check_metadata=True)
