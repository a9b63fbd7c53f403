"""Suite `asof`: the newest row of another table up to each row, by key, ours against Spark's forms, DuckDB and Polars.

Left rows have ties, and (k, ts) is unique on the right (points.PointTables, the other way round), so that every engine
finds the same row and all answers must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.features_contestants import ASOF_JOIN
from benchmarks.harness.engines import Engines, in_duckdb, in_spark
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.peer_process import PeerProcess
from benchmarks.harness.results import Report
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement, answer_of
from benchmarks.harness.suite import Answer, Case, Check, Contestant, Suite, short
from benchmarks.points import PointTables

_ITEMS = "a.k, a.ts, a.v, b.ts AS near, b.v AS value"
MATCH_SQL = (
    f"SELECT {_ITEMS} FROM {{left}} a {{side}} ASOF JOIN {{right}} b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k"
)
DUCKDB_SQL = f"SELECT {_ITEMS} FROM {{left}} a ASOF {{side}} JOIN {{right}} b ON a.k = b.k AND a.ts >= b.ts"
#: Both tables in one, and the last right row so far: what one writes by hand.
WINDOW_SQL = """SELECT k, ts, v, near.ts AS near, near.v AS value
FROM (SELECT k, ts, v, side, last_value(row, true) OVER w AS near
      FROM (SELECT k, ts, v, 1 AS side, NULL AS row FROM {left}
            UNION ALL SELECT k, ts, v, 0 AS side, struct(ts, v) AS row FROM {right})
      WINDOW w AS (PARTITION BY k ORDER BY ts, side ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
WHERE side = 1{matched}"""

#: Every column of every row is consumed; `mix` ties each row to the one that was found.
CHECKSUMS = {
    "n": "count(*)",
    "k": "sum(k)",
    "ts": "sum(ts)",
    "near": "sum(near)",
    "mix": "sum(near * (ts % 1009))",
    "v": "sum(v)",
    "value": "sum(value)",
}
SIDES = {"inner": "", "left": "LEFT"}
CONTESTANTS = {"ours": SessionSql, "spark": SparkSql, "spark-window": SparkSql, "duckdb": DuckSql}


@dataclass(frozen=True)
class AsofOptions(Options):
    """The command line options."""

    rows: Sequence[int] = option(
        (5_000_000,), "Rows of each of the two tables; several sizes with commas.", scaled=True
    )
    keys: Sequence[int] = option((100, 1_000_000), "Number of keys.")
    kinds: Sequence[str] = option(("inner",), "Whether left rows without a match go (inner) or stay (left).")
    contestants: Sequence[str] = option((*CONTESTANTS, "polars"), WHO)
    peers: Path = option(Path(".peers"), "Where `make peers` put the peers.")


def asof_suite(options: AsofOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown contestant or kind.
    """
    check("contestant", options.contestants, (*CONTESTANTS, "polars"))
    check("kind", options.kinds, SIDES)
    place = Workplace(options, engines)
    sizes = [(rows, keys) for rows in dict.fromkeys(options.rows) for keys in dict.fromkeys(options.keys)]
    files = {(rows, keys): PointTables(rows, keys).write(place.root) for rows, keys in sizes}
    cases = tuple(
        Case(
            f"2 x {short(rows)} rows, {short(keys)} keys, {kind}",
            float(keys),
            {"rows": rows, "keys": keys, "kind": kind},
        )
        for rows, keys in files
        for kind in options.kinds
    )
    contestants: list[Contestant] = [
        CONTESTANTS[name](name, place.engines, partial(_statement, name, files))
        for name in options.contestants
        if name in CONTESTANTS
    ]
    program = options.peers / "polars" / "bin" / "python"
    if "polars" in options.contestants and program.exists():
        contestants.append(PolarsAsof("polars", files, program, options.cores))
    is_missing = "polars" in options.contestants and not program.exists()
    return Suite(
        name="asof",
        title="ASOF JOIN: the newest row up to each row, by key",
        parameters=options.shown("rows", "keys", "kinds", "cores", "memory"),
        cases=cases,
        contestants=tuple(contestants),
        ours="ours",
        x_label="keys",
        close=place.close,
        checks=(_faster_than_spark,),
        facts={"ours, spark": MATCH_SQL, "spark-window": WINDOW_SQL, "duckdb": DUCKDB_SQL},
        left_out=(f"polars: no environment at {options.peers / 'polars'} (make peers)",) if is_missing else (),
    )


Files = Mapping[tuple[int, int], tuple[Path, Path]]


def _sides(files: Files, case: Case) -> tuple[Path, Path]:
    """The left and the right table of a case."""
    base, probe = files[int(case.parameters["rows"]), int(case.parameters["keys"])]
    return probe, base


def _statement(name: str, files: Files, case: Case) -> Statement:
    """Ours over views, the others over the files."""
    left, right = _sides(files, case)
    side = SIDES[str(case.parameters["kind"])]
    if name == "ours":
        tables = {"asof_left": left, "asof_right": right}
        return Statement(MATCH_SQL.format(left="asof_left", right="asof_right", side=side), CHECKSUMS, tables=tables)
    text = {"spark": MATCH_SQL, "spark-window": WINDOW_SQL, "duckdb": DUCKDB_SQL}[name]
    table = in_duckdb if name == "duckdb" else in_spark
    matched = "" if side else " AND near IS NOT NULL"
    sql = text.format(left=table(left), right=table(right), side=side, matched=matched)
    return Statement(sql, CHECKSUMS, settings={ASOF_JOIN: "true"} if name == "spark" else {})


@dataclass
class PolarsAsof(Contestant):
    """`join_asof` of the Polars in an environment of its own; the child measures."""

    name: str
    files: Files
    program: Path
    threads: int
    _process: PeerProcess | None = None
    _last: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start the child."""
        if self._process is None:
            environment = {"POLARS_MAX_THREADS": str(self.threads)}
            self._process = PeerProcess(self.name, self.program, "polars_asof", environment)
        self._process.start()

    def run(self, case: Case) -> float:
        """Send the case and return the seconds that the child measured."""
        assert self._process is not None
        left, right = map(str, _sides(self.files, case))
        self._last = self._process.ask({"left": left, "right": right, "kind": case.parameters["kind"]})
        return float(self._last["seconds"])

    def answer(self, case: Case) -> Answer:
        """Rows and checksums of the last run."""
        return answer_of(self._last["sums"])

    def interrupt(self) -> None:
        """Kill the child; the next run starts another."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.stop()


def _faster_than_spark(report: Report) -> list[Check]:
    """At most 0.7 of the better of Spark's forms."""
    checks = []
    for result in report.cases:
        ours = result.seconds(report.ours)
        forms = [seconds for name in ("spark", "spark-window") if (seconds := result.seconds(name)) is not None]
        if ours is not None and forms:
            ratio = ours / min(forms)
            checks.append(Check(f"at most 0.7 of Spark's time, {result.case.name}", ratio <= 0.7, f"{ratio:.2f}"))
    return checks
