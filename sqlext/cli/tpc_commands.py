"""`sqlext tpch|tpcds generate | plan | run`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError, SqlExtError

from sqlext.catalog import FileCatalog, data_files
from sqlext.cli.failures import FAILURE
from sqlext.cli.plan import DEFAULT_STAGES
from sqlext.cli.source import read_settings, refuse_spark_settings
from sqlext.cli.terminal import writing
from sqlext.tpc import BENCHMARKS, Benchmark

if TYPE_CHECKING:
    from sqlext.tpc.runner import Outcome

DEFAULT_SCALE = 0.1


def run_generate(name: str, scale: float | None, data: Path | None) -> None:
    """Fill the folder and print a line for each table."""
    benchmark = BENCHMARKS[name]
    factor = _factor(scale)
    folder = data or benchmark.cache(factor)
    if not _fill(benchmark, factor, folder, typer.echo):
        typer.echo(f"{folder} already contains {benchmark.title} at scale {factor:g}")
    else:
        typer.echo(
            f"{folder} contains {benchmark.title} at scale {factor:g}; try: sqlext {name} run --data {folder} --check"
        )


def run_plan(
    name: str, queries: str | None, data: Path | None, format: str, output: Path | None, conf: Sequence[str]
) -> None:
    """Print the plans of the queries, or write them to `output`."""
    from sqlext.explain.pages import explain_json, explain_text
    from sqlext.run.pipeline import stage

    benchmark = BENCHMARKS[name]
    settings, spark = read_settings(conf)
    refuse_spark_settings(spark)
    numbers = _numbers(benchmark, queries)
    catalog = FileCatalog(data) if data is not None else benchmark.catalog()
    config = Config.from_mapping(settings)
    texts: list[str] = []
    pages: dict[str, Any] = {}
    for number in numbers:
        sql = benchmark.query(number)
        try:
            plan = stage(sql, catalog, config)
        except SqlExtError as error:
            raise error.with_sql(sql) from error.__cause__
        if format == "json":
            pages[str(number)] = json.loads(explain_json(plan, DEFAULT_STAGES))
        else:
            texts.append(f"==== {benchmark.title} query {number} ====\n\n{explain_text(plan, DEFAULT_STAGES)}\n")
    page = "\n".join(texts)
    if format == "json":
        page = json.dumps({"benchmark": name, "queries": pages}, indent=2, ensure_ascii=False) + "\n"
    if output is not None:
        with writing(output):
            output.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)


def run_queries(
    name: str,
    queries: str | None,
    scale: float | None,
    data: Path | None,
    check: bool,
    conf: Sequence[str],
    json_file: Path | None,
) -> int:
    """Run the queries and print a line for each; returns the exit code."""
    from sqlext.tpc.runner import open_session, run

    benchmark = BENCHMARKS[name]
    numbers = _numbers(benchmark, queries)
    ours, spark = read_settings(conf)
    folder = _tables(benchmark, scale, data)
    files = data_files(folder)
    tables = {table: Path(found.path) for table, found in files.items() if table.lower() in benchmark.tables}
    for table in tables:
        files[table].check(table)
    outcomes: list[Outcome] = []
    with Console(stderr=True).status("Starting Spark") as status:

        def report(number: int, what: str) -> None:
            status.update(f"q{number:02} {what}")

        session = open_session(tables, {**spark, **ours})
        try:
            for outcome in run(session, benchmark, numbers, report, check=check):
                outcomes.append(outcome)
                _say(_line(outcome))
        finally:
            session.spark.stop()
    _say(_summary(outcomes, check=check))
    if json_file is not None:
        page = {
            "benchmark": name,
            "data": str(folder),
            "conf": {**spark, **ours},
            "check": check,
            "passed": all(outcome.passed for outcome in outcomes),
            "queries": [asdict(outcome) for outcome in outcomes],
        }
        json_file.write_text(json.dumps(page, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(outcome.passed for outcome in outcomes) else FAILURE


def _factor(scale: float | None) -> float:
    if scale is None:
        return DEFAULT_SCALE
    if not 0 < scale < float("inf"):
        raise typer.BadParameter(f"--scale {scale:g}: give a number above 0")
    return scale


def _numbers(benchmark: Benchmark, queries: str | None) -> list[int]:
    """`3,5-7` -> [3, 5, 6, 7]. Raises typer.BadParameter, ConfigurationError for a number that does not exist."""
    if queries is None:
        return list(benchmark.numbers)
    numbers: list[int] = []
    for part in queries.split(","):
        first, _, last = part.strip().partition("-")
        try:
            numbers.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            raise typer.BadParameter(f"--queries {queries}: write numbers as in 3,5 or 1-9") from None
    for number in numbers:
        benchmark.query(number)
    if not numbers:
        raise typer.BadParameter(f"--queries {queries} names no query")
    return list(dict.fromkeys(numbers))


def _tables(benchmark: Benchmark, scale: float | None, data: Path | None) -> Path:
    """The folder to read: --data as it is, filled first if --scale is given; else the cache's."""
    from sqlext.tpc.benchmark import generated

    factor = _factor(scale)
    folder = data or benchmark.cache(factor)
    is_empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if data is None or (scale is not None and (is_empty or generated(folder) is not None)):
        _fill(benchmark, factor, folder, lambda line: typer.echo(line, err=True))
    have = {name.lower() for name in data_files(folder)}
    missing = [table for table in benchmark.tables if table not in have]
    if missing:
        raise ConfigurationError(
            f"{folder} lacks tables of {benchmark.title}: {', '.join(missing)}",
            condition="benchmark",
            help=f"make them: sqlext {benchmark.name} generate --data DIR",
        )
    return folder


def _fill(benchmark: Benchmark, scale: float, folder: Path, say: Callable[[str], None]) -> bool:
    """Generate into the folder unless it is filled; returns whether there was something to do."""
    from sqlext.tpc.benchmark import generate

    begin = time.perf_counter()
    done = False
    with Console(stderr=True).status(f"Generating {benchmark.title} at scale {scale:g} in {folder}") as status:

        def report(step: str, rows: int | None) -> None:
            nonlocal done
            done = True
            if rows is None:
                status.update(f"{step}: generating in {folder}")
            else:
                say(f"{step:<24}{rows:>14,} rows  {time.perf_counter() - begin:7.1f} s")

        generate(benchmark, scale, folder, report)
    return done


def _line(outcome: Outcome) -> str:
    rows = "" if outcome.rows is None else f"{outcome.rows:,} rows"
    ours = "" if outcome.seconds is None else f"ours {outcome.seconds:8.2f} s"
    spark = "" if outcome.spark_seconds is None else f"Spark {outcome.spark_seconds:8.2f} s"
    verdict = outcome.verdict + (f": {outcome.detail}" if outcome.detail else "")
    return f"q{outcome.query:02}  {rows:>14}  {ours:>15}  {spark:>16}  {verdict}"


def _summary(outcomes: Sequence[Outcome], *, check: bool) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    words = f"{passed} of {len(outcomes)} {'the same' if check else 'ran'}"
    ours = sum(outcome.seconds or 0.0 for outcome in outcomes)
    if not check:
        return f"{words}; {ours:.1f} s"
    spark = sum(outcome.spark_seconds or 0.0 for outcome in outcomes)
    ratio = f", ratio {ours / spark:.2f}" if spark and passed == len(outcomes) else ""
    return f"{words}; ours {ours:.1f} s, Spark {spark:.1f} s{ratio}"


def _say(line: str) -> None:
    """Print a line at once: a run takes minutes, and somebody may be reading through a pipe."""
    typer.echo(line)
    sys.stdout.flush()
