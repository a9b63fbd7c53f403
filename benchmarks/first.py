"""Suite `first`: from the start of a process to the rows of its first statement, a WINDOW UNION over two small files.

Each run is a process of its own: plain PySpark with the window by hand, the same with a class-data archive of Java's
that was made before (nobody's PySpark has one), and ours. Files are in the page cache, kernels compiled, archives made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.suite import Answer, Case, Check, Contestant, Suite, short
from benchmarks.points import PointTables
from sqlext.class_archive import class_archive
from sqlext.embedded import find_java

#: How long ours may take, of plain PySpark's seconds and of those with an archive.
PLAIN, ARCHIVED = 0.75, 1.15

SPARK_SQL = """SELECT k, ts, s, c FROM (
  SELECT k, ts, side, sum(CASE WHEN side = 1 THEN v END) OVER w AS s, count(CASE WHEN side = 1 THEN v END) OVER w AS c
  FROM (SELECT k, ts, v, 0 AS side FROM base UNION ALL SELECT k, ts, v, 1 AS side FROM probe)
  WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW)) WHERE side = 0"""
OURS_SQL = """SELECT k, ts, sum(v) OVER w AS s, count(v) OVER w AS c FROM base
  WINDOW w AS (UNION probe PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW
  EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)"""

#: What all programs end with: one line of JSON, with the seconds since the process began.
_END = """
import json, os, time
boot = time.clock_gettime(time.CLOCK_BOOTTIME)
ticks = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
sums = [len(rows), sum(r.k for r in rows), sum(r.ts for r in rows), sum(r.c for r in rows), sum(r.s or 0 for r in rows)]
print(json.dumps({"seconds": boot - ticks / os.sysconf("SC_CLK_TCK"), "sums": sums}), flush=True)
"""
_SPARK = f"""
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(f"local[{{sys.argv[3]}}]").config("spark.driver.memory", sys.argv[4]).config(
    "spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", sys.argv[5]).getOrCreate()
for name, path in zip(("base", "probe"), sys.argv[1:3]):
    spark.read.parquet(path).createOrReplaceTempView(name)
rows = spark.sql('''{SPARK_SQL}''').collect()
{_END}
"""
_OURS = f"""
import sys
from sqlext import Session
session = Session(config={{"spark.master": f"local[{{sys.argv[3]}}]", "spark.driver.memory": sys.argv[4],
    "spark.sql.shuffle.partitions": sys.argv[5]}})
for name, path in zip(("base", "probe"), sys.argv[1:3]):
    session.register(name, path)
rows = session.sql('''{OURS_SQL}''').collect()
{_END}
"""
CONTESTANTS = ("ours", "spark", "spark-archive")
#: A Java that writes an archive when it ends does so after its Python has.
_MOST_SECONDS = 300


@dataclass(frozen=True)
class FirstOptions(Options):
    """The command line options."""

    rows: Sequence[int] = option((1_000,), "Rows of each of the two tables; several sizes with commas.")
    keys: int = option(10, "Number of partition keys.", min=1)
    contestants: Sequence[str] = option(CONTESTANTS, WHO)


def first_suite(options: FirstOptions, report: Told = untold) -> Suite:
    """The suite; its data are written at once. Ours uses the archive of this machine's cache, which is made if there
    is none (`sqlext warm`).

    Raises AnalysisError for an unknown contestant.
    """
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, None)
    files = {rows: PointTables(rows, options.keys).write(place.root) for rows in dict.fromkeys(options.rows)}
    if "ours" in options.contestants:
        report("kernels and the class-data archive")
        _warmed()
    if "spark-archive" in options.contestants:
        report("a class-data archive for plain PySpark")
    common = (options, files, place.root / "plain.jsa")
    return Suite(
        name="first",
        title="From the start of a process to the rows of its first window",
        parameters=options.shown("rows", "keys", "cores", "memory"),
        cases=tuple(Case(f"2 x {short(rows)} rows", float(rows), {"rows": rows}) for rows in files),
        contestants=tuple(FirstAnswer(name, *common) for name in options.contestants),
        ours="ours",
        x_label="rows of each table",
        close=place.close,
        checks=(_against_spark,),
        facts={"ours": OURS_SQL, "spark, spark-archive": SPARK_SQL},
    )


def _warmed() -> None:
    java = find_java()
    archive = class_archive(java.executable, java.version)
    if isinstance(archive, str) or not archive.is_there:
        _run_python(["-m", "sqlext", "warm"], {})


def _run_python(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """What a Python of ours prints. Raises ConfigurationError if it fails."""
    given = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, *arguments], env=given, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False
    )
    if done.returncode:
        raise ConfigurationError(f"a process failed: {done.stderr.strip()[-400:]}", condition="benchmark")
    return done.stdout


@dataclass
class FirstAnswer(Contestant):
    """A process that starts, answers one statement, and ends."""

    name: str
    options: FirstOptions
    files: Mapping[int, tuple[Path, Path]]
    archive: Path
    _last: dict[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """The archive of plain PySpark, made by a run of the same program."""
        if self.name == "spark-archive" and not self.archive.exists():
            self._run(case, f"-XX:ArchiveClassesAtExit={self.archive}")
            self._wait_for_archive()

    def run(self, case: Case) -> float:
        """Seconds from the start of the process, as the system has it, to the last row."""
        self._run(case, f"-XX:SharedArchiveFile={self.archive}" if self.name == "spark-archive" else "")
        return float(self._last["seconds"])

    def answer(self, case: Case) -> Answer:
        rows, *sums = self._last["sums"]
        return Answer(rows, dict(zip(("k", "ts", "c", "s"), sums, strict=True)))

    def _run(self, case: Case, java_options: str) -> None:
        base, probe = self.files[int(case.parameters["rows"])]
        program = _OURS if self.name == "ours" else _SPARK
        options = self.options
        arguments = [str(base), str(probe), str(options.cores), options.memory, str(2 * options.cores)]
        java = {"SPARK_SUBMIT_OPTS": java_options} if java_options else {}
        printed = _run_python(["-c", program, *arguments], java)
        lines = [line for line in printed.splitlines() if line.startswith('{"seconds"')]  # Java too may print
        self._last = json.loads(lines[-1])

    def _wait_for_archive(self) -> None:
        """Java writes it after its Python has ended."""
        size, deadline = -1, time.monotonic() + _MOST_SECONDS
        while time.monotonic() < deadline:
            now = self.archive.stat().st_size if self.archive.exists() else -1
            if now > 0 and now == size:
                return
            size = now
            time.sleep(2)
        raise ConfigurationError("Java made no class-data archive", condition="benchmark")


def _against_spark(report: Report) -> Iterator[Check]:
    for result in report.cases:
        ours = result.seconds(report.ours)
        for name, most in (("spark", PLAIN), ("spark-archive", ARCHIVED)):
            theirs = result.seconds(name)
            if ours is not None and theirs is not None:
                title = f"at most {most}x the seconds of {name}, {result.case.name}"
                yield Check(title, ours <= most * theirs, f"{ours / theirs:.2f}x")
