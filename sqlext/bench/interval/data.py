"""Tables of periods for the suite `interval`: `id` bigint, `ts` bigint, `te` bigint (and a key `k` in real data)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Small enough that a scan of 100,000 rows is split over a few cores.
ROW_GROUP = 25_000
#: Larger tables have row groups of this size.
LARGE_ROW_GROUP = 125_000


@dataclass(frozen=True)
class PeriodTables:
    """Two tables by the paper's law: starts uniform in [1, domain], lengths exponential with `mean`, at least 1.

    Both sides follow the same law with different seeds (Piatov et al. 2021, section 9.1: domain 10^6, means
    50, 5,000 and 500,000). Rows are not ordered by time.
    """

    rows: int
    mean: int
    domain: int
    seed: int = 1

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        return f"periods-{self.rows}-{self.mean}-{self.domain}-{self.seed}"

    def table(self, number: int) -> pa.Table:
        """Table 0 (left) or 1 (right)."""
        random = np.random.default_rng([self.seed, number])
        start = random.integers(1, self.domain, self.rows, endpoint=True)
        length = np.maximum(1, np.rint(random.exponential(self.mean, self.rows))).astype(np.int64)
        return pa.table({"id": np.arange(self.rows), "ts": start, "te": start + length})

    def write(self, root: Path) -> tuple[Path, Path]:
        """The paths of left.parquet and right.parquet below `root`; written only if they are missing."""
        folder = root / self.folder
        paths = (folder / "left.parquet", folder / "right.parquet")
        for number, path in enumerate(paths):
            if not path.exists():
                write_table(self.table(number), path)
        return paths


def write_table(table: pa.Table, path: Path) -> None:
    """Write under another name and rename, so that an interrupted run leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial, row_group_size=ROW_GROUP if table.num_rows <= 400_000 else LARGE_ROW_GROUP)
    partial.replace(path)
