"""`sqlext demo`: the main job from generated files to rows, with every step shown."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from sqlext.cli.console import console, print_lines, print_rows, print_sql, progress
from sqlext.cli.demo_data import DEMO_SQL, write_tables
from sqlext.explain.pages import explain_text
from sqlext.session import Session

SHOWN_ROWS = 10


def run_demo(rows: int, seed: int, data: Path | None) -> None:
    """Generate, plan, run; prints the SQL, the rewritten plan, the first rows and the seconds of each step."""
    out = console()
    begin = time.perf_counter()
    seconds: dict[str, float] = {}
    with _folder(data) as folder:
        with _timed(seconds, "generate", "Generating the tables"):
            sizes = write_tables(folder, rows, seed)
        with _timed(seconds, "start Spark", "Starting Spark"):
            session = Session()
            for name in sizes:
                session.register(name, folder / f"{name}.parquet")
        _heading(out, "Tables: " + ", ".join(f"{name} ({size:,} rows)" for name, size in sizes.items()))
        print_sql(out, DEMO_SQL)
        with _timed(seconds, "plan", "Planning"):
            plan = session.plan(DEMO_SQL)
        _heading(out, "Plan before and after the rules, and what runs it")
        print_lines(out, explain_text(plan, ("analyzed", "optimized", "physical")).splitlines())
        with _timed(seconds, "run", "Running"):
            result = session.sql(DEMO_SQL).toArrow()
        _heading(out, "First rows")
        print_rows(out, result.slice(0, SHOWN_ROWS), more=result.num_rows > SHOWN_ROWS)
        session.spark.stop()
    steps = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    total = time.perf_counter() - begin
    out.print(f"\n{result.num_rows:,} rows with {len(result.column_names) - 4} features each in {seconds['run']:.2f} s")
    out.print(f"{steps}; in all {total:.1f} s", style="dim")
    if data is not None:
        out.print(f'Now try: sqlext run --data {data} -e "SELECT ..."', style="dim")


def _heading(out: Console, text: str) -> None:
    out.print()
    out.print(text, style="bold")
    out.print()


@contextmanager
def _timed(seconds: dict[str, float], step: str, what: str) -> Iterator[None]:
    begin = time.perf_counter()
    with progress(what):
        yield
    seconds[step] = time.perf_counter() - begin


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="sqlext-demo-") as folder:
        yield Path(folder)
