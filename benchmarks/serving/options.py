"""`python -m benchmarks serving`: its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.harness.options import WHO, Options, option
from benchmarks.harness.runner import Limits

#: Sets of cases; the soak runs by its name only.
SETS = ("scripts", "rivals", "lookup", "long", "pushes", "warm", "soak")
CONTESTANTS = ("ours", "echo", "duckdb", "redis", "feast")


@dataclass(frozen=True, kw_only=True)
class ServingOptions(Options):
    """The command line options."""

    cases: Sequence[str] = option(SETS[:-1], "Of " + ", ".join(SETS) + ".")
    scripts: Sequence[str] = option(("Q0", "Q1", "Q2", "Q3", "Q4", "Q5"), "FEBench's scripts.")
    rows: int = option(1_000_000, "Rows of each script's request table.", min=2000, scaled=True)
    users: int = option(100_000, "Rows of the table of `lookup`.", min=10, scaled=True)
    rates: Sequence[int] = option((10, 50, 100, 200, 500), "Requests a second.")
    seconds: float = option(10.0, "Seconds of a run.", min=0.2)
    long_rows: Sequence[int] = option((1_000, 1_000_000), "Rows of the key of a long window.")
    functions: Sequence[str] = option(("all",), "Functions of long windows.")
    pushers: int = option(1, "Clients that push at the same time.", min=1)
    push_rate: int = option(100, "Requests a second beside pushes.", min=1)
    warm_rows: Sequence[int] = option((10_000_000,), "Rows of a warm start.", scaled=True)
    minutes: int = option(30, "Minutes of the soak.", min=1)
    minute: float = option(60.0, "Seconds of one of them; less for a trial, in which data are as old.", min=0.2)
    contestants: Sequence[str] = option(CONTESTANTS, WHO)
    peers: Path = option(Path(".peers"), "Where `make peers` put the peers.")

    #: Longer runs, a warm start or the soak, are measured once.
    LIMITS: ClassVar[Limits | None] = Limits(cap_seconds=30.0, limit_seconds=7200.0)
