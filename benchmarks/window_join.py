"""Suite `window-join`: for each row of a table the sum and the count of another one's rows in a window before it, ours
against QuestDB's WINDOW JOIN, Spark's RANGE frame and DuckDB.

The tables are those of suite `window` (points.PointTables), in the order of time or in none. QuestDB runs twice: from
the same Parquet files, which it reads into its tables first, and over tables that it has already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.engines import Engines, in_duckdb, in_spark
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.questdb import QuestDb, questdb_jar
from benchmarks.harness.results import Report
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement, answer_of
from benchmarks.harness.suite import Answer, Case, Check, Contestant, Suite, short
from benchmarks.points import PointTables
from benchmarks.window import CHECKSUMS, SEGMENT_TREE

OURS_SQL = """SELECT k, ts, sum(v) OVER w AS s, count(v) OVER w AS c
FROM {base}
WINDOW w AS (UNION {probe} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN {length} PRECEDING AND CURRENT ROW
  EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)"""
NATIVE_SQL = """SELECT k, ts, s, c
FROM (SELECT k, ts, side,
        sum(CASE WHEN side = 1 THEN v END) OVER w AS s, count(CASE WHEN side = 1 THEN v END) OVER w AS c
      FROM (SELECT k, ts, v, 0 AS side FROM {base} UNION ALL SELECT k, ts, v, 1 AS side FROM {probe})
      WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN {length} PRECEDING AND CURRENT ROW))
WHERE side = 0"""
#: Keys are symbols, QuestDB's dictionary codes, as its manual has them; times are its designated timestamps.
QUESTDB_SQL = """SELECT b.k AS k, b.ts AS ts, sum(p.v) AS s, count(p.v) AS c
FROM {base} b WINDOW JOIN {probe} p ON (k)
  RANGE BETWEEN {length} microseconds PRECEDING AND CURRENT ROW EXCLUDE PREVAILING"""
QUESTDB_TABLE = (
    "CREATE TABLE {name} AS (SELECT cast(k AS symbol) AS k, cast(ts AS timestamp) AS ts, v FROM {file}) "
    "TIMESTAMP(ts) PARTITION BY DAY BYPASS WAL"
)
_QUESTDB_SUMS = {
    "n": "count()",
    "k": "sum(cast(k AS long))",
    "ts": "sum(cast(ts AS long))",
    "c": "sum(c)",
    "mix": "sum(c * (cast(ts AS long) % 1009))",
    "s": "sum(s)",
}

CONTESTANTS = {"ours": SessionSql, "spark": SparkSql, "spark-segment-tree": SparkSql, "duckdb": DuckSql}
QUESTDB = {"questdb": "from the Parquet files", "questdb-stored": "over its own tables"}
ORDERS = ("time", "none")
#: How long ours may take, from the same files and against stored tables.
FROM_FILES, STORED = 0.6, 2.0


@dataclass(frozen=True)
class WindowJoinOptions(Options):
    """The command line options."""

    rows: Sequence[int] = option(
        (5_000_000,), "Rows of each of the two tables; several sizes with commas.", scaled=True
    )
    keys: int = option(100, "Number of partition keys.", min=1)
    lengths: Sequence[int] = option((1_000, 100_000), "Window lengths in microseconds.")
    orders: Sequence[str] = option(ORDERS, "In which order the files have their rows: time, none.")
    contestants: Sequence[str] = option((*CONTESTANTS, *QUESTDB), WHO)
    peers: Path = option(Path(".peers"), "Where `make peers` put the peers.")


Files = Mapping[tuple[int, str], tuple[Path, Path]]


def window_join_suite(options: WindowJoinOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run. QuestDB is left out where its jar
    is missing, and the suite reports it.

    Raises AnalysisError for an unknown contestant or order.
    """
    check("contestant", options.contestants, (*CONTESTANTS, *QUESTDB))
    check("order", options.orders, ORDERS)
    place = Workplace(options, engines)
    files = {
        (rows, order): PointTables(rows, options.keys, shuffled=order == "none").write(place.root)
        for rows in dict.fromkeys(options.rows)
        for order in dict.fromkeys(options.orders)
    }
    cases = tuple(
        Case(
            f"2 x {short(rows)} rows in the order of {order}, w = {short(length)}",
            float(length),
            {"rows": rows, "order": order, "length": length},
            panel=f"{short(rows)} rows, order: {order}",
        )
        for rows, order in files
        for length in options.lengths
    )
    contestants: list[Contestant] = [
        CONTESTANTS[name](name, place.engines, partial(_statement, name, files))
        for name in options.contestants
        if name in CONTESTANTS
    ]
    jar = questdb_jar(options.peers)
    asked = [name for name in QUESTDB if name in options.contestants]
    contestants += [
        QuestDbJoin(name, files, QuestDb(jar, options.cores, options.memory)) for name in asked if jar.exists()
    ]
    return Suite(
        name="window-join",
        title=f"Windows over another table: sum and count, {options.keys} keys",
        parameters=options.shown("rows", "keys", "lengths", "orders", "cores", "memory"),
        cases=cases,
        contestants=tuple(contestants),
        ours="ours",
        x_label="window length (microseconds)",
        close=place.close,
        checks=(_against_questdb,),
        facts={"ours": OURS_SQL, "spark, spark-segment-tree, duckdb": NATIVE_SQL, "questdb": QUESTDB_SQL},
        left_out=(f"{', '.join(asked)}: {jar} is missing (make peers)",) if asked and not jar.exists() else (),
    )


def _statement(name: str, files: Files, case: Case) -> Statement:
    rows, order, length = (case.parameters[key] for key in ("rows", "order", "length"))
    base, probe = files[int(rows), str(order)]
    if name == "ours":
        tables = {f"{side}_{rows}_{order}": path for side, path in (("base", base), ("probe", probe))}
        names = dict(zip(("base", "probe"), tables, strict=True))
        return Statement(OURS_SQL.format(**names, length=length), CHECKSUMS, tables=tables)
    table = in_duckdb if name == "duckdb" else in_spark
    settings = {} if name == "duckdb" else {SEGMENT_TREE: str(name == "spark-segment-tree").lower()}
    sql = NATIVE_SQL.format(base=table(base), probe=table(probe), length=length)
    return Statement(sql, CHECKSUMS, settings=settings)


@dataclass
class QuestDbJoin(Contestant):
    """QuestDB's WINDOW JOIN: its tables are made of the files in each run, or with `-stored` once, before all runs."""

    name: str
    files: Files
    server: QuestDb
    _made: set[str] = field(default_factory=set)
    _last: dict[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """The server, and the tables that it has already."""
        self.server.start()
        if self.name == "questdb-stored":
            for name, path in self._tables(case).items():
                if name not in self._made:
                    self._make(name, path)
        else:
            for name in self._made:
                self.server.rows(f"DROP TABLE {name}")
            self._made.clear()
            for path in self._tables(case).values():
                self.server.parquet(path)

    def run(self, case: Case) -> None:
        """Make the tables if there are none, and compute all rows."""
        tables = self._tables(case)
        for name, path in tables.items():
            if name not in self._made:
                self._make(name, path)
        base, probe = tables
        join = QUESTDB_SQL.format(base=base, probe=probe, length=case.parameters["length"])
        sums = ", ".join(f"{sql} AS {name}" for name, sql in _QUESTDB_SUMS.items())
        (self._last,) = self.server.rows(f"SELECT {sums} FROM ({join})")

    def answer(self, case: Case) -> Answer:
        return answer_of(self._last)

    def interrupt(self) -> None:
        """Kill the server."""
        self.server.kill()

    def close(self) -> None:
        self.server.close()

    def _tables(self, case: Case) -> dict[str, Path]:
        key = int(case.parameters["rows"]), str(case.parameters["order"])
        return {
            f"{side}_{key[0]}_{key[1]}": path for side, path in zip(("base", "probe"), self.files[key], strict=True)
        }

    def _make(self, name: str, path: Path) -> None:
        self.server.rows(QUESTDB_TABLE.format(name=name, file=self.server.parquet(path)))
        self._made.add(name)


def _against_questdb(report: Report) -> Iterator[Check]:
    """Files with files, and against tables that QuestDB has already."""
    for result in report.cases:
        for name, most in (("questdb", FROM_FILES), ("questdb-stored", STORED)):
            ours, theirs = result.seconds(report.ours), result.seconds(name)
            if ours is not None and theirs is not None:
                item = result.measurement(name)
                less = "less than " if item is not None and item.status == "stopped" else ""
                words = f"{less}{ours / theirs:.2f}x"
                title = f"at most {most}x QuestDB's time {QUESTDB[name]}, {result.case.name}"
                yield Check(title, ours <= most * theirs, words)
