"""Generated streams of the suite `stream`: base and probe rows in the order of their arrival, cut into files.

The workloads are those of Scale-OIJ (Zhang et al. 2023): A and D logistics, B and C retail. Their data are not public;
these streams have the keys, windows, lateness and rows in each window that the paper states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.stream.case import StreamSource
from benchmarks.stream.files import START_MS, VALUES, arrival_times, stream_table
from benchmarks.stream.sql import StreamQuery, window_query


@dataclass(frozen=True)
class Workload:
    """A pair of streams and the window over them.

    `density` is the number of rows of each key of each stream in a second of event time, `window_ms` and `lateness_ms`
    are milliseconds of event time, `replay` is the number of rows of both streams together that arrive in a second of
    a paced run (None: as many as possible). With `hot_ms` a key has HOT_SHARE of the rows for so long, then another,
    then none, and so on.
    """

    name: str
    keys: int
    density: float
    window_ms: int
    lateness_ms: int
    replay: int | None = None
    hot_ms: int | None = None

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return self.keys * self.density

    @property
    def matches(self) -> float:
        """Expected probe rows in the window of a base row."""
        return self.density * self.window_ms / 1_000


#: Rows in the windows: A and D 4,000, B 6,000, C 300.
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("A", keys=5, density=4_000, window_ms=1_000, lateness_ms=1_000, replay=120_000),
        Workload("B", keys=111, density=40, window_ms=150_000, lateness_ms=10_000, replay=200_000),
        Workload("C", keys=45, density=37.5, window_ms=8_000, lateness_ms=100_000),
        Workload("D", keys=5, density=4_000, window_ms=1_000, lateness_ms=2_000, replay=15_000),
    )
}

#: The same rows with even keys (50 rows in a window), and with keys that become hot and cool down.
HOT_SHARE = 0.58
SPREAD = {
    workload.name: workload
    for workload in (
        Workload("even", keys=1_000, density=25, window_ms=2_000, lateness_ms=1_000),
        Workload("moving", keys=1_000, density=25, window_ms=2_000, lateness_ms=1_000, hot_ms=15_000),
    )
}

#: In the rising case: rows of each stream in a second of event time, and expected probe rows in each window.
RISING_RATE = 25_000
RISING_MATCHES = 100


def rising_workload(live: int) -> Workload:
    """Windows so long that `live` probe rows are in state, over so many keys that each holds RISING_MATCHES of them:
    only the size of the state differs between cases."""
    keys = max(1, live // RISING_MATCHES)
    window_ms = max(1, round(live / RISING_RATE)) * 1_000
    return Workload(f"rising-{live}", keys, RISING_RATE / keys, window_ms, lateness_ms=1_000)


#: What a contestant runs before anything else.
WARM_UP = Workload("warm-up", keys=10, density=100, window_ms=1_000, lateness_ms=100)


@dataclass(frozen=True)
class StreamTables(StreamSource):
    """Both streams of a workload: (id, k, ts, v), `rows` rows of each.

    A row arrives up to `lateness_ms` after its ts, evenly distributed. The fill is of probe rows.
    """

    workload: Workload
    rows: int
    file_rows: int = 25_000
    fill: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.file_rows < 1 or self.fill < 0 or self.fill_file < 1 or self.readers < 1:
            raise ValueError("rows, rows of a file and readers are at least 1, and fill is at least 0")

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        return f"stream-{self.workload.name}-{self.rows}-{self.file_rows}-{self.fill}-{self.readers}-{self.seed}"

    @property
    def closing_ms(self) -> int:
        """Event time of the closing rows: far behind all windows and lateness."""
        span = (self.rows + self.fill) / self.workload.rate * 1_000
        return START_MS + round(span) + 10 * (self.workload.window_ms + self.workload.lateness_ms) + 3_600_000

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return "base", "probe"

    @property
    def lateness_ms(self) -> int:
        """That of the workload."""
        return self.workload.lateness_ms

    @property
    def query(self) -> StreamQuery:
        """The window over both."""
        spread = self.workload.name in SPREAD
        return window_query(self.workload.window_ms, self.workload.lateness_ms, spread=spread)

    def tiny(self) -> StreamTables:
        """What a contestant runs first."""
        return StreamTables(WARM_UP, rows=500, file_rows=250)

    def is_filled(self, number: int) -> bool:
        return number == 1

    def closing_time(self, streams: Sequence[pa.Table]) -> int:
        return self.closing_ms

    def stream(self, number: int) -> pa.Table:
        """Rows that arrive evenly; those of base after the time of the fill."""
        rows, skipped = (self.rows + self.fill, 0) if self.is_filled(number) else (self.rows, self.fill)
        random = np.random.default_rng([self.seed, number])
        workload = self.workload
        times = arrival_times(rows, workload.rate, workload.lateness_ms, random, skipped + 0.5 * number)
        keys = random.integers(0, workload.keys, rows)
        if workload.hot_ms is not None:
            turn = (times - START_MS) // workload.hot_ms
            hot = (turn % 3 < 2) & (random.random(rows) < HOT_SHARE)
            keys = np.where(hot, turn % workload.keys, keys)
        return stream_table(np.arange(rows), [("k", keys)], times, random.integers(0, VALUES, rows))
