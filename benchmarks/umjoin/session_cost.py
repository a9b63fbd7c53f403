"""What `Session.sql` adds to `spark.sql` where it has nothing to do, for the queries of TPC-DS; nothing is executed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal

from benchmarks.harness.calls import calls_counted
from benchmarks.harness.engines import Engines
from benchmarks.harness.suite import Answer, Case, Contestant
from sqlext.session import Session

#: Whether a session meets a text for the first time or has handed it to Spark before.
Met = Literal["first", "again"]
#: Rounds over all texts before the first measurement, in a JVM that has run nothing.
WARM_UPS = 2
#: The headings of what is measured besides the median.
P95, CALLS, CALLS_OF_SPARK = "p95 added ms", "JVM calls", "JVM calls of spark.sql"


@dataclass
class SessionCost(Contestant):
    """Each text through both, one after the other; which comes first alternates. A run's time is the median over the
    texts of the seconds that ours adds.

    `texts` are the statements and `tables` the Parquet files that their tables become temporary views of. In every
    round each text ends in a comment with a new number, so that nobody has met it.
    """

    name: str
    engines: Engines
    texts: tuple[str, ...]
    tables: Mapping[str, Path]
    _session: Session | None = None
    _rounds: count[int] = field(default_factory=count)
    _details: Mapping[str, float] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Make the views, and warm Spark and the session up."""
        if self._session is None:
            spark = self.engines.spark()
            self._session = Session(spark)
            for name, path in self.tables.items():
                spark.read.parquet(str(path)).createOrReplaceTempView(name)
            for _ in range(WARM_UPS):
                for met in ("first", "again"):
                    self._measured(met)

    def run(self, case: Case) -> float:
        """Seconds added to the median text."""
        rows = self._measured("again" if case.parameters["met"] == "again" else "first")
        added = sorted(ours - sparks for ours, sparks, _, _ in rows)
        calls, of_spark = (statistics.median(row[place] for row in rows) for place in (2, 3))
        p95 = added[min(len(added) - 1, int(0.95 * len(added)))]
        self._details = {P95: 1_000 * p95, CALLS: calls, CALLS_OF_SPARK: of_spark}
        return statistics.median(added)

    def answer(self, case: Case) -> Answer:
        """The number of texts."""
        return Answer(len(self.texts), {})

    def details(self) -> Mapping[str, float]:
        """The 95th percentile of the texts, and the median number of calls to the JVM."""
        return self._details

    def _measured(self, met: Met) -> list[tuple[float, float, int, int]]:
        """For each text the seconds of ours and of Spark's, and the JVM calls of both."""
        assert self._session is not None
        number = next(self._rounds)
        rows = []
        for place, text in enumerate(self.texts):
            fresh = f"{text}\n-- {number}"
            if met == "again":
                self._session.sql(fresh)
            both: list[Callable[[str], object]] = [self._session.sql, self._session.spark.sql]
            order = (0, 1) if (place + number) % 2 else (1, 0)
            found = {which: self._timed(both[which], fresh) for which in order}
            rows.append((found[0][0], found[1][0], found[0][1], found[1][1]))
        return rows

    def _timed(self, sql: Callable[[str], object], text: str) -> tuple[float, int]:
        with calls_counted(self.engines.spark()) as calls:
            start = time.perf_counter()
            sql(text)
            seconds = time.perf_counter() - start
        return seconds, calls.count
