"""Suite `skew`: a window over the union of two tables with self-similar keys, by each partitioner.

The keys and times are those of PPOIJ's benchmark (data.py). For each row of a, the suite computes the sum and the
count of the rows of b with its key within an interval around it. Every partitioner sends the rows to the same number of
partitions, and all answers must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from sqlext_planner.config import PARTITIONERS

from benchmarks.harness.checks import at_most
from benchmarks.harness.data import stored
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import CaseResult, Report
from benchmarks.harness.suite import Case, Check, Suite
from benchmarks.skew.contestants import OURS, OURS_SQL, skew_contestant
from benchmarks.skew.data import SelfSimilarStreams
from benchmarks.skew.sql import SPARK_TEXTS

CONTESTANTS = {
    OURS: "Session.sql; the partitioner is the one that the planner chooses",
    **{name: f"Session.sql with the partitioner {name}" for name in PARTITIONERS},
    **{name: text.what for name, text in SPARK_TEXTS.items()},
}
#: The pairs of keys and skew that are measured, and the half of the interval in seconds.
SHAPES = ((50, 0.5, 30), (1, 0.5, 10), (5, 0.35, 10), (50, 0.35, 10), (50, 0.2, 30), (1000, 0.2, 30))
#: The targets: with one key of 58 % of the rows.
_HOT = "50 keys, skew 0.2"
_UNIFORM = "50 keys, skew 0.5"
_ROW_GROUP = 250_000


def _shapes(text: str, flag: str) -> list[tuple[int, float, int]]:
    """`50:0.2:30, 1:0.5:10` -> [(50, 0.2, 30), (1, 0.5, 10)]. Raises BadParameter for anything else."""
    try:
        parts = [part.split(":") for part in text.split(",")]
        found = [(int(keys), float(share), int(seconds)) for keys, share, seconds in parts]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a list like 50:0.2:30", param_hint=flag) from error
    if any(keys < 1 or not 0 < share <= 0.5 or seconds < 0 for keys, share, seconds in found):
        raise typer.BadParameter("at least one key, and a skew above 0 and at most 0.5", param_hint=flag)
    return found


def shapes_option() -> Any:
    """The shapes on the command line."""
    help = "Keys, skew (0.5: even) and half of the interval in seconds: 50:0.2:30; with commas."
    return option(SHAPES, help, read=_shapes, shown=",".join(":".join(map(str, shape)) for shape in SHAPES))


@dataclass(frozen=True)
class SkewOptions(Options):
    """With `cluster`, Spark is a standalone cluster of so many workers with one core each."""

    rows: int = option(5_000_000, "Rows of each of the two tables.", min=1, scaled=True)
    shapes: Sequence[tuple[int, float, int]] = shapes_option()
    partitions: int = option(8, "Partitions of the exchange.", min=2)
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)
    cluster: int = option(
        0,
        "Run on a Spark standalone cluster of so many workers, started for it on this machine, with one core "
        "each; 0: in one process.",
        min=0,
    )


def skew_suite(options: SkewOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown contestant.
    """
    check("contestant", options.contestants, CONTESTANTS)
    cores = options.cluster or options.cores
    place = Workplace(options, engines or Engines(cores, options.memory, options.cluster))
    cases = tuple(skew_case(number, *shape) for number, shape in enumerate(options.shapes, 1))
    files = {case.name: skew_files(place.root, options.rows, case) for case in cases}
    return Suite(
        name="skew",
        title=f"Self-similar keys: sum and count of 2 x {options.rows:,} rows, {options.partitions} partitions"
        + (f", {options.cluster} workers" if options.cluster else ""),
        parameters={**options.shown("rows", "partitions", "cores", "cluster", "memory"), "cores": cores},
        cases=cases,
        contestants=tuple(
            skew_contestant(name, files, options.partitions, place.engines) for name in options.contestants
        ),
        ours=OURS,
        x_label="case",
        close=place.close,
        checks=(_even_tasks, _near_uniform, _critical_path, _predicted),
        facts={OURS: OURS_SQL, **{name: text.text for name, text in SPARK_TEXTS.items()}},
    )


def skew_case(place: int, keys: int, skew: float, seconds: int) -> Case:
    """One of the shapes."""
    return Case(
        f"{keys} keys, skew {skew:g}, ±{seconds} s",
        float(place),
        {"keys": keys, "skew": skew, "seconds": seconds},
        tick=f"{keys}, {skew:g}",
    )


def skew_files(root: Path, rows: int, case: Case) -> tuple[Path, Path]:
    """The files of both tables, a.parquet and b.parquet in a folder; those that are there already are kept."""
    streams = SelfSimilarStreams(rows, int(case.parameters["keys"]), float(case.parameters["skew"]))
    folder = root / f"skew-{rows}-{case.parameters['keys']}-{case.parameters['skew']}"
    first = stored(folder / "a.parquet", lambda: streams.table(0), _ROW_GROUP)
    return first, stored(folder / "b.parquet", lambda: streams.table(1), _ROW_GROUP)


def _hot_cases(report: Report) -> list[CaseResult]:
    return [result for result in report.cases if result.case.name.startswith(_HOT)]


def _even_tasks(report: Report) -> Iterator[Check]:
    """The slowest task of the operator against the average."""
    for result in _hot_cases(report):
        if (found := result.detail(report.ours, "max/avg")) is not None:
            yield at_most(f"slowest task at most 1.3x the average, {result.case.name}", found, 1.3)


def _near_uniform(report: Report) -> Iterator[Check]:
    uniform = next((r.seconds(report.ours) for r in report.cases if r.case.name.startswith(_UNIFORM)), None)
    for result in _hot_cases(report):
        if uniform is not None and (seconds := result.seconds(report.ours)) is not None:
            yield at_most(f"at most 1.25x the time of uniform keys, {result.case.name}", seconds / uniform, 1.25)


def _critical_path(report: Report) -> Iterator[Check]:
    """The slowest task of ours against that of KP-OIJ."""
    for result in _hot_cases(report):
        ours, theirs = (result.detail(name, "slowest task") for name in (report.ours, "key"))
        if ours is not None and theirs is not None:
            yield at_most(f"slowest task at most half of KP-OIJ's, {result.case.name}", ours / theirs, 0.5)


def _predicted(report: Report) -> Iterator[Check]:
    """What EXPLAIN expects of ours against what was measured."""
    for result in _hot_cases(report):
        expected, found = (result.detail(report.ours, name) for name in ("expected", "max/avg"))
        if expected is not None and found is not None:
            name = f"expected max/avg within 15 % of the measured, {result.case.name}"
            yield Check(name, abs(expected / found - 1) <= 0.15, f"{expected:.2f} against {found:.2f}")
