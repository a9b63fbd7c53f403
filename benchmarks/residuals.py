"""Suite `residuals`: interval joins of every kind with a further condition over both sides, against the inner one.

Each row of `r` has as many candidates in `s` (rows within its period) as the case says, of which the further condition
lets the case's share pass. The operator must not become slower where rows without a match are kept or left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness.data import stored
from benchmarks.harness.engines import Engines, in_duckdb
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Check, Suite, short

#: condition -> text by the share of candidates that passes, in percent
CONDITIONS = {
    "<>": {1: "r.rare <> s.rare", 50: "r.coin <> s.coin"},
    "OR": {1: "(r.u + s.u < 141 OR r.u = s.u + 5000)", 50: "(r.u + s.u < 1000 OR r.u = s.u + 5000)"},
    "LIKE": {1: "s.digits LIKE concat('%', r.digits)", 50: "s.face LIKE concat(substr(r.face, 1, 1), '%')"},
    "function": {1: "abs(r.u - s.u) < 5", 50: "abs(r.u - s.u) < 293"},
}
_WITHIN = "s.ts >= r.ts AND s.ts < r.te AND {condition}"
_PAIRS = "SELECT r.id AS a, s.id AS b FROM r_{candidates} r {kind} JOIN s_{candidates} s ON " + _WITHIN
_ROWS = "SELECT r.id AS a FROM r_{candidates} r LEFT {kind} JOIN s_{candidates} s ON " + _WITHIN
_SUBQUERY = "SELECT r.id AS a FROM r_{candidates} r WHERE {kind} (SELECT 1 FROM s_{candidates} s WHERE " + _WITHIN + ")"
KINDS = {
    "INNER": _PAIRS,
    "LEFT": _PAIRS,
    "FULL": _PAIRS,
    "SEMI": _ROWS,
    "ANTI": _ROWS,
    "EXISTS": _SUBQUERY,
    "NOT EXISTS": _SUBQUERY,
}
#: DuckDB's words. Its EXISTS with <> besides inequalities finds no row at all (1.5.5; its SEMI JOIN is right).
_DUCKDB = {"SEMI": "SEMI", "ANTI": "ANTI", "EXISTS": "SEMI", "NOT EXISTS": "ANTI"}
CONTESTANTS = {"ours": SessionSql, "spark": SparkSql, "duckdb": DuckSql}


@dataclass(frozen=True)
class ResidualsOptions(Options):
    """The command line options."""

    rows: int = option(100_000, "Rows of each of the two tables.", min=1, scaled=True)
    candidates: Sequence[int] = option((10, 300), "Rows of the other side within a period.")
    shares: Sequence[int] = option((1, 50), "Percent of them that the further condition lets pass: 1, 50.")
    conditions: Sequence[str] = option(tuple(CONDITIONS), "Which further conditions.")
    kinds: Sequence[str] = option(tuple(KINDS), "Which kinds of join.")
    contestants: Sequence[str] = option(("ours", "duckdb"), WHO)


def residuals_suite(options: ResidualsOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown condition, kind or contestant.
    """
    check("condition", options.conditions, CONDITIONS)
    check("kind", options.kinds, KINDS)
    check("share", [str(share) for share in options.shares], {"1": "", "50": ""})
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    tables = {
        f"{name}_{candidates}": _file(place.root, name, options.rows, candidates)
        for candidates in options.candidates
        for name in "rs"
    }
    cases = [
        Case(
            f"{kind}, {condition}, {candidates} candidates, {share} % pass",
            float(number),
            {"kind": kind, "condition": condition, "candidates": candidates, "share": share},
            panel=f"{condition}, {candidates} candidates, {share} % pass",
            tick=kind,
        )
        for candidates in options.candidates
        for condition in options.conditions
        for share in options.shares
        for number, kind in enumerate(options.kinds)
    ]
    return Suite(
        name="residuals",
        title=f"Interval joins with a further condition: 2 x {short(options.rows)} rows",
        parameters=options.shown("rows", "candidates", "shares", "cores", "memory"),
        cases=tuple(cases),
        contestants=tuple(
            CONTESTANTS[name](name, place.engines, partial(_statement, name, tables)) for name in options.contestants
        ),
        ours="ours",
        x_label="kind of join",
        close=place.close,
        checks=(_as_fast_as_inner,),
        facts={
            **KINDS,
            **{f"{name}, {share} %": text for name, by in CONDITIONS.items() for share, text in by.items()},
        },
    )


def _file(root: Path, name: str, rows: int, candidates: int) -> Path:
    """A table (id, ts, te, u, rare, coin, digits, face), each instant once, in random order."""

    def table() -> pa.Table:
        random = np.random.default_rng([5, ord(name), candidates])
        ts = random.permutation(rows)
        coin = random.integers(0, 2, rows)
        return pa.table(
            {
                "id": np.arange(rows),
                "ts": ts,
                "te": ts + candidates,
                "u": random.integers(0, 1000, rows).astype("int32"),
                "rare": (random.random(rows) < 0.005).astype("int32"),
                "coin": coin.astype("int32"),
                "digits": [f"{digits:02d}" for digits in random.integers(0, 100, rows)],
                "face": ["xy"[side] + "z" for side in coin],
            }
        )

    return stored(root / f"residuals-{rows}-{candidates}" / f"{name}.parquet", table, 25_000)


def _statement(name: str, files: dict[str, Path], case: Case) -> Statement:
    """Over views; DuckDB over the files."""
    kind, candidates = str(case.parameters["kind"]), case.parameters["candidates"]
    condition = CONDITIONS[str(case.parameters["condition"])][int(case.parameters["share"])]
    text = KINDS[kind]
    if name == "duckdb" and kind in _DUCKDB:
        kind, text = _DUCKDB[kind], _ROWS.replace("LEFT {kind}", "{kind}")
    sql = text.format(kind=kind, candidates=candidates, condition=condition)
    sums = {"n": "count(*)", "a": "sum(a)"} | ({"b": "sum(b)"} if text is _PAIRS else {})
    tables = {table: path for table, path in files.items() if table.endswith(f"_{candidates}")}
    if name != "duckdb":
        return Statement(sql, sums, tables=tables)
    for table, path in tables.items():
        sql = sql.replace(table, in_duckdb(path))
    return Statement(sql, sums)


def _as_fast_as_inner(report: Report) -> list[Check]:
    """Each kind takes at most 3x the time of the inner join with the same condition."""
    checks = []
    inner = {
        result.case.panel: seconds
        for result in report.cases
        if result.case.parameters["kind"] == "INNER" and (seconds := result.seconds(report.ours)) is not None
    }
    for result in report.cases:
        seconds, base = result.seconds(report.ours), inner.get(result.case.panel)
        if seconds is not None and base is not None and result.case.parameters["kind"] != "INNER":
            ratio = seconds / base
            checks.append(Check(f"at most 3x the INNER JOIN, {result.case.name}", ratio <= 3, f"{ratio:.2f}x"))
    return checks
