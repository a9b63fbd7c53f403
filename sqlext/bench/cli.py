"""`sqlext bench SUITE`: one command for each suite, and `report` to print a stored JSON file again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from sqlext_planner.errors import SqlExtError

from sqlext.bench.features import CONTESTANTS, SCRIPTS, FeaturesOptions, features_suite
from sqlext.bench.harness.chart import write_chart
from sqlext.bench.harness.report import markdown, print_report, read_json, write_json
from sqlext.bench.harness.results import Report
from sqlext.bench.harness.runner import LIMIT_SECONDS, Limits, run
from sqlext.bench.harness.suite import Suite
from sqlext.bench.interval.options import IntervalOptions
from sqlext.bench.interval.suite import interval_suite
from sqlext.bench.skew.suite import SkewOptions, skew_suite
from sqlext.bench.skew.tasks import SkewTasksOptions, skew_tasks_suite
from sqlext.bench.stream.options import StreamOptions
from sqlext.bench.stream.suite import stream_suite
from sqlext.bench.umjoin.options import UMJoinOptions
from sqlext.bench.umjoin.suite import umjoin_suite
from sqlext.bench.window import WindowOptions, window_suite

app = typer.Typer(
    name="bench",
    help="Compare with other engines, on the same data in one run.",
    no_args_is_help=True,
    add_completion=False,
)

Scale = Annotated[float, typer.Option(help="Factor for the number of rows.", min=0.0)]
Repeat = Annotated[
    int, typer.Option(help="Timed runs of each contestant, after warm-ups; more for cases that need them.", min=1)
]
CapSeconds = Annotated[
    float | None, typer.Option(help="A contestant whose warm-up takes longer runs only once; the warm-up then counts.")
]
LimitSeconds = Annotated[float, typer.Option(help="A run that takes longer is stopped.", min=1.0)]
Cores = Annotated[int, typer.Option(help="Cores of each engine.", min=1)]
Memory = Annotated[str, typer.Option(help="Heap of Spark's JVM.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write every run to this file.")]
Chart = Annotated[
    Path | None, typer.Option(help="Draw the chart to this file (.png, .svg); by default next to the JSON file.")
]
Data = Annotated[
    Path | None, typer.Option(help="Keep the generated data here; by default they are deleted after the run.")
]


@app.callback()
def bench() -> None:
    """Compare with other engines, on the same data in one run."""


@app.command()
def window(
    rows: Annotated[str, typer.Option(help="Rows of each of the two tables; several sizes with commas.")] = "5000000",
    keys: Annotated[int, typer.Option(help="Number of partition keys.", min=1)] = 100,
    lengths: Annotated[str, typer.Option(help="Window lengths in time units.")] = "1000,10000,100000",
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(WindowOptions().contestants),
    skew: Annotated[float, typer.Option(help="Share of the rows that one hot key holds.", min=0.0, max=0.99)] = 0.0,
    repeat: Repeat = 3,
    cap_seconds: CapSeconds = None,
    limit_seconds: LimitSeconds = LIMIT_SECONDS,
    cores: Cores = 2,
    memory: Memory = "8g",
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """Sum and count over the union of two tables within a time window."""
    options = WindowOptions(
        rows=[max(1, round(size * scale)) for size in _numbers(rows, "--rows")],
        keys=keys,
        lengths=_numbers(lengths, "--lengths"),
        contestants=_names(contestants),
        hot=skew if keys > 1 else 0.0,
        cores=cores,
        memory=memory,
        data=data,
    )
    _bench(lambda _: window_suite(options), Limits(repeat, cap_seconds, limit_seconds), json=json, chart=chart)


@app.command()
def features(
    rows: Annotated[int, typer.Option(help="Rows of each script's FROM table.", min=1)] = FeaturesOptions().rows,
    scripts: Annotated[str, typer.Option(help="Which of FEBench's scripts.")] = ",".join(SCRIPTS),
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(CONTESTANTS),
    repeat: Repeat = 3,
    cap_seconds: CapSeconds = None,
    limit_seconds: LimitSeconds = LIMIT_SECONDS,
    cores: Cores = 2,
    memory: Memory = "8g",
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """FEBench's feature scripts against plain Spark SQL for the same features."""
    options = FeaturesOptions(
        rows=max(1, round(rows * scale)),
        scripts=_names(scripts),
        contestants=_names(contestants),
        cores=cores,
        memory=memory,
        data=data,
    )
    _bench(lambda _: features_suite(options), Limits(repeat, cap_seconds, limit_seconds), json=json, chart=chart)


_INTERVAL = IntervalOptions()
_INTERVAL_HELP = (
    "Interval joins by overlap, during, start preceding(delta) and before(delta).",
    "sqlext (`ours`) through Session.sql against DuckDB, Polars, plain Spark and Spark with hand-written bins on the "
    "same Parquet files; its kernels against DuckDB, polars-bio, NCLS and the seed's JoinByS on tables in memory. All "
    "answers are compared. The chart shows how many times as fast `ours` is as each contestant.",
    "`make peers` installs Polars, polars-bio, NCLS and a newer DuckDB into .peers; those that are missing are left "
    "out.",
    "Kernels only: sqlext bench interval --sets kernel",
    "One query of a million rows: sqlext bench interval --sets large --queries count --contestants ours,duckdb",
    "Real data: sqlext bench interval --sets real --real data/intervals",
)


@app.command(short_help=_INTERVAL_HELP[0], help="\n\n".join(_INTERVAL_HELP))
def interval(
    sets: Annotated[
        str,
        typer.Option(
            help="kernel: in memory, one thread. synthetic: the seed's recipe. nested: Spark's nested loop at "
            "100k x 100k. large: 1M x 1M. real: git, genome, flights. growth: 1M against 4M rows. memory: 10M x 10M."
        ),
    ] = ",".join(_INTERVAL.sets),
    relations: Annotated[
        str,
        typer.Option(
            help="In synthetic and kernel: which relations; also any name of docs/predicates.md, such as allen_meets."
        ),
    ] = ",".join(_INTERVAL.relations),
    rows: Annotated[str, typer.Option(help="In synthetic: rows of each table.")] = ",".join(map(str, _INTERVAL.rows)),
    lengths: Annotated[str, typer.Option(help="In synthetic: mean lengths, starts lie in 1..1000000.")] = ",".join(
        map(str, _INTERVAL.lengths)
    ),
    queries: Annotated[str, typer.Option(help="In large: which queries.")] = ",".join(_INTERVAL.queries),
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(_INTERVAL.contestants),
    max_pairs: Annotated[
        int, typer.Option(help="In synthetic: cases with more pairs are left out.")
    ] = _INTERVAL.max_pairs,
    nested_rows: Annotated[
        int, typer.Option(help="Largest table for Spark's nested loop.", min=0)
    ] = _INTERVAL.nested_rows,
    bin_width: Annotated[
        int | None, typer.Option(help="Width of hand-written bins; by default the estimated best for each case.", min=1)
    ] = None,
    real: Annotated[
        Path | None, typer.Option(help="Folder of the real data (data/intervals); it is only read.")
    ] = None,
    peers: Annotated[Path, typer.Option(help="Where `make peers` put the peers.")] = _INTERVAL.peers,
    repeat: Repeat = 3,
    cap_seconds: CapSeconds = 5.0,
    limit_seconds: LimitSeconds = 60.0,
    cores: Cores = 2,
    memory: Memory = "8g",
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """Interval joins, and their kernels alone, against other engines."""
    options = IntervalOptions(
        sets=_names(sets),
        rows=_numbers(rows, "--rows"),
        lengths=_numbers(lengths, "--lengths"),
        relations=_names(relations),
        queries=_names(queries),
        contestants=_names(contestants),
        scale=scale,
        max_pairs=max_pairs,
        nested_rows=nested_rows,
        bin_width=bin_width,
        real=real,
        peers=peers,
        cores=cores,
        memory=memory,
        data=data,
    )
    _bench(lambda _: interval_suite(options), Limits(repeat, cap_seconds, limit_seconds), json=json, chart=chart)


_UMJOIN = UMJoinOptions()
_UMJOIN_HELP = (
    "Multi-way joins, TPC-H, and planning of TPC-DS.",
    "The same SQL text through Session.sql, through spark.sql in the same session, and in DuckDB, on the same Parquet "
    "files. All answers are compared. The chart shows how many times as fast `ours` is as each contestant.",
    "The tables of TPC-H and TPC-DS are those of `sqlext tpch|tpcds generate`, generated when they are first needed "
    "(pip install 'sql-for-time-on-spark[bench,tpc]').",
    "A first look, in a minute: sqlext bench umjoin --scale 0.05 --repeat 1",
    "One set of cases: sqlext bench umjoin --cases triangle --contestants ours,spark",
    "TPC-H at scale 10: sqlext bench umjoin --cases tpch --scale 10 --repeat 5",
    "Planning needs no Spark: sqlext bench umjoin --cases planning",
)


@app.command(short_help=_UMJOIN_HELP[0], help="\n\n".join(_UMJOIN_HELP))
def umjoin(
    cases: Annotated[
        str,
        typer.Option(
            help="seed: four tables of TPC-DS on one key. star, chain: four inputs, 1e9 and 1e12 result rows. "
            "triangle, cycle4: cycles of skewed graphs. tpch: all 22 queries. planning: 99 queries of TPC-DS, not run."
        ),
    ] = ",".join(_UMJOIN.cases),
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(_UMJOIN.contestants),
    scale: Annotated[
        float,
        typer.Option(help="Scale factor of TPC-H and TPC-DS; multiplies the rows of all other tables.", min=0.001),
    ] = _UMJOIN.scale,
    rows: Annotated[int, typer.Option(help="In star and chain: rows of each input.", min=1_000)] = _UMJOIN.rows,
    edges: Annotated[int, typer.Option(help="In triangle and cycle4: edges.", min=1_000)] = _UMJOIN.edges,
    repeat: Repeat = 3,
    cap_seconds: CapSeconds = 20.0,
    limit_seconds: LimitSeconds = 120.0,
    cores: Cores = 2,
    memory: Memory = "8g",
    json: Json = None,
    chart: Chart = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Keep generated data here; by default TPC tables are kept in ~/.cache/sqlext, and others are deleted."
        ),
    ] = None,
) -> None:
    """Multi-way joins, TPC-H, and planning of TPC-DS."""
    options = UMJoinOptions(
        cases=_names(cases),
        contestants=_names(contestants),
        scale=scale,
        rows=rows,
        edges=edges,
        cores=cores,
        memory=memory,
        data=data,
    )
    limits = Limits(repeat, cap_seconds, limit_seconds)
    _bench(lambda report: umjoin_suite(options, report=report), limits, json=json, chart=chart)


_STREAM = StreamOptions()
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
    "A first look, in two minutes: sqlext bench stream --scale 0.1 --workload C --paced 0",
    "Against Flink: sqlext bench stream --batches 500000 --contestants ours,duckdb,flink-over-heap,flink-join-heap",
    "Latency: sqlext bench stream --workload A,D --batches 50000 --contestants ours,floor,duckdb",
    "Joins, in two minutes: sqlext bench stream --cases umjoin --scale 0.02 --live 1000000 --contestants "
    "ours,duckdb,spark-chain",
    "Joins: sqlext bench stream --cases umjoin --live 1000000,10000000 --limit-seconds 1800",
    "Interval joins: sqlext bench stream --cases interval --live 1000000",
    "What estimates cost: sqlext bench stream --cases early --contestants ours,ours-none,duckdb --repeat 5",
)


@app.command(short_help=_STREAM_HELP[0], help="\n\n".join(_STREAM_HELP))
def stream(
    cases: Annotated[
        str,
        typer.Option(
            help="window: a window over the union of two streams. umjoin: joins of three and four streams. interval: "
            "joins of two streams in a band of time or of periods. early: early answers of a window join."
        ),
    ] = ",".join(_STREAM.cases),
    workload: Annotated[
        str,
        typer.Option(
            help="A, D: 5 keys, windows of 1 s, rows up to 1 s (A) and 2 s (D) late. B: 111 keys, 150 s, 10 s. "
            "C: 45 keys, 8 s, 100 s. rising: state of --live rows. even, moving: 1,000 keys, even or with "
            "hot ones. shared: four streams on one key, state of --live "
            "rows. chain: on three keys. second: three on a key of 100 values and a second one each. near: four on one "
            "key, 20 s apart at most. points: a row and those of the 20 s after it, state of --live rows. overlap: "
            "periods that overlap. left: a LEFT JOIN of them. few, many: windows of 1 s with 10 and 10,000 keys."
        ),
    ] = ",".join(_STREAM.workloads),
    rows: Annotated[int, typer.Option(help="Rows of each stream, in A to D.", min=1)] = _STREAM.rows,
    batches: Annotated[
        str, typer.Option(help="Rows of a micro-batch; peers without micro-batches take part with the most.")
    ] = ",".join(map(str, _STREAM.batches)),
    live: Annotated[str, typer.Option(help="In rising, shared and points: rows in state.")] = ",".join(
        map(str, _STREAM.live)
    ),
    paced: Annotated[
        float, typer.Option(help="Seconds of the paced runs of A, B and D at the rates of Scale-OIJ; 0: none.", min=0.0)
    ] = _STREAM.paced,
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(_STREAM.contestants),
    peers: Annotated[Path, typer.Option(help="Where `make peers` put Flink.")] = _STREAM.peers,
    state_memory: Annotated[
        int, typer.Option(help="MB of RocksDB's memory, in Spark and in Flink.", min=64)
    ] = _STREAM.state_memory_mb,
    repeat: Repeat = 1,
    cap_seconds: CapSeconds = 60.0,
    limit_seconds: LimitSeconds = 120.0,
    cores: Cores = 2,
    memory: Memory = "8g",
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """A window over the union of two streams, and joins of streams, on Structured Streaming."""
    options = StreamOptions(
        cases=_names(cases),
        workloads=_names(workload),
        contestants=_names(contestants),
        rows=rows,
        batches=_numbers(batches, "--batches"),
        live=_numbers(live, "--live"),
        paced=paced,
        scale=scale,
        peers=peers,
        state_memory_mb=state_memory,
        cores=cores,
        memory=memory,
        data=data,
    )
    limits = Limits(repeat, cap_seconds, limit_seconds)
    _bench(lambda report: stream_suite(options, report=report), limits, json=json, chart=chart)


_SKEW = SkewOptions()
_SHAPES = ",".join(":".join(map(str, shape)) for shape in _SKEW.shapes)
Shapes = Annotated[
    str, typer.Option(help="Keys, skew (0.5: even) and half of the interval in seconds: 50:0.2:30; with commas.")
]


@app.command()
def skew(
    rows: Annotated[int, typer.Option(help="Rows of each of the two tables.", min=1)] = _SKEW.rows,
    shapes: Shapes = _SHAPES,
    partitions: Annotated[int, typer.Option(help="Partitions of the exchange.", min=2)] = _SKEW.partitions,
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(_SKEW.contestants),
    cluster: Annotated[
        int,
        typer.Option(
            help="Run on a Spark standalone cluster of so many workers, started for it on this machine, with one core "
            "each; 0: in one process.",
            min=0,
        ),
    ] = _SKEW.cluster,
    repeat: Repeat = 3,
    cap_seconds: CapSeconds = None,
    limit_seconds: LimitSeconds = LIMIT_SECONDS,
    cores: Cores = 2,
    memory: Memory = "8g",
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """Sum and count over the union of two tables with self-similar keys, by each partitioner."""
    options = SkewOptions(
        rows=max(1, round(rows * scale)),
        shapes=_shapes(shapes),
        contestants=_names(contestants),
        partitions=partitions,
        cluster=cluster,
        cores=cores,
        memory=memory,
        data=data,
    )
    _bench(lambda _: skew_suite(options), Limits(repeat, cap_seconds, limit_seconds), json=json, chart=chart)


_SKEW_TASKS = SkewTasksOptions()


@app.command("skew-tasks")
def skew_tasks(
    rows: Annotated[int, typer.Option(help="Rows of each of the two tables.", min=1)] = _SKEW_TASKS.rows,
    shapes: Shapes = _SHAPES,
    partitions: Annotated[str, typer.Option(help="Partitions of the exchange, several with commas.")] = ",".join(
        map(str, _SKEW_TASKS.partitions)
    ),
    contestants: Annotated[str, typer.Option(help="Who takes part.")] = ",".join(_SKEW_TASKS.contestants),
    scale: Scale = 1.0,
    json: Json = None,
    chart: Chart = None,
    data: Data = None,
) -> None:
    """The rows of suite `skew` counted by partition, and the critical path simulated, without Spark."""
    numbers = _numbers(partitions, "--partitions")
    if min(numbers) < 2:
        raise typer.BadParameter("numbers of partitions start at 2", param_hint="--partitions")
    options = SkewTasksOptions(
        rows=max(1, round(rows * scale)),
        shapes=_shapes(shapes),
        contestants=_names(contestants),
        partitions=numbers,
        data=data,
    )
    _bench(lambda report: skew_tasks_suite(options, report), Limits(repeat=1), json=json, chart=chart)


def _shapes(text: str) -> list[tuple[int, float, int]]:
    """`50:0.2:30, 1:0.5:10` -> [(50, 0.2, 30), (1, 0.5, 10)]."""
    try:
        parts = [part.split(":") for part in text.split(",")]
        found = [(int(keys), float(share), int(seconds)) for keys, share, seconds in parts]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a list like 50:0.2:30", param_hint="--shapes") from error
    if any(keys < 1 or not 0 < share <= 0.5 or seconds < 0 for keys, share, seconds in found):
        raise typer.BadParameter("at least one key, and a skew above 0 and at most 0.5", param_hint="--shapes")
    return found


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="A file that --json wrote.")],
    markdown_: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as in docs/benchmarks.md.")] = False,
    chart: Chart = None,
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


def _bench(
    make: Callable[[Callable[[str], None]], Suite], limits: Limits, *, json: Path | None, chart: Path | None
) -> None:
    """Make the suite's data and measure it; `make` gets a function to call with the name of each step."""
    try:
        with Console(stderr=True).status("Generating the data") as status:
            suite = make(lambda step: status.update(f"Generating the data: {step}"))
        measure(suite, limits, json=json, chart=chart)
    except SqlExtError as error:
        _fail(error)


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


def _names(text: str) -> list[str]:
    """`a, b` -> ["a", "b"]."""
    return [name.strip() for name in text.split(",")]


def _numbers(text: str, option: str) -> list[int]:
    """`1000,10_000` -> [1000, 10000]."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers", param_hint=option) from error
    if any(number < 1 for number in numbers):
        raise typer.BadParameter("numbers start at 1", param_hint=option)
    return numbers


def _fail(error: SqlExtError) -> None:
    typer.echo(str(error), err=True)
    raise typer.Exit(2)
