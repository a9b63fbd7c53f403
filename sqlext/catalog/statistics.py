"""Statistics of key columns, from the footers of Parquet files."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
        places = [leaf_places(footer.schema.names, columns) for footer in footers]
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


def leaf_places(names: Sequence[str], columns: Sequence[str]) -> list[int]:
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
