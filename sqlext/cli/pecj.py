"""The commands of early answers and their options. Their code is imported when they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sqlext.cli.options import TableOrJson

pecj_app = typer.Typer(
    name="pecj",
    help="Early answers of window joins, with bounds on their error (PECJ).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)


class AggregateName(StrEnum):
    """What is computed over the pairs."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


#: The unit of times that are numbers.
TimeUnit = StrEnum("TimeUnit", "us ms s")


@pecj_app.callback()
def pecj() -> None:
    """Early answers of window joins, with bounds on their error (PECJ)."""


@pecj_app.command()
def replay(
    left: Annotated[Path, typer.Option(help="Left stream: a CSV or Parquet file.", metavar="FILE")],
    right: Annotated[Path, typer.Option(help="Right stream, with the same column names.", metavar="FILE")],
    key: Annotated[str, typer.Option(help="Column of the keys: rows with equal keys are pairs.", metavar="COL")],
    window: Annotated[str, typer.Option(help="Length of the tumbling windows: 10ms, 30s, 5m.", metavar="TIME")],
    emit_after: Annotated[
        list[str],
        typer.Option(
            help="When a window is answered, [bold]from its start[/]; several times with commas.", metavar="TIME"
        ),
    ],
    value: Annotated[str | None, typer.Option(help="Column of the left file, for SUM and AVG.", metavar="COL")] = None,
    time: Annotated[str | None, typer.Option(help="Column of the times: when rows happen.", metavar="COL")] = None,
    arrival: Annotated[str | None, typer.Option(help="Column of the times of arrival.", metavar="COL")] = None,
    rate: Annotated[
        int | None, typer.Option(help="Instead of --time: so many rows a second, in the order of the file.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="Instead of --arrival: random delays up to this.", metavar="uniform:TIME")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the delays; equal seeds give equal delays. 0: those of PECJ's loader.", min=0)
    ] = 0,
    aggregate: Annotated[AggregateName, typer.Option(help="What is computed over the pairs.")] = AggregateName.COUNT,
    estimators: Annotated[
        str, typer.Option(help="none, ksj, alf, svi, mlp, coverage, shrink: with commas, or all.", metavar="NAMES")
    ] = "all",
    confidence: Annotated[float, typer.Option(help="Share of the intervals that are to hold the exact answer.")] = 0.95,
    warm_up: Annotated[
        int, typer.Option(help="So many windows at the start are the past: learned from, not answered.", min=0)
    ] = 0,
    slices: Annotated[
        int | None,
        typer.Option(help="With --rate: so many windows, spread over both files, each begun when the last is final."),
    ] = None,
    closed: Annotated[
        bool,
        typer.Option(
            "--closed",
            help="As in PECJ's experiments: the end of a window belongs to it, and so does the row that ends the wait.",
        ),
    ] = False,
    lateness: Annotated[
        str | None,
        typer.Option(
            help="How late rows may be; later ones are dropped. By default, as late as any is.", metavar="TIME"
        ),
    ] = None,
    unit: Annotated[TimeUnit, typer.Option(help="Unit of times that are numbers.")] = TimeUnit.us,
    format: Annotated[TableOrJson, typer.Option(help="A table of figures, or all answers.")] = TableOrJson.table,
    chart: Annotated[
        Path | None, typer.Option(help="Draw a chart to this file (.png, .svg, .pdf).", metavar="OUT")
    ] = None,
) -> None:
    """Answer the windows of two recorded streams early, by several estimators, and compare with the exact answers.

    A window is answered --emit-after its start, from the rows that have arrived by then. An estimator learns from
    windows only when their last row has come. The same files and options give the same output.

    [bold]Examples[/]

      sqlext pecj replay --left orders.parquet --right payments.parquet --key id --time ts --arrival seen
        --window 10s --emit-after 7s

      sqlext pecj replay --left r.csv --right s.csv --key key --rate 100000 --delay uniform:5ms
        --window 10ms --emit-after 7ms,10ms,12ms --warm-up 10 --chart errors.png

      sqlext pecj replay ... --aggregate sum --value price --estimators none,shrink --format json

    JSON is a list of {estimator, window_start, estimate, lower, upper, exact, reliable}; null is a number that does not
    exist: the average of nothing. `reliable` is false if past windows do not bear out the interval.
    """
    options = locals()
    from sqlext.cli.pecj_replay import run_pecj_replay

    run_pecj_replay(**options)
