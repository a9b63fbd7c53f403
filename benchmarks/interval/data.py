"""Tables of periods for the suite `interval`: `id` bigint, `ts` bigint, `te` bigint (and a key `k` in real data)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness.data import stored


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
        left, right = (root / self.folder / f"{side}.parquet" for side in ("left", "right"))
        return stored(left, lambda: self.table(0)), stored(right, lambda: self.table(1))
