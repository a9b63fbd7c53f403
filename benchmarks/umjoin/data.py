"""Generated tables of the suite `umjoin`: many-to-many joins with a known number of result rows, and directed graphs
with skewed degrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.harness.data import stored

#: The key columns of each table: a(x), b(x, y), c(y, z), d(z) join as a chain, or as a star on one key.
KEYS = {"a": ("x",), "b": ("x", "y"), "c": ("y", "z"), "d": ("z",)}

#: Values of the column `v` are in 0..VALUES - 1.
VALUES = 1_000


@dataclass(frozen=True)
class FanOutTables:
    """Tables a, b, c and d of `rows` rows each, in which every key has `fan` rows, in random order.

    Keys are bigint in [0, rows / fan); `v` is a bigint. Each row of one table matches `fan` rows of the next one, so a
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
        """The tables' Parquet files below `root` by their names; written only if they are missing."""
        folder = root / f"fanout-{self.rows}-{self.fan}-{self.seed}"
        return {name: stored(folder / f"{name}.parquet", partial(self.table, name)) for name in KEYS}

    def _key(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        return random.permutation(np.arange(self.rows, dtype=np.int64) % (self.rows // self.fan))


@dataclass(frozen=True)
class SkewedGraph:
    """`edges` different edges over `vertices` vertices; both ends follow Zipf's law with `exponent` (0: uniform).

    A vertex that is often a source is often a destination too, as in networks of people or of pages, so paths of two
    edges grow with the skew: at 600,000 edges of 100,000 vertices there are 3.6M of them at exponent 0, 11M at 0.5,
    230M at 0.8 and 909M at 1. A vertex's number is unrelated to its degree. Raises ValueError if the graph would be a
    tenth full: drawing different edges would take too long.
    """

    edges: int
    vertices: int
    exponent: float
    seed: int = 1

    def __post_init__(self) -> None:
        if self.edges < 1 or self.exponent < 0 or self.edges * 10 > self.vertices**2:
            raise ValueError("at least one edge, an exponent of at least 0, and ten possible edges for each edge")

    def table(self) -> pa.Table:
        """The edges in random order."""
        random = np.random.default_rng([self.seed, self.edges, self.vertices, round(self.exponent * 1_000)])
        weights = np.arange(1, self.vertices + 1) ** -self.exponent
        bounds = np.cumsum(weights) / weights.sum()
        found = np.empty(0, np.int64)
        while len(found) < self.edges:
            count = (self.edges - len(found)) * 5 // 4 + 1_000
            src, dst = self._draw(random, bounds, count), self._draw(random, bounds, count)
            found = np.unique(np.concatenate([found, (src * self.vertices + dst)[src != dst]]))
        names = random.permutation(self.vertices)
        found = random.permutation(found)[: self.edges]
        return pa.table({"src": names[found // self.vertices], "dst": names[found % self.vertices]})

    def write(self, root: Path) -> Path:
        """The path of the Parquet file below `root`; written only if it is missing."""
        return stored(root / f"edges-{self.edges}-{self.vertices}-{self.exponent:g}-{self.seed}.parquet", self.table)

    def _draw(self, random: np.random.Generator, bounds: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
        """Ranks of vertices: the position of a uniform number among the cumulative shares."""
        places = np.searchsorted(bounds, random.random(count), side="right")
        return np.minimum(places, self.vertices - 1).astype(np.int64)
