"""`python -m benchmarks SUITE`: one command for each suite, and `report` to print a stored JSON file again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from sqlext_planner.errors import SqlExtError

from benchmarks.aggregates import AggregatesOptions, aggregates_suite
from benchmarks.asof import AsofOptions, asof_suite
from benchmarks.choices import ChoicesOptions, choices_suite
from benchmarks.features import FeaturesOptions, features_suite
from benchmarks.first import FirstOptions, first_suite
from benchmarks.harness.chart import write_chart
from benchmarks.harness.options import Options, command
from benchmarks.harness.report import markdown, print_report, read_json, write_json
from benchmarks.harness.results import Report
from benchmarks.harness.runner import Limits, run
from benchmarks.harness.suite import Suite
from benchmarks.interval.options import IntervalOptions
from benchmarks.interval.suite import interval_suite
from benchmarks.periods import PeriodsOptions, periods_suite
from benchmarks.residuals import ResidualsOptions, residuals_suite
from benchmarks.serving.options import ServingOptions
from benchmarks.serving.suite import serving_suite
from benchmarks.skew.suite import SkewOptions, skew_suite
from benchmarks.stream.options import StreamOptions
from benchmarks.stream.suite import stream_suite
from benchmarks.umjoin.options import UMJoinOptions
from benchmarks.umjoin.suite import umjoin_suite
from benchmarks.window import WindowOptions, window_suite
from benchmarks.window_join import WindowJoinOptions, window_join_suite

app = typer.Typer(
    name="benchmarks",
    help="Compare with other engines, on the same data in one run.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def bench() -> None:
    """Compare with other engines, on the same data in one run."""


_INTERVAL_HELP = (
    "Interval joins by overlap, during, start preceding(delta) and before(delta).",
    "sqlext (`ours`) through Session.sql against DuckDB, Polars, plain Spark and Spark with hand-written bins on the "
    "same Parquet files; its kernels against DuckDB, polars-bio, NCLS and the seed's JoinByS on tables in memory. All "
    "answers are compared. The chart shows how many times as fast `ours` is as each contestant.",
    "`make peers` installs Polars, polars-bio, NCLS and a newer DuckDB into .peers; those that are missing are left "
    "out.",
    "Kernels only: python -m benchmarks interval --sets kernel",
    "One query of a million rows: python -m benchmarks interval --sets large --queries count --contestants ours,duckdb",
    "Real data: python -m benchmarks interval --sets real --real data/intervals",
)
_UMJOIN_HELP = (
    "Multi-way joins, TPC-H, and planning of TPC-DS.",
    "The same SQL text through Session.sql, through spark.sql in the same session, and in DuckDB, on the same Parquet "
    "files. All answers are compared. The chart shows how many times as fast `ours` is as each contestant.",
    "The tables of TPC-H and TPC-DS are those of `sqlext tpch|tpcds generate`, generated when they are first needed "
    "(pip install 'sql-for-time-on-spark[bench,spark,tpc]').",
    "A first look, in a minute: python -m benchmarks umjoin --scale 0.05 --repeat 1",
    "One set of cases: python -m benchmarks umjoin --cases triangle --contestants ours,spark",
    "TPC-H at scale 10: python -m benchmarks umjoin --cases tpch --scale 10 --repeat 5",
    "Planning needs no Spark: python -m benchmarks umjoin --cases planning",
)
_STREAM_HELP = (
    "A window over the union of two streams, and joins of streams, on Structured Streaming.",
    "sqlext (`ours`) through Session.sql against Spark's stream-stream join with an aggregate, Flink's OVER aggregate "
    "and interval join, and two empty stateful operators on Spark, which no other one can beat (`floor`). All answers "
    "are compared with DuckDB's over the same rows as tables.",
    "With `--cases umjoin` against Spark's chain of stream-stream joins, and Flink's multi-join and binary joins. With "
    "`--cases interval` against Spark's stream-stream join and Flink's interval join. With `--cases early` against the "
    "same query with other early answers, and Spark's final rows.",
    "The workloads are those of Scale-OIJ: 4,000 rows in the windows of A and D, 6,000 in those of B, 300 in those of "
    "C. `rising` measures micro-batches over states of 0.1M to 10M rows.",
    "A second table shows rows a second, percentiles of the seconds of a micro-batch, the size of the state, and in "
    "paced runs the seconds from a row's arrival to its answer. Those of contestants that were interrupted are there "
    "too.",
    "`make peers` installs Flink (1 GB) into .peers; it is left out if it is missing.",
    "A first look, in two minutes: python -m benchmarks stream --scale 0.1 --workload C --paced 0",
    "Against Flink: python -m benchmarks stream --batches 500000 --contestants "
    "ours,duckdb,flink-over-heap,flink-join-heap",
    "Latency: python -m benchmarks stream --workload A,D --batches 50000 --contestants ours,floor,duckdb",
    "Joins, in two minutes: python -m benchmarks stream --cases umjoin --scale 0.02 --live 1000000 --contestants "
    "ours,duckdb,spark-chain",
    "Joins: python -m benchmarks stream --cases umjoin --live 1000000,10000000 --limit-seconds 1800",
    "Interval joins: python -m benchmarks stream --cases interval --live 1000000",
    "What estimates cost: python -m benchmarks stream --cases early --contestants ours,ours-none,duckdb --repeat 5",
)

_SERVING_HELP = (
    "Answers of `sqlext serve` at fixed rates, beside an echo and what people put in its place; pushes, warm starts.",
    "Requests come at their time, whether or not those before have been answered, and a latency counts from that time. "
    "The server and the process that sends requests have a core each. `seconds` is the median latency; a second table "
    "has p50, p99, answers a second and memory. An echo by the same server of the same body stands beside ours.",
    "Needs the extras bench and serve. `make peers` installs "
    "DuckDB and Redis's client (.peers/serving) and Feast (.peers/feast); Redis is Debian's redis-server. Those that "
    "are missing are left out.",
    "A first look, in a minute: python -m benchmarks serving --cases scripts --scripts Q1 --rows 20000 --rates 50 "
    "--seconds 2",
    "Others in place of ours: python -m benchmarks serving --cases rivals,lookup --rates 200",
    "Half an hour of pushes and requests: python -m benchmarks serving --cases soak --minutes 30",
)

#: The suites: their options, how each is made, and the paragraphs of the help.
SUITES: dict[str, tuple[type[Options], Callable[..., Suite], tuple[str, ...]]] = {
    "window": (WindowOptions, window_suite, ("Sum and count over the union of two tables within a time window.",)),
    "window-join": (
        WindowJoinOptions,
        window_join_suite,
        ("Sum and count of another table's rows in a time window before each row, beside QuestDB's WINDOW JOIN.",),
    ),
    "first": (
        FirstOptions,
        first_suite,
        (
            "From the start of a process to the rows of its first window, beside plain PySpark.",
            "Each run is a process of its own. `spark-archive` is PySpark whose Java starts from a class-data archive, "
            "as ours does.",
        ),
    ),
    "aggregates": (
        AggregatesOptions,
        aggregates_suite,
        (
            "Each aggregate over the union of two tables within a time window, against Spark's windows.",
            'Some of them: python -m benchmarks aggregates --calls "sum(x); median(x)" --widths 100',
        ),
    ),
    "features": (
        FeaturesOptions,
        features_suite,
        ("FEBench's feature scripts against plain Spark SQL for the same features.",),
    ),
    "asof": (
        AsofOptions,
        asof_suite,
        (
            "ASOF JOIN by key, against Spark's own with its flag on, a window by hand, DuckDB and Polars.",
            "`make peers` installs Polars into .peers; it is left out if it is missing.",
            "A first look, in a minute: python -m benchmarks asof --scale 0.02 --repeat 1",
        ),
    ),
    "choices": (
        ChoicesOptions,
        choices_suite,
        (
            "Random joins whose statistics are wrong: what planning chooses then, against each strategy by force.",
            "A first look, in two minutes: python -m benchmarks choices --statements 12 --repeat 1",
        ),
    ),
    "interval": (IntervalOptions, interval_suite, _INTERVAL_HELP),
    "periods": (
        PeriodsOptions,
        periods_suite,
        ("Unions, gaps, numbers and differences of periods by key, against hand-written window functions.",),
    ),
    "residuals": (
        ResidualsOptions,
        residuals_suite,
        ("Interval joins of every kind with a further condition, against the inner join with it.",),
    ),
    "umjoin": (UMJoinOptions, umjoin_suite, _UMJOIN_HELP),
    "stream": (StreamOptions, stream_suite, _STREAM_HELP),
    "serving": (ServingOptions, serving_suite, _SERVING_HELP),
    "skew": (
        SkewOptions,
        skew_suite,
        ("Sum and count over the union of two tables with self-similar keys, by each partitioner.",),
    ),
}


def _bench(make: Callable[..., Suite], options: Any, limits: Limits, json: Path | None, chart: Path | None) -> None:
    """Make the suite's data and measure it."""
    try:
        with Console(stderr=True).status("Generating the data") as status:
            suite = make(options, report=lambda step: status.update(f"Generating the data: {step}"))
        measure(suite, limits, json=json, chart=chart)
    except SqlExtError as error:
        _fail(error)


for _name, (_options, _make, _help) in SUITES.items():
    app.command(_name, short_help=_help[0], help="\n\n".join(_help))(command(_options, partial(_bench, _make)))


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    markdown_: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the chart to this file (.png, .svg); by default next to the JSON file.")
    ] = None,
) -> None:
    """Print a stored report."""
    try:
        stored = read_json(file)
        if chart is not None:
            write_chart(stored, chart)
    except SqlExtError as error:
        _fail(error)
    if markdown_:
        typer.echo(markdown(stored), nl=False)
    else:
        print_report(stored, Console())


def measure(suite: Suite, limits: Limits, *, json: Path | None, chart: Path | None) -> Report:
    """Run a suite, print the table, write the files: the JSON file after each case. Exits with 1 if a contestant failed
    or gave another answer.

    Raises SqlExtError if a file cannot be written.
    """
    result = run(suite, limits, keep=lambda report: None if json is None else write_json(report, json))
    print_report(result, Console())
    picture = chart or (json.with_suffix(".png") if json is not None else None)
    if picture is not None:
        write_chart(result, picture)
    if not result.answers_agree:
        raise typer.Exit(1)
    return result


def _fail(error: SqlExtError) -> None:
    typer.echo(error.text(), err=True)
    raise typer.Exit(2)
