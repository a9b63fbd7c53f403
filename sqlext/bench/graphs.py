"""Directed graphs with skewed degrees: `src` bigint, `dst` bigint, no edge twice and none from a vertex to itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext.bench.intervals import write_table


@dataclass(frozen=True)
class SkewedGraph:
    """`edges` different edges over `vertices` vertices; both ends follow Zipf's law with `exponent` (0: uniform).

    A vertex that is often a source is often a destination too, as in networks of people or of pages, so paths of two
    edges grow with the skew: at 600,000 edges of 100,000 vertices there are 3.6M of them at exponent 0, 11M at 0.5,
    230M at 0.8 and 909M at 1. Numbers of vertices say nothing of their degree. Raises ValueError where the graph would
    be a tenth full: drawing different edges would take too long.
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
        """The path of the Parquet file below `root`; written only where it is missing."""
        path = root / f"edges-{self.edges}-{self.vertices}-{self.exponent:g}-{self.seed}.parquet"
        if not path.exists():
            write_table(self.table(), path)
        return path

    def _draw(self, random: np.random.Generator, bounds: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
        """Ranks of vertices: the place of a uniform number among the cumulated shares."""
        places = np.searchsorted(bounds, random.random(count), side="right")
        return np.minimum(places, self.vertices - 1).astype(np.int64)
