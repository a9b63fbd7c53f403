"""`sqlext warm`: what a first run leaves for later ones, made ahead of them: compiled kernels, and Java's archive."""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import nullcontext

from rich.console import Console
from sqlext_planner.spark.session import java_process
from sqlext_planner.spark.versions import arrow_table

from sqlext.class_archive import class_archive
from sqlext.cli.terminal import console, progress
from sqlext.embedded import find_java, start_spark
from sqlext.session import Session

#: What a Java that ends has time for: it writes the archive.
_PATIENCE = 300
_ROWS = """SELECT id, int(id % 3) AS k, int(id % 4) AS g, timestamp_seconds(id * 7 % 1000) AS ts,
    timestamp_seconds(id * 7 % 1000 + 5) AS te, double(id * 10) AS v FROM range(1000)"""
_FRAME = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW"
#: One statement of each operator, and what users write around them.
_STATEMENTS = (
    f"""SELECT id, sum(v) OVER w AS total, count(v) OVER w AS n, min(v) OVER w AS least, max(v) OVER w AS most,
        avg(v) OVER w AS mean, distinct_count(g) OVER w AS kinds FROM views WINDOW w AS (UNION orders {_FRAME})""",
    f"SELECT id, sum(v) OVER w AS total FROM views WINDOW w AS (UNION orders {_FRAME} INSTANCE_NOT_IN_WINDOW)",
    "SELECT a.id, b.v FROM views AS a LAST JOIN orders AS b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts",
    """SELECT a.id, b.id AS other FROM views AS a JOIN orders AS b
        ON a.k = b.k AND a.g = b.g AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)""",
    "SELECT k, ts, te FROM NORMALIZE((SELECT * FROM views) PARTITION BY k PERIOD (ts, te))",
    """SELECT a.k, count(*) AS n, sum(b.v) AS total FROM views a JOIN orders b ON a.id = b.id
        WHERE a.g > 0 GROUP BY a.k ORDER BY n DESC""",
    "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 20 SECONDS PRECEDING AND CURRENT ROW) "
    "AS total FROM views",
)


def run_warm(again: bool) -> None:
    """Run a statement of each operator over a few rows in a Spark that is started for it, and say what that left. With
    `again` the archive is made also if there is one."""
    out = console()
    java = find_java()
    archive = class_archive(java.executable, java.version)
    begin = time.perf_counter()
    if isinstance(archive, str):
        with progress("Compiling kernels"):
            _run_statements(None)
        _say(out, "kernels", f"compiled, in {time.perf_counter() - begin:.0f} s")
        _say(out, "class archive", f"none: {archive}")
        return
    making = archive.made() if again or not archive.is_there else nullcontext()
    with (
        making as file,
        progress("Compiling kernels" + (" and writing down Java's classes" if file else "")),
    ):
        _run_statements(None if file is None else archive.making(file))
    seconds = f"in {time.perf_counter() - begin:.0f} s"
    _say(out, "kernels", f"compiled, {seconds}")
    _say(out, "class archive", archive.described())


def _say(out: Console, name: str, text: str) -> None:
    out.print(f"{name:<15}{text}", highlight=False, soft_wrap=True)


def _run_statements(arguments: list[str] | None) -> None:
    """Start Spark, with arguments for its Java, and end both."""
    with tempfile.TemporaryDirectory(prefix="sqlext-warm-") as folder:
        spark = start_spark("local[2]", {"spark.driver.memory": "1g"}, arguments)
        session = Session(spark)
        for name in ("views", "orders"):
            spark.sql(_ROWS).write.parquet(f"{folder}/{name}")
            session.register(name, f"{folder}/{name}")
        for statement in _STATEMENTS:
            session.sql(statement).collect()
        session.sql(_STATEMENTS[0]).write.parquet(f"{folder}/result")
        arrow_table(session.sql(_STATEMENTS[0]))
        spark.stop()
    _end_java()


def _end_java() -> None:
    """Let Java end by itself, as it does when this process ends, and wait for it: it may write an archive."""
    java = java_process()
    if java is None or java.stdin is None:
        return
    java.stdin.close()
    try:
        java.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        java.kill()
