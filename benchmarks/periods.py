"""Suite `periods`: the algebra of periods, ours against hand-written window functions in Spark SQL and in DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness.data import stored
from benchmarks.harness.engines import Engines, in_duckdb, in_spark
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Check, Suite, short

OURS = {
    "normalize": "SELECT k, ts, te FROM NORMALIZE(a_{rows} PARTITION BY k PERIOD (ts, te))",
    "gaps": "SELECT k, ts, te FROM GAPS(a_{rows} PARTITION BY k PERIOD (ts, te))",
    "concurrent": "SELECT k, ts, te, concurrent AS n FROM CONCURRENT(a_{rows} PARTITION BY k PERIOD (ts, te))",
    "except": """SELECT k, ts, te
FROM NORMALIZE(a_{rows} PARTITION BY k PERIOD (ts, te) EXCEPT b_{rows} PARTITION BY k PERIOD (ts, te))""",
}

_BEFORE = """SELECT k, ts, te,
             max(te) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM {a}"""
_EVENTS = "SELECT k, ts AS t, {plus} FROM {table} UNION ALL SELECT k, te, {minus} FROM {table}"

#: The running sum of NORMALIZE takes all rows of one start together (RANGE): by ROWS, engines that sort once for each
#: window put rows with equal starts into other islands, as DuckDB did at 5M rows.
HAND_WRITTEN = {
    "normalize": f"""SELECT k, min(ts) AS ts, max(te) AS te
FROM (SELECT k, ts, te, sum(CASE WHEN ts <= before THEN 0 ELSE 1 END)
                        OVER (PARTITION BY k ORDER BY ts) AS island
      FROM ({_BEFORE}))
GROUP BY k, island""",
    "gaps": f"SELECT k, before AS ts, ts AS te FROM ({_BEFORE}) WHERE ts > before",
    "concurrent": f"""SELECT k, ts, te, n
FROM (SELECT k, t AS ts, lead(t) OVER (PARTITION BY k ORDER BY t) AS te,
             sum(d) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS n
      FROM (SELECT k, t, sum(d) AS d FROM ({_EVENTS.format(table="{a}", plus="1 AS d", minus="-1")})
            GROUP BY k, t HAVING sum(d) <> 0))
WHERE n > 0""",
    "except": f"""SELECT k, t AS ts, until AS te
FROM (SELECT k, t, inside, lead(t) OVER (PARTITION BY k ORDER BY t) AS until
      FROM (SELECT k, t, inside, lag(inside) OVER (PARTITION BY k ORDER BY t) AS was
            FROM (SELECT k, t, sum(l) OVER w > 0 AND sum(r) OVER w = 0 AS inside
                  FROM (SELECT k, t, sum(l) AS l, sum(r) AS r
                        FROM ({_EVENTS.format(table="{a}", plus="1 AS l, 0 AS r", minus="-1, 0")} UNION ALL
                              {_EVENTS.format(table="{b}", plus="0, 1", minus="0, -1")})
                        GROUP BY k, t)
                  WINDOW w AS (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING)))
      WHERE was IS DISTINCT FROM inside)
WHERE inside""",
}

#: Every column of every row is consumed; `mix` ties the ends of a period to each other and to its key.
CHECKSUMS = {
    "n": "count(*)",
    "k": "sum(k)",
    "ts": "sum(ts)",
    "te": "sum(te)",
    "mix": "sum((te - ts) * (ts % 1009 + k))",
}
COUNTED = {**CHECKSUMS, "c": "sum(n * (ts % 997))"}
CONTESTANTS = {"ours": SessionSql, "spark": SparkSql, "duckdb": DuckSql}


@dataclass(frozen=True)
class PeriodsOptions(Options):
    """The command line options. `overlap` is how many periods of a key cover an instant, on average."""

    rows: int = option(5_000_000, "Periods of each of the two tables.", min=1, scaled=True)
    keys: int = option(10_000, "Number of keys.", min=1)
    overlap: float = option(2.0, "Periods of a key that cover an instant, on average.", min=0.1)
    cases: Sequence[str] = option(tuple(OURS), "Which operations.")
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)


def periods_suite(options: PeriodsOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown case or contestant.
    """
    check("case", options.cases, OURS)
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    tables = period_tables(place.root, options.rows, options.keys, options.overlap)
    return Suite(
        name="periods",
        title=f"Period algebra: {short(options.rows)} periods, {options.keys} keys",
        parameters=options.shown("rows", "keys", "overlap", "cores", "memory"),
        cases=tuple(
            Case(f"{name}, {short(options.rows)} periods", float(number), {"case": name, "rows": options.rows})
            for number, name in enumerate(options.cases, 1)
        ),
        contestants=tuple(
            CONTESTANTS[name](name, place.engines, partial(_statement, name, tables)) for name in options.contestants
        ),
        ours="ours",
        x_label="operation",
        close=place.close,
        checks=(_faster_than_spark,),
        facts={f"{who}: {name}": texts[name] for name in options.cases for who, texts in _TEXTS.items()},
    )


_TEXTS = {"ours": OURS, "spark, duckdb": HAND_WRITTEN}


def period_tables(root: Path, rows: int, keys: int, overlap: float) -> dict[str, Path]:
    """Files of two tables (k, ts, te bigint) in the order of time, by name; written only if they are missing.

    A key's starts are 10 units apart on average, and lengths are uniform, so that `overlap` periods cover an instant.
    The second table has half of that.
    """
    folder = root / f"periods-{rows}-{keys}-{overlap:g}"

    def table(number: int) -> pa.Table:
        random = np.random.default_rng([1, number])
        start = np.sort(random.integers(0, max(1, 10 * rows // keys), rows))
        longest = max(1, round(20 * overlap / (1 + number)))
        length = random.integers(1, longest, rows, endpoint=True)
        return pa.table({"k": random.integers(0, keys, rows), "ts": start, "te": start + length})

    return {name: stored(folder / f"{name}.parquet", partial(table, i), 500_000) for i, name in enumerate("ab")}


def _statement(name: str, files: Mapping[str, Path], case: Case) -> Statement:
    """Ours over views, the others over the files."""
    which, rows = str(case.parameters["case"]), case.parameters["rows"]
    sums = COUNTED if which == "concurrent" else CHECKSUMS
    if name == "ours":
        tables = {f"{table}_{rows}": path for table, path in files.items()}
        return Statement(OURS[which].format(rows=rows), sums, tables=tables)
    engine = in_duckdb if name == "duckdb" else in_spark
    return Statement(HAND_WRITTEN[which].format(a=engine(files["a"]), b=engine(files["b"])), sums)


def _faster_than_spark(report: Report) -> list[Check]:
    checks = []
    for result in report.cases:
        ours, spark = result.seconds(report.ours), result.seconds("spark")
        if ours is not None and spark is not None:
            name = f"at most half of hand-written Spark SQL's time, {result.case.name}"
            checks.append(Check(name, ours / spark <= 0.5, f"{ours / spark:.2f}"))
    return checks
