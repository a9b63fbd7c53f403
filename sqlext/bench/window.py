"""Suite `window`: sum and count over the union of two tables, ours against Spark's RANGE frame and DuckDB.

The suite computes, for each base row, the sum and the count of the base and probe rows of its key within w time units
before it. (k, ts) is unique in the base table (points.PointTables), so the RANGE frames below hold the same rows as
ROWS_RANGE and all answers must agree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from sqlext_planner.errors import AnalysisError

from sqlext.bench.harness.engines import Closing, Engines
from sqlext.bench.harness.results import CaseResult, Report
from sqlext.bench.harness.suite import Answer, Case, Check, Contestant, Number, Suite
from sqlext.bench.points import PointTables

SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"

OURS_SQL = """SELECT k, ts, sum(v) OVER w AS s, count(*) OVER w AS c
FROM base_{rows}
WINDOW w AS (UNION probe_{rows} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN {length} PRECEDING AND CURRENT ROW)"""

NATIVE_SQL = """SELECT k, ts, s, c
FROM (SELECT k, ts, side, sum(v) OVER w AS s, count(*) OVER w AS c
      FROM (SELECT k, ts, v, 0 AS side FROM {base} UNION ALL SELECT k, ts, v, 1 AS side FROM {probe})
      WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN {length} PRECEDING AND CURRENT ROW))
WHERE side = 0"""

#: Every column of every row is consumed; `mix` ties each count to its time, so that swapped rows are detected.
CHECKSUMS = {"k": "sum(k)", "ts": "sum(ts)", "c": "sum(c)", "mix": "sum(c * (ts % 1009))", "s": "sum(s)"}


@dataclass(frozen=True)
class WindowOptions:
    """The command line options. `rows` are the sizes of each of the two tables."""

    rows: Sequence[int] = (5_000_000,)
    keys: int = 100
    lengths: Sequence[int] = (1_000, 10_000, 100_000)
    contestants: Sequence[str] = ("ours", "spark", "spark-segment-tree", "duckdb")
    hot: float = 0.0
    cores: int = 2
    memory: str = "8g"
    data: Path | None = None


def window_suite(options: WindowOptions, engines: Engines | None = None) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown contestant.
    """
    _check_contestants(options.contestants)
    engines = engines or Engines(options.cores, options.memory)
    root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
    files = {rows: PointTables(rows, options.keys, options.hot).write(root) for rows in dict.fromkeys(options.rows)}
    cases = tuple(
        Case(f"2 x {_short(rows)} rows, w = {_short(length)}", float(length), {"rows": rows, "length": length})
        for rows in files
        for length in options.lengths
    )
    closing = Closing(engines, None if options.data else root, len(options.contestants))
    return Suite(
        name="window",
        title=f"Window union: sum and count, {options.keys} keys"
        + (f", {options.hot:.0%} of the rows on one key" if options.hot else ""),
        parameters={
            "rows": list(options.rows),
            "keys": options.keys,
            "lengths": list(options.lengths),
            "hot": options.hot,
            "cores": options.cores,
            "memory": options.memory,
        },
        cases=cases,
        contestants=tuple(_contestant(name, files, engines, closing) for name in options.contestants),
        ours="ours",
        x_label="window length (time units)",
        checks=(_faster_than_spark, _near_duckdb, _flat_in_length, _linear_in_rows),
        facts={"ours": OURS_SQL, "spark, spark-segment-tree, duckdb": NATIVE_SQL},
    )


Files = Mapping[int, tuple[Path, Path]]


@dataclass
class _SparkContestant:
    """A DataFrame for each case, aggregated to one row of checksums by Spark."""

    name: str
    query: Callable[[Case], DataFrame]
    engines: Engines
    on_close: Callable[[], None]
    settings: Mapping[str, str]
    _last: Mapping[str, Number] | None = None

    def prepare(self, case: Case) -> None:
        self.engines.configured(self.settings)

    def run(self, case: Case) -> None:
        sums = [f"{sql} AS {name}" for name, sql in CHECKSUMS.items()]
        self._last = self.query(case).selectExpr("count(*) AS n", *sums).collect()[0].asDict()

    def answer(self, case: Case) -> Answer:
        return _answer(self._last)

    def interrupt(self) -> None:
        self.engines.cancel_spark()

    def close(self) -> None:
        self.on_close()


@dataclass
class _DuckContestant:
    """The native SQL text on the same files, with one thread for each core."""

    name: str
    files: Files
    engines: Engines
    on_close: Callable[[], None]
    _last: Mapping[str, Number] | None = None

    def prepare(self, case: Case) -> None:
        self.engines.duckdb()

    def run(self, case: Case) -> None:
        base, probe = (f"read_parquet('{path}')" for path in self.files[int(case.parameters["rows"])])
        query = NATIVE_SQL.format(base=base, probe=probe, length=case.parameters["length"])
        sums = ", ".join(CHECKSUMS.values())
        row = self.engines.duckdb().execute(f"SELECT count(*), {sums} FROM ({query})").fetchone() or ()
        self._last = dict(zip(("n", *CHECKSUMS), row, strict=True))

    def answer(self, case: Case) -> Answer:
        return _answer(self._last)

    def interrupt(self) -> None:
        self.engines.interrupt_duckdb()

    def close(self) -> None:
        self.on_close()


def _short(number: int) -> str:
    """5_000_000 -> 5M, 10_000 -> 10k."""
    for size, suffix in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % (size // 10) == 0:
            return f"{number / size:g}{suffix}"
    return str(number)


def _check_contestants(names: Sequence[str]) -> None:
    known = WindowOptions().contestants
    for name in names:
        if name not in known:
            raise AnalysisError(f"there is no contestant '{name}'", help="choose from " + ", ".join(known))


def _contestant(name: str, files: Files, engines: Engines, on_close: Callable[[], None]) -> Contestant:
    if name == "ours":
        return _SparkContestant(name, _Ours(files, engines), engines, on_close, {})
    if name == "duckdb":
        return _DuckContestant(name, files, engines, on_close)
    settings = {SEGMENT_TREE: str(name == "spark-segment-tree").lower()}
    return _SparkContestant(name, _Native(files, engines), engines, on_close, settings)


@dataclass
class _Ours:
    """`Session.sql` on tables registered by path."""

    files: Files
    engines: Engines
    _session: Any = None

    def __call__(self, case: Case) -> DataFrame:
        if self._session is None:
            from sqlext import Session

            self._session = Session(self.engines.spark())
            for rows, (base, probe) in self.files.items():
                self._session.register(f"base_{rows}", str(base))
                self._session.register(f"probe_{rows}", str(probe))
        result: DataFrame = self._session.sql(OURS_SQL.format(**case.parameters))
        return result


@dataclass
class _Native:
    """`spark.sql` on the same files."""

    files: Files
    engines: Engines

    def __call__(self, case: Case) -> DataFrame:
        base, probe = (f"parquet.`{path}`" for path in self.files[int(case.parameters["rows"])])
        query = NATIVE_SQL.format(base=base, probe=probe, length=case.parameters["length"])
        return self.engines.spark().sql(query)


def _answer(row: Mapping[str, Any] | None) -> Answer:
    """The answer from a row of sums. DuckDB and Spark return int, Decimal or float; an integer stays exact."""
    values = dict(row or {})
    rows = int(values.pop("n"))
    return Answer(rows, {name: float(v) if isinstance(v, float) else int(v) for name, v in values.items()})


def _faster_than_spark(report: Report) -> list[Check]:
    return [
        Check(f"at least 2x faster than native Spark, {result.case.name}", best / ours >= 2, f"{best / ours:.2f}x")
        for result, ours in _ours(report)
        if (best := min(_times(result, "spark", "spark-segment-tree"), default=None)) is not None
    ]


def _near_duckdb(report: Report) -> list[Check]:
    return [
        Check(f"at least 0.8x DuckDB's speed, {result.case.name}", duck / ours >= 0.8, f"{duck / ours:.2f}x")
        for result, ours in _ours(report)
        for duck in _times(result, "duckdb")
    ]


def _flat_in_length(report: Report) -> list[Check]:
    """The longest window costs at most 1.3x the shortest, for each size."""
    checks = []
    for rows in dict.fromkeys(result.case.parameters["rows"] for result in report.cases):
        times = [
            (result.case.x, seconds) for result, seconds in _ours(report) if result.case.parameters["rows"] == rows
        ]
        if len(times) > 1:
            (short, fast), (long, slow) = min(times), max(times)
            name = f"window {long:,.0f} at most 1.3x the time of {short:,.0f}, {rows:,} rows"
            checks.append(Check(name, slow / fast <= 1.3, f"{slow / fast:.2f}x"))
    return checks


def _linear_in_rows(report: Report) -> list[Check]:
    """Twice the rows cost at most 2.3x the time, for each window length."""
    checks = []
    for (small, fast), (large, slow) in combinations(_ours(report), 2):
        a, b = small.case.parameters, large.case.parameters
        if a["length"] == b["length"] and int(b["rows"]) == 2 * int(a["rows"]):
            name = f"{b['rows']:,} rows at most 2.3x the time of {a['rows']:,}, window {a['length']:,}"
            checks.append(Check(name, slow / fast <= 2.3, f"{slow / fast:.2f}x"))
    return checks


def _ours(report: Report) -> list[tuple[CaseResult, float]]:
    return [(result, ours) for result in report.cases if (ours := result.seconds(report.ours)) is not None]


def _times(result: CaseResult, *contestants: str) -> list[float]:
    return [seconds for name in contestants if (seconds := result.seconds(name)) is not None]
