"""Statistics of key columns, from the footers and a few row groups of Parquet files."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlext_planner.catalog import KeyStatistics

from sqlext.catalog.memory import kept_by_files

#: Keys with more gaps than this are not dense: their range does not show how often they occur.
_DENSE = 1.1


@kept_by_files(512)
def file_statistics(files: Sequence[Path], columns: tuple[str, ...]) -> KeyStatistics | None:
    """Rows and numbers of values of the columns (names ignore case); None if a file lacks one, or cannot be read."""
    import pyarrow.parquet as pq

    try:
        footers = [pq.read_metadata(file) for file in files]
        places = [_places(footer.schema.names, columns) for footer in footers]
    except (OSError, ValueError):
        return None
    rows = sum(footer.num_rows for footer in footers)
    parts = [
        (footer.row_group(group), found)
        for footer, found in zip(footers, places, strict=True)
        for group in range(footer.num_row_groups)
    ]
    distinct = [
        _distinct([group.column(found[i]).statistics for group, found in parts if group.num_rows], rows)
        for i in range(len(columns))
    ]
    return KeyStatistics(rows, tuple(distinct))


def _places(names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """The positions of top-level columns among a file's leaves. Raises ValueError for a name that is not there."""
    lowered = [name.lower() for name in names]
    return [lowered.index(column.lower()) for column in columns]


def _distinct(statistics: Sequence[Any], rows: int) -> int | None:
    """The number of values between the least and the greatest one; None if there are more of them than rows: then it is
    unknown how many occur."""
    if not all(item is not None and item.has_min_max for item in statistics):
        return None
    ends = [(item.min, item.max) for item in statistics]
    if not ends:
        return 0
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if type(low) is datetime.date:
        between = int((high - low).days) + 1
    elif isinstance(low, int):
        between = int(high) - int(low) + 1
    else:
        return None
    return between if between <= _DENSE * rows else None


@kept_by_files(64)
def file_sample(files: Sequence[Path], columns: tuple[str, ...], rows: int, read: int = 0) -> pa.Table | None:
    """About `rows` rows, spread evenly over row groups that are spread evenly over the files and have about `read`
    rows, or only as many as are wanted; None if they cannot be read."""
    import pyarrow.parquet as pq

    try:
        opened = [pq.ParquetFile(file) for file in files]
        names = opened[0].schema_arrow.names
        wanted = [names[place] for place in _places(names, columns)]
        groups = [(file, group) for file in opened for group in range(file.num_row_groups)]
        total = sum(file.metadata.num_rows for file in opened)
        count = min(len(groups), max(1, round(len(groups) * max(rows, read) / max(1, total))))
        chosen = [groups[place * len(groups) // count] for place in range(count)] if groups else []
        step = max(1, sum(file.metadata.row_group(group).num_rows for file, group in chosen) // max(1, rows))
        parts = [_every(file.read_row_group(group, columns=wanted, use_threads=False), step) for file, group in chosen]
        parts = parts or [opened[0].schema_arrow.empty_table().select(wanted)]
        return pa.concat_tables(part.select(wanted) for part in parts).rename_columns(list(columns))
    except (OSError, ValueError):
        return None


def _every(table: pa.Table, step: int) -> pa.Table:
    import numpy as np

    return table if step == 1 else table.take(pa.array(np.arange(step // 2, table.num_rows, step)))
