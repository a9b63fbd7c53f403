"""Generated tables of points in time: `k` bigint, `ts` bigint, `v` double, sorted by time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s

from benchmarks.harness.data import stored

ROW_GROUP = 500_000


@dataclass(frozen=True)
class PointTables:
    """Two tables, base (FROM) and probe (UNION), of `rows` rows each over times [0, rows).

    Keys are uniform over [0, keys); with `hot` > 0 key 0 has that share of the rows instead. (k, ts) is unique
    in the base table, so that SQL's RANGE (which includes later ties) and ROWS_RANGE (which does not) mean the
    same rows. There are still ties between base and probe rows, and among probe rows. `shuffled` tables have the same
    rows in no order.
    """

    rows: int
    keys: int
    hot: float = 0.0
    seed: int = 1
    shuffled: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or self.keys < 1 or not 0 <= self.hot < 1:
            raise ValueError("rows and keys are at least 1, the hot share is in [0, 1)")
        if self.keys == 1 and self.hot:
            raise ValueError("a single key has no hot share")

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        return f"points-{self.rows}-{self.keys}-{self.hot:g}-{self.seed}" + ("-shuffled" if self.shuffled else "")

    def write(self, root: Path) -> tuple[Path, Path]:
        """The paths of base.parquet and probe.parquet below `root`; written only if they are missing."""
        base, probe = (root / self.folder / f"{name}.parquet" for name in ("base", "probe"))
        return stored(base, lambda: self._table(0), ROW_GROUP), stored(probe, lambda: self._table(1), ROW_GROUP)

    def _table(self, number: int) -> pa.Table:
        """Table 0 (base) or 1 (probe), sorted by (ts, k)."""
        random = np.random.default_rng([self.seed, number])
        codes = self._unique_codes(random) if number == 0 else self._draw(random, self.rows)
        codes.sort()
        table = pa.table({"k": codes % self.keys, "ts": codes // self.keys, "v": random.random(self.rows)})
        return table.take(random.permutation(self.rows)) if self.shuffled else table

    def _draw(self, random: np.random.Generator, count: int) -> Int64s:
        """`count` random cells, as ts * keys + k."""
        times = random.integers(0, self.rows, count)
        if not self.hot:
            return times * self.keys + random.integers(0, self.keys, count)
        cold = random.integers(1, self.keys, count)
        return times * self.keys + np.where(random.random(count) < self.hot, 0, cold)

    def _unique_codes(self, random: np.random.Generator) -> Int64s:
        """Distinct cells. The hot key's times are sampled without replacement, because its cells nearly fill up."""
        hot_count = round(self.rows * self.hot)
        hot = random.choice(self.rows, hot_count, replace=False).astype(np.int64) * self.keys
        if self.keys == 1:
            return np.arange(self.rows, dtype=np.int64)
        low = 1 if self.hot else 0
        wanted = self.rows - hot_count
        cold = np.empty(0, np.int64)
        while len(cold) < wanted:
            count = int((wanted - len(cold)) * 1.05) + 16
            times = random.integers(0, self.rows, count)
            cold = np.unique(np.concatenate([cold, times * self.keys + random.integers(low, self.keys, count)]))
        return np.concatenate([hot, random.choice(cold, wanted, replace=False)])
