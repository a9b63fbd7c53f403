"""Generated streams with self-similar keys: those of PPOIJ's benchmark (Mencagli et al.), which has them as files.

The generator is numpy's, so the rows are not those of the paper's files, but follow the same laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.stream.files import START_MS, stream_table

#: A row comes up to so many milliseconds after the one before; 0 counts as the most.
LARGEST_GAP_MS = 500
MEAN_GAP_MS = LARGEST_GAP_MS * (LARGEST_GAP_MS + 3) / (2 * (LARGEST_GAP_MS + 1))
#: Values of the column `v` are in 1..VALUES.
VALUES = 100


@dataclass(frozen=True)
class SelfSimilarStreams:
    """Two streams (id, k, ts, v) of `rows` rows each, ascending in ts.

    Keys are bigint in 1..keys. The first skew * keys of them have 1 - skew of the rows, and so on within these (Gray et
    al. 1994): of 50 keys the first has 20 % of the rows at a skew of 0.35, and 58 % at 0.2; at 0.5 all have the same.
    Gaps between the rows of a stream are whole milliseconds from 1 to LARGEST_GAP_MS, 251 on average. Raises ValueError
    for no rows or keys, and for a skew that is not above 0 and at most 0.5.
    """

    rows: int
    keys: int
    skew: float
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows < 1 or self.keys < 1 or not 0 < self.skew <= 0.5:
            raise ValueError("at least one row and key, and a skew above 0 and at most 0.5")

    def shares(self) -> npt.NDArray[np.float64]:
        """float64[keys]: the expected share of the rows of each key, from the law's closed form."""
        bounds = (np.arange(self.keys + 1) / self.keys) ** (math.log(1 - self.skew) / math.log(self.skew))
        return np.diff(bounds)

    def table(self, number: int) -> pa.Table:
        """Stream 0 or 1."""
        random = np.random.default_rng([self.seed, number, self.keys, round(self.skew * 1_000)])
        power = math.log(self.skew) / math.log(1 - self.skew)
        places = np.floor(self.keys * random.random(self.rows) ** power).astype(np.int64)
        gaps = random.integers(0, LARGEST_GAP_MS, self.rows, endpoint=True)
        times = START_MS + np.cumsum(np.where(gaps == 0, LARGEST_GAP_MS, gaps))
        values = random.integers(1, VALUES, self.rows, endpoint=True)
        return stream_table(np.arange(self.rows), [("k", np.minimum(places, self.keys - 1) + 1)], times, values)
