"""`python -m benchmarks serving`: its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

PARTS = ("scripts", "long", "pushes", "rivals", "soak")


def serving(
    part: Annotated[str, typer.Option(help="Of " + ", ".join(PARTS) + ", separated by commas.")] = ",".join(PARTS[:-1]),
    script: Annotated[str, typer.Option(help="FEBench's scripts.")] = "Q0,Q1,Q2,Q3,Q4,Q5",
    rows: Annotated[int, typer.Option(help="Rows of each script's request table.", min=2000)] = 1_000_000,
    rates: Annotated[str, typer.Option(help="Requests a second.")] = "10,50,100,200,500",
    seconds: Annotated[float, typer.Option(help="Seconds of each measurement.", min=0.5)] = 20,
    long_rows: Annotated[str, typer.Option(help="Rows of the key of a long window.")] = "1000,10000,1000000",
) -> None:
    """Answers of `sqlext serve` at fixed rates, beside an echo by the same server; needs the extra `serve`.

    Requests come at their time, whether or not those before have been answered, and a latency counts from that time.
    Server and load are one process each. Part `long` and `rivals` ask in this process, one request behind the other.

    A first look, in a minute: python -m benchmarks serving --part scripts --script Q1 --rows 20000 --rates 50
    """
    from benchmarks.serving import suite

    steps = [float(rate) for rate in rates.split(",")]
    counts = [int(count) for count in long_rows.split(",")]
    parts: dict[str, Iterator[str]] = {
        "scripts": suite.scripts(script.split(","), rows, steps, seconds),
        "long": suite.long_windows(counts, tuple(suite.LONG_CALLS), min(seconds, 3)),
        "pushes": suite.pushes(rows, 100, seconds),
        "rivals": suite.rivals(rows),
        "soak": suite.soak(seconds),
    }
    for name in part.split(","):
        if name not in parts:
            raise typer.BadParameter(f"--part {name}: it is one of {', '.join(PARTS)}")
        for told in parts[name]:
            typer.echo(told)
