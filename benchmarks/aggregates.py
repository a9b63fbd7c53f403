"""Suite `aggregates`: one aggregate over the union of two tables within a time window, ours against Spark's RANGE frame
over the union by hand.

Times of the base table are even, those of the other one odd, so that both frames hold the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness.data import stored
from benchmarks.harness.engines import Engines, in_spark
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.statements import SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Check, Suite, short


@dataclass(frozen=True)
class Call:
    """Spark's form of a call (None: Spark has none over such a window), and what is summed over its results."""

    spark: str | None
    total: str = "sum(q)"
    #: Gives a list: only over short windows.
    listed: bool = False


_COUNTED = "count(q)"
#: Results that are approximate or not determined in Spark (mode of equal counts) are only counted.
CALLS = {
    "sum(x)": Call("sum(x)"),
    "count_if(b)": Call("count_if(b)"),
    "bool_or(b)": Call("bool_or(b)", "count_if(q)"),
    "bit_or(i)": Call("bit_or(i)"),
    "first(x)": Call("first(x)"),
    "nth_value(x, 3)": Call("nth_value(x, 3)"),
    "max_by(i, x)": Call("max_by(i, x)"),
    "mode(i)": Call(None, _COUNTED),
    "median(x)": Call("percentile(x, 0.5)"),
    "median(i)": Call("percentile(i, 0.5)"),
    "percentile(x, 0.9)": Call("percentile(x, 0.9)"),
    "percentile(i, array(0.1, 0.5, 0.9))": Call("percentile(i, array(0.1, 0.5, 0.9))", "sum(q[0] + q[1] + q[2])"),
    "percentile_approx(x, 0.5)": Call("percentile_approx(x, 0.5)", _COUNTED),
    "approx_count_distinct(i)": Call("approx_count_distinct(i)", _COUNTED),
    "corr(x, y)": Call("corr(x, y)"),
    "regr_slope(x, y)": Call("regr_slope(x, y)"),
    "skewness(x)": Call("skewness(x)"),
    "kurtosis(x)": Call("kurtosis(x)"),
    "product(z)": Call(None),
    "collect_list(i)": Call("collect_list(i)", "sum(size(q) + q[0])", listed=True),
    "collect_set(i)": Call("collect_set(i)", "sum(size(q))", listed=True),
    "listagg(s, ',')": Call("listagg(s, ',')", "sum(length(q))", listed=True),
}
OURS_SQL = """SELECT k, ts, {call} OVER w AS q
FROM base_{rows}
WINDOW w AS (UNION probe_{rows} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN {before} PRECEDING AND CURRENT ROW)"""
NATIVE_SQL = """SELECT k, ts, q
FROM (SELECT k, ts, side, {call} OVER w AS q
      FROM (SELECT *, 0 AS side FROM {base} UNION ALL SELECT *, 1 AS side FROM {probe})
      WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN {before} PRECEDING AND CURRENT ROW))
WHERE side = 0"""
CONTESTANTS = {"ours": SessionSql, "spark": SparkSql}
#: Lists of longer windows do not fit anywhere.
_LONGEST_LISTED = 1_000


@dataclass(frozen=True)
class AggregatesOptions(Options):
    """The command line options."""

    rows: int = option(1_000_000, "Rows of each of the two tables.", min=1, scaled=True)
    keys: int = option(20, "Number of partition keys.", min=1)
    widths: Sequence[int] = option((100, 10_000), "Rows in a window.")
    calls: str = option("", "Which aggregates, with semicolons; by default all.")
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)


def aggregates_suite(options: AggregatesOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown call or contestant.
    """
    calls = [call.strip() for call in options.calls.split(";") if call.strip()] or list(CALLS)
    check("call", calls, CALLS)
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    files = {name: _file(place.root, number, options) for number, name in enumerate(("base", "probe"))}
    cases = tuple(
        Case(
            f"{call}, {short(width)} rows",
            float(number),
            {"call": call, "width": width, "rows": options.rows},
            panel=f"{short(width)} rows in a window",
            tick=call,
            contestants=None if CALLS[call].spark is not None else ("ours",),
        )
        for width in options.widths
        for number, call in enumerate(calls)
        if width <= _LONGEST_LISTED or not CALLS[call].listed
    )
    return Suite(
        name="aggregates",
        title=f"Aggregates over a window union: 2 x {short(options.rows)} rows, {options.keys} keys",
        parameters=options.shown("rows", "keys", "widths", "cores", "memory"),
        cases=cases,
        contestants=tuple(
            CONTESTANTS[name](name, place.engines, partial(_statement, name, files)) for name in options.contestants
        ),
        ours="ours",
        x_label="aggregate",
        close=place.close,
        checks=(_order_statistics_near_sum,),
        # moments of a sliding frame are merged in another order than Spark's
        tolerance=1e-6,
        facts={"ours": OURS_SQL, "spark": NATIVE_SQL},
    )


def _file(root: Path, number: int, options: AggregatesOptions) -> Path:
    """A table (k, ts, i, x, y, z, s, b): times of a key are 2 apart, x, y and z are all different."""

    def table() -> pa.Table:
        random = np.random.default_rng([7, number])
        place = np.arange(options.rows)
        i = random.integers(0, 1000, options.rows)
        return pa.table(
            {
                "k": (place % options.keys).astype("int32"),
                "ts": place // options.keys * 2 + number,
                "i": i.astype("int32"),
                "x": random.random(options.rows) * 100,
                "y": random.random(options.rows) * 100,
                "z": 1 + (random.random(options.rows) - 0.5) / 1000,
                "s": pa.array(i).cast(pa.string()),
                "b": random.random(options.rows) > 0.5,
            }
        )

    return stored(root / f"aggregates-{options.rows}-{options.keys}" / f"{number}.parquet", table, 250_000)


def _statement(name: str, files: Mapping[str, Path], case: Case) -> Statement:
    """Ours over views, Spark's over the files; the rows are dropped."""
    call, rows = str(case.parameters["call"]), case.parameters["rows"]
    before = int(case.parameters["width"]) - 1
    sums = {"n": "count(*)", "q": CALLS[call].total}
    if name == "ours":
        tables = {f"{table}_{rows}": path for table, path in files.items()}
        return Statement(OURS_SQL.format(call=call, rows=rows, before=before), sums, "drop", tables)
    base, probe = in_spark(files["base"]), in_spark(files["probe"])
    sql = NATIVE_SQL.format(call=CALLS[call].spark, base=base, probe=probe, before=before)
    return Statement(sql, sums, "drop")


def _order_statistics_near_sum(report: Report) -> list[Check]:
    """Medians and percentiles take at most 5x the time of a sum."""
    times = {
        (result.case.parameters["width"], result.case.parameters["call"]): seconds
        for result in report.cases
        if (seconds := result.seconds(report.ours)) is not None
    }
    return [
        Check(f"at most 5x the time of sum(x), {call}, {width:,} rows", ratio <= 5, f"{ratio:.2f}x")
        for (width, call), seconds in times.items()
        if str(call).startswith(("median", "percentile")) and (width, "sum(x)") in times
        for ratio in [seconds / times[width, "sum(x)"]]
    ]
