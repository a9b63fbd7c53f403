"""Suite `window`: sum and count over the union of two tables, ours against Spark's RANGE frame and DuckDB.

The suite computes, for each base row, the sum and the count of the base and probe rows of its key within w time units
before it. (k, ts) is unique in the base table (points.PointTables), so the RANGE frames below hold the same rows as
ROWS_RANGE and all answers must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

from benchmarks.harness.engines import Engines, in_duckdb, in_spark
from benchmarks.harness.options import WHO, Told, check, option, untold
from benchmarks.harness.results import CaseResult, Report
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Check, Suite, short
from benchmarks.points import PointTables
from benchmarks.storage import StorageOptions, storage_checks, storage_names, storage_place, stored_contestant

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
CHECKSUMS = {
    "n": "count(*)",
    "k": "sum(k)",
    "ts": "sum(ts)",
    "c": "sum(c)",
    "mix": "sum(c * (ts % 1009))",
    "s": "sum(s)",
}
CONTESTANTS = {"ours": SessionSql, "spark": SparkSql, "spark-segment-tree": SparkSql, "duckdb": DuckSql}


@dataclass(frozen=True)
class WindowOptions(StorageOptions):
    """The command line options. `hot` is the share of the rows that one key holds, if there are others."""

    rows: Sequence[int] = option(
        (5_000_000,), "Rows of each of the two tables; several sizes with commas.", scaled=True
    )
    keys: int = option(100, "Number of partition keys.", min=1)
    lengths: Sequence[int] = option((1_000, 10_000, 100_000), "Window lengths in time units.")
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)
    hot: float = option(0.0, "Share of the rows that one hot key holds.", flag="skew", min=0.0, max=0.99)


def window_suite(options: WindowOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown contestant.
    """
    check("contestant", options.contestants, CONTESTANTS)
    elsewhere = storage_names(options.storage, options.contestants)
    place = storage_place(options, engines)
    hot = options.hot if options.keys > 1 else 0.0
    files = {rows: PointTables(rows, options.keys, hot).write(place.root) for rows in dict.fromkeys(options.rows)}
    cases = tuple(
        Case(f"2 x {short(rows)} rows, w = {short(length)}", float(length), {"rows": rows, "length": length})
        for rows in files
        for length in options.lengths
    )
    return Suite(
        name="window",
        title=f"Window union: sum and count, {options.keys} keys"
        + (f", {hot:.0%} of the rows on one key" if hot else ""),
        parameters={**options.shown("rows", "keys", "lengths", "hot", "cores", "memory"), "hot": hot},
        cases=cases,
        contestants=(
            *(CONTESTANTS[name](name, place.engines, partial(_statement, name, files)) for name in options.contestants),
            *(
                stored_contestant(
                    name,
                    place.engines,
                    partial(_statement, "ours" if name.startswith("ours-") else "spark-tables", files),
                    place.root,
                    options.bucket,
                )
                for name in elsewhere
            ),
        ),
        ours="ours",
        x_label="window length (time units)",
        close=place.close,
        checks=(_faster_than_spark, _faster_than_duckdb, _flat_in_length, _linear_in_rows, storage_checks),
        facts={"ours": OURS_SQL, "spark, spark-segment-tree, duckdb": NATIVE_SQL},
    )


def _statement(name: str, files: Mapping[int, tuple[Path, Path]], case: Case) -> Statement:
    """Ours over views, the others over the files."""
    rows, length = int(case.parameters["rows"]), case.parameters["length"]
    base, probe = files[rows]
    if name == "ours":
        tables = {f"base_{rows}": base, f"probe_{rows}": probe}
        return Statement(OURS_SQL.format(rows=rows, length=length), CHECKSUMS, tables=tables)
    if name == "spark-tables":
        tables = {f"base_{rows}": base, f"probe_{rows}": probe}
        return Statement(
            NATIVE_SQL.format(base=f"base_{rows}", probe=f"probe_{rows}", length=length), CHECKSUMS, tables=tables
        )
    table = in_duckdb if name == "duckdb" else in_spark
    settings = {} if name == "duckdb" else {SEGMENT_TREE: str(name == "spark-segment-tree").lower()}
    return Statement(
        NATIVE_SQL.format(base=table(base), probe=table(probe), length=length), CHECKSUMS, settings=settings
    )


def _faster_than_spark(report: Report) -> list[Check]:
    return [
        Check(f"at most 0.35 of native Spark's time, {result.case.name}", ours / best <= 0.35, f"{ours / best:.2f}")
        for result, ours in _ours(report)
        if (best := min(_times(result, "spark", "spark-segment-tree"), default=None)) is not None
    ]


def _faster_than_duckdb(report: Report) -> list[Check]:
    return [
        Check(f"at most 0.6 of DuckDB's time, {result.case.name}", ours / duck <= 0.6, f"{ours / duck:.2f}")
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
