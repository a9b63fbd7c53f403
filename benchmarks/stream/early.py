"""The set of cases `early` of the suite `stream`: early answers of a window join of two streams, and of a window over
their union.

What the estimates cost is the time with the default estimator against that with `none`, which does all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.harness.suite import Case, short
from benchmarks.stream.case import Planned
from benchmarks.stream.data import StreamTables, Workload
from benchmarks.stream.files import CLOSING_ID
from benchmarks.stream.options import EARLY_CONTESTANTS, StreamOptions
from benchmarks.stream.sql import COMPENSATED, StreamQuery

#: PECJ's times (windows of 10 ms, rows up to 5 ms late, answers 7 ms after the start), a hundred times as long.
WINDOW_MS, LATENESS_MS, DELAY_MS = 1_000, 500, 700
RATE = 25_000
EARLY = {
    workload.name: workload
    for workload in (
        Workload("few", keys=10, density=RATE / 10, window_ms=WINDOW_MS, lateness_ms=LATENESS_MS),
        Workload("many", keys=10_000, density=RATE / 10_000, window_ms=WINDOW_MS, lateness_ms=LATENESS_MS),
        Workload("rows", keys=1_000, density=RATE / 1_000, window_ms=2_000, lateness_ms=1_000),
    )
}
TITLES = {"few": "window join, few keys", "many": "window join, many keys", "rows": "windows of rows"}
_WINDOW = f"'{WINDOW_MS} milliseconds'"
OURS = f"""SELECT window.start, count(*) AS n, sum(base.v) AS s, avg(probe.v) AS m
FROM {{base}} base JOIN {{probe}} probe
ON base.k = probe.k AND window(base.ts, {_WINDOW}) = window(probe.ts, {_WINDOW})
GROUP BY window(base.ts, {_WINDOW})
EMIT AFTER DELAY INTERVAL {DELAY_MS} MILLISECONDS {COMPENSATED}"""

#: The exact rows on Spark: rows and sums of each window and key, which are then joined and added up.
_TOTALS = f"(SELECT window(ts, {_WINDOW}) AS w, k, count(*) AS n, sum(v) AS s FROM {{stream}} GROUP BY 1, 2)"
SPARK = f"""SELECT base.w.start AS start, sum(base.n * probe.n) AS n, sum(base.s * probe.n) AS s,
  sum(base.n * probe.s) / sum(base.n * probe.n) AS m, 'final' AS phase
FROM {_TOTALS.replace("{stream}", "{base}")} base JOIN {_TOTALS.replace("{stream}", "{probe}")} probe
ON base.k = probe.k AND base.w = probe.w
GROUP BY base.w"""

_BUCKET = f"time_bucket(INTERVAL {WINDOW_MS} MILLISECONDS, ts) AS start"
DUCKDB = f"""SELECT start, count(*) AS n, sum(b.v) AS s, avg(p.v) AS m, 'final' AS phase
FROM (SELECT *, {_BUCKET} FROM {{base}}) b JOIN (SELECT *, {_BUCKET} FROM {{probe}}) p USING (k, start)
GROUP BY start"""

#: What is summed up over the final rows.
CHECKSUMS = {
    "rows": "1",
    "start": "{ms} % 100003",
    "n": "n",
    "s": "s",
    "mix": "n * ({ms} % 97)",
    "m": "CAST(round(1000 * m) AS BIGINT)",
}
MILLISECONDS = {"spark": "unix_millis(start)", "duckdb": "epoch_ms(start)"}
#: The same of windows of rows.
FINAL_SUMS = {"rows": "1", "id": "id", "s": "s", "n": "n", "mix": "n * (id % 1009)", "tie": "s * (id % 1009)"}


@dataclass(frozen=True)
class EarlyTables(StreamTables):
    """Both streams, and the window join over them."""

    @property
    def query(self) -> StreamQuery:
        """Early and final rows. The final ones are compared, but for the window of the closing rows."""
        return StreamQuery(OURS, SPARK, DUCKDB, {dialect: self._sums(ms) for dialect, ms in MILLISECONDS.items()})

    def tiny(self) -> EarlyTables:
        """What a contestant runs first."""
        return EarlyTables(self.workload, rows=500, file_rows=250)

    def _sums(self, ms: str) -> dict[str, str]:
        counted = f"phase = 'final' AND {ms} < {self.closing_ms - WINDOW_MS}"
        values = {name: value.format(ms=ms) for name, value in CHECKSUMS.items()}
        return {name: f"sum(CASE WHEN {counted} THEN {value} ELSE 0 END)" for name, value in values.items()}


@dataclass(frozen=True)
class EarlyRowTables(StreamTables):
    """Both streams, and the window over their union, whose rows are answered at once, and again when they are final."""

    @property
    def query(self) -> StreamQuery:
        """The window of the set `window`. Its final rows are compared."""
        plain = super().query
        counted = f"phase = 'final' AND id <> {CLOSING_ID}"
        sums = {name: f"sum(CASE WHEN {counted} THEN {value} ELSE 0 END)" for name, value in FINAL_SUMS.items()}
        final = "SELECT *, 'final' AS phase FROM ({})"
        return StreamQuery(
            f"{plain.ours}\nEMIT AFTER DELAY INTERVAL '0' SECONDS {COMPENSATED}",
            final.format(plain.spark),
            final.format(plain.duckdb),
            {"spark": sums, "duckdb": sums},
        )

    def tiny(self) -> EarlyRowTables:
        """What a contestant runs first."""
        return EarlyRowTables(self.workload, rows=500, file_rows=250)


def planned_early(options: StreamOptions) -> Iterator[Planned]:
    """Each workload in micro-batches of each size."""
    rows = max(1, round(options.rows * options.scale))
    for batch in options.batches:
        each = max(1, min(batch, *options.batches) // 2)
        for place, (name, workload) in enumerate(EARLY.items()):
            if name in options.workloads:
                known: dict[str, int | float | str] = {"set": "early", "workload": name, "rows": rows, "batch": batch}
                case = Case(
                    f"{TITLES[name]}, batches of {short(batch)}",
                    float(place),
                    known,
                    panel=f"batches of {short(batch)} rows",
                    tick=name,
                    contestants=tuple(EARLY_CONTESTANTS),
                )
                kind = EarlyRowTables if name == "rows" else EarlyTables
                tables = kind(workload, rows, each, readers=options.cores)
                yield Planned(case, tables, max(1, batch // 2 // each))
