"""Tables for many-to-many joins whose number of result rows is known: every key has the same number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext.bench.intervals import write_table

#: The key columns of each table: a(x), b(x, y), c(y, z), d(z) join as a chain, or as a star on one key.
KEYS = {"a": ("x",), "b": ("x", "y"), "c": ("y", "z"), "d": ("z",)}

#: Values of the column `v` lie in 0..VALUES - 1.
VALUES = 1_000


@dataclass(frozen=True)
class FanOutTables:
    """Tables a, b, c and d of `rows` rows each, in which every key has `fan` rows, in random order.

    Keys are bigint in [0, rows / fan); `v` is a bigint. Each row of one table meets `fan` rows of the next one, so a
    chain and a star of all four have rows * fan^3 result rows. Raises ValueError unless `fan` divides `rows`.
    """

    rows: int
    fan: int
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows < 1 or self.fan < 1 or self.rows % self.fan:
            raise ValueError("the fan-out divides the number of rows")

    @property
    def results(self) -> int:
        """Rows of the join of all four, as a chain or as a star."""
        return self.rows * self.fan**3

    def sum_of_c(self) -> int:
        """SUM(c.v) over the join: each row of c is in fan^3 result rows."""
        return int(self.table("c")["v"].to_numpy().sum()) * self.fan**3

    def table(self, name: str) -> pa.Table:
        """One of the tables a, b, c and d: its keys, and v."""
        random = np.random.default_rng([self.seed, ord(name)])
        columns = {key: self._key(random) for key in KEYS[name]}
        return pa.table({**columns, "v": random.integers(0, VALUES, self.rows)})

    def write(self, root: Path) -> dict[str, Path]:
        """The tables' Parquet files below `root` by their names; written only where they are missing."""
        folder = root / f"fanout-{self.rows}-{self.fan}-{self.seed}"
        paths = {name: folder / f"{name}.parquet" for name in KEYS}
        for name, path in paths.items():
            if not path.exists():
                write_table(self.table(name), path)
        return paths

    def _key(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        return random.permutation(np.arange(self.rows, dtype=np.int64) % (self.rows // self.fan))
