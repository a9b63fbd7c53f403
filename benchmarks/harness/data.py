"""Generated tables on disk: written once, and never half."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: Rows of a row group: few enough that a scan of 100,000 rows is split over a few cores; more in larger tables.
SMALL_ROW_GROUP, ROW_GROUP = 25_000, 125_000


def stored(path: Path, make: Callable[[], pa.Table], row_group: int | None = None) -> Path:
    """The Parquet file `path`, made if it is missing."""
    if not path.exists():
        write_table(make(), path, row_group)
    return path


def write_table(table: pa.Table, path: Path, row_group: int | None = None) -> None:
    """Write under another name and rename, so that an interrupted run leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    size = row_group or (SMALL_ROW_GROUP if table.num_rows <= 400_000 else ROW_GROUP)
    pq.write_table(table, partial, row_group_size=size)
    partial.replace(path)
