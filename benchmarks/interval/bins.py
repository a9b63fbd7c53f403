"""The width of the bins of the hand-written contestant: what a careful user would choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.interval.sql import JoinText

#: CPU seconds for one exploded row and for one pair of rows that meet in a bin, in Spark 4.3: fitted to the overlap of
#: 200,000 x 200,000 rows of mean length 25,000 over 2 * 10^8 at eight widths (2,048: 13.3 s, 8,192: 5.9 s, 32,768: 4.7,
#: 262,144: 10.2 s; the choice below is 32,768).
SECONDS_A_ROW = 0.5e-6
SECONDS_A_CANDIDATE = 0.1e-6


@dataclass
class BinWidth:
    """Chooses a power of two; `fixed` overrides it. Each choice is made once."""

    fixed: int | None = None
    _chosen: dict[tuple[Path, Path, JoinText], int] = field(default_factory=dict)

    def choose(self, left: Path, right: Path, text: JoinText) -> int:
        """The width with the least estimated time: wide bins hold more pairs to compare, narrow ones more copies.

        For uniform starts, n rows and m rows of lengths x and y in a domain D, bins of width w:
        overlap n (1 + x / w) + m (1 + y / w) rows and n m (x + w) (y + w) / (w D) candidates;
        windows of length x against single values n (1 + x / w) + m rows and n m (x + w) / D candidates.
        """
        if self.fixed is not None:
            return self.fixed
        key = (left, right, text)
        if key not in self._chosen:
            sides = [_Side.read(path, text.keyed) for path in (left, right)]
            widths = [2**power for power in range(41)]
            self._chosen[key] = min(widths, key=lambda width: _seconds(width, sides[0], sides[1], text))
        return self._chosen[key]


@dataclass(frozen=True)
class _Side:
    """Rows with a valid period, their mean length, first and last start, and the distinct keys (1 without a key)."""

    rows: int
    length: float
    first: float
    last: float
    keys: int

    @classmethod
    def read(cls, path: Path, keyed: bool) -> _Side:
        table = pq.read_table(path)
        table = table.filter(pc.less(table["ts"], table["te"]))
        if not table.num_rows:
            return cls(0, 0.0, 0.0, 0.0, 1)
        start: npt.NDArray[np.int64] = table["ts"].to_numpy()
        length = float((table["te"].to_numpy() - start).mean())
        keys = pc.count_distinct(table["k"]).as_py() if keyed else 1
        return cls(len(start), length, float(start.min()), float(start.max()), keys)


def _seconds(width: int, left: _Side, right: _Side, text: JoinText) -> float:
    domain = max(left.last, right.last) - min(left.first, right.first) + 1
    pairs = left.rows * right.rows / max(left.keys, right.keys)
    if text.window_bins:
        (one,) = text.passes
        window, probe = (left, right) if one.window == "left" else (right, left)
        length = min(window.length, text.delta) if text.delta is not None else window.length
        rows = window.rows * (1 + length / width) + probe.rows
        candidates = pairs * (length + width) / (domain + width)
    else:
        rows = left.rows * (1 + left.length / width) + right.rows * (1 + right.length / width)
        candidates = pairs * (left.length + width) * (right.length + width) / (width * (domain + width))
    return rows * SECONDS_A_ROW + candidates * SECONDS_A_CANDIDATE
