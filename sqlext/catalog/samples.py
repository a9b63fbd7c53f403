"""Samples of rows of Parquet files, from a part of their row groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext.catalog.footers import leaf_places
from sqlext.catalog.memory import kept_by_files

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    #: A row group of an open file.
    Group = tuple[pq.ParquetFile, int]

#: Its multiples spread evenly between whole numbers, however many there are.
_GOLDEN = 0.618033988749895
#: The widest range that values are moved in or out of: offsets in it are exact as doubles.
_WIDEST = 1 << 53


@kept_by_files(64)
def file_sample(
    files: Sequence[Path], columns: tuple[str, ...], rows: int, read: int = 0, spread: str | None = None
) -> pa.Table | None:
    """About `rows` rows, spread evenly over row groups that are spread evenly over the files and have about `read`
    rows, or only as many as are wanted; None if they cannot be read.

    Files are often sorted by time, so that row groups that were not read would be gaps in the times. Each row group
    that was read stands for those that follow it: values of the column `spread` are moved into their ranges.
    """
    import pyarrow.parquet as pq

    try:
        opened = [pq.ParquetFile(file) for file in files]
        names = opened[0].schema_arrow.names
        selected = [names[place] for place in leaf_places(names, columns)]
        groups = [(file, group) for file in opened for group in range(file.num_row_groups)]
        total = sum(file.metadata.num_rows for file in opened)
        count = min(len(groups), max(1, round(len(groups) * max(rows, read) / max(1, total))))
        ends = [place * len(groups) // count for place in range(count + 1)] if groups else []
        chosen = [groups[start:end] for start, end in pairwise(ends)]
        step = max(1, sum(_rows(near[0]) for near in chosen) // max(1, rows))
        parts = []
        for near in chosen:
            file, group = near[0]
            part = _every(file.read_row_group(group, columns=selected, use_threads=False), step).select(selected)
            part = part.rename_columns(list(columns))
            parts.append(part if spread is None or len(near) == 1 else _spread(part, spread, near))
        parts = parts or [opened[0].schema_arrow.empty_table().select(selected).rename_columns(list(columns))]
        return pa.concat_tables(parts)
    except (OSError, ValueError):
        return None


def _rows(group: Group) -> int:
    file, number = group
    found: int = file.metadata.row_group(number).num_rows
    return found


def _every(table: pa.Table, step: int) -> pa.Table:
    return table if step == 1 else table.take(pa.array(np.arange(step // 2, table.num_rows, step)))


def _spread(part: pa.Table, column: str, groups: Sequence[Group]) -> pa.Table:
    """Rows of the first of some row groups, dealt to all of them by their sizes, with the values of a column moved as
    far as its range differs. Nothing is moved where a range is not known."""
    place = part.schema.get_field_index(column)
    kind = part.schema.field(place).type
    ranges = [_range(group, column, kind) for group in groups]
    if ranges[0] is None or not part.num_rows:
        return part
    shares = np.cumsum([_rows(group) for group in groups], dtype=np.float64)
    dealt = np.searchsorted(shares / shares[-1], np.arange(part.num_rows) * _GOLDEN % 1.0, side="right")
    numbers = _integers(part.column(place).combine_chunks())
    low, high = ranges[0]
    values = numbers.fill_null(low).to_numpy(zero_copy_only=False)
    part_of = (values - low) / max(1, high - low)
    moved = values.copy()
    for number, found in enumerate(ranges):
        if number and found is not None:
            own = dealt == number
            moved[own] = found[0] + np.round(part_of[own] * (found[1] - found[0])).astype(np.int64)
    result = pa.array(moved, mask=_nulls(numbers)).cast(_integer_type(kind)).cast(kind)
    return part.set_column(place, part.schema.field(place), result)


def _range(group: Group, column: str, kind: pa.DataType) -> tuple[int, int] | None:
    """The least and the greatest value of a column in a row group; None if they are not known, no numbers, or too far
    apart."""
    file, number = group
    metadata = file.metadata.row_group(number)
    place = leaf_places(file.metadata.schema.names, [column])[0]
    found = metadata.column(place).statistics
    if found is None or not found.has_min_max or _integer_type(kind) is None:
        return None
    try:
        low, high = _integers(pa.array([found.min, found.max], kind)).to_pylist()
    except (pa.ArrowException, TypeError, OverflowError):
        return None
    return (low, high) if high - low <= _WIDEST else None


def _integer_type(kind: pa.DataType) -> pa.DataType | None:
    """The integers that a type's values are stored as; None for other types."""
    if pa.types.is_signed_integer(kind):
        return kind
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else None


def _integers(values: pa.Array) -> pa.Array:
    """As int64."""
    return values.cast(_integer_type(values.type)).cast(pa.int64())


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return found
