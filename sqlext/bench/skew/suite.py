"""Suite `skew`: a window over the union of two tables with self-similar keys, by each partitioner.

The keys and times are those of PPOIJ's benchmark (skew_data.py). For each row of a, the suite computes the sum and the
count of the rows of b with its key within an interval around it. Every partitioner sends the rows to the same number of
partitions, and all answers must agree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from sqlext_planner.config import PARTITIONERS
from sqlext_planner.errors import AnalysisError

from sqlext.bench.harness.engines import Closing, Engines
from sqlext.bench.harness.results import CaseResult, Report
from sqlext.bench.harness.suite import Case, Check, Contestant, Suite
from sqlext.bench.skew.contestants import OURS, OURS_SQL, PartitionedWindow, SparkSql
from sqlext.bench.skew.data import SelfSimilarStreams
from sqlext.bench.skew.sql import SPARK_TEXTS

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


@dataclass(frozen=True)
class SkewOptions:
    """The command line options. `rows` are those of each table, `partitions` those of the exchange. With `cluster`,
    Spark is a standalone cluster of so many workers with one core each."""

    rows: int = 5_000_000
    shapes: Sequence[tuple[int, float, int]] = SHAPES
    contestants: Sequence[str] = tuple(CONTESTANTS)
    partitions: int = 8
    cluster: int = 0
    cores: int = 2
    memory: str = "8g"
    data: Path | None = None


def skew_suite(options: SkewOptions, engines: Engines | None = None) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown contestant.
    """
    for name in options.contestants:
        if name not in CONTESTANTS:
            raise AnalysisError(f"there is no contestant '{name}'", help="choose from " + ", ".join(CONTESTANTS))
    engines = engines or Engines(options.cluster or options.cores, options.memory, options.cluster)
    root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
    cases = tuple(skew_case(place, *shape) for place, shape in enumerate(options.shapes, 1))
    files = {case.name: skew_files(root, options.rows, case) for case in cases}
    closing = Closing(engines, None if options.data else root, len(options.contestants))
    contestants: list[Contestant] = []
    for name in options.contestants:
        made = SparkSql if name in SPARK_TEXTS else PartitionedWindow
        contestants.append(made(name, files, options.partitions, engines, closing))
    return Suite(
        name="skew",
        title=f"Self-similar keys: sum and count of 2 x {options.rows:,} rows, {options.partitions} partitions"
        + (f", {options.cluster} workers" if options.cluster else ""),
        parameters={
            "rows": options.rows,
            "partitions": options.partitions,
            "cores": options.cluster or options.cores,
            "cluster": options.cluster,
            "memory": options.memory,
        },
        cases=cases,
        contestants=tuple(contestants),
        ours=OURS,
        x_label="case",
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
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "a.parquet", folder / "b.parquet"
    for number, path in enumerate(paths):
        if not path.exists():
            pq.write_table(streams.table(number), path, row_group_size=_ROW_GROUP)
    return paths


def _details(result: CaseResult, contestant: str) -> Mapping[str, float]:
    found = result.measurement(contestant)
    return {} if found is None else found.details


def _hot_cases(report: Report) -> list[CaseResult]:
    return [result for result in report.cases if result.case.name.startswith(_HOT)]


def _even_tasks(report: Report) -> list[Check]:
    """The slowest task of the operator against the average."""
    return [
        Check(f"slowest task at most 1.3x the average, {result.case.name}", found <= 1.3, f"{found:.2f}x")
        for result in _hot_cases(report)
        if (found := _details(result, report.ours).get("max/avg")) is not None
    ]


def _near_uniform(report: Report) -> list[Check]:
    uniform = next((r.seconds(report.ours) for r in report.cases if r.case.name.startswith(_UNIFORM)), None)
    return [
        Check(
            f"at most 1.25x the time of uniform keys, {result.case.name}",
            seconds <= 1.25 * uniform,
            f"{seconds / uniform:.2f}x",
        )
        for result in _hot_cases(report)
        if uniform is not None and (seconds := result.seconds(report.ours)) is not None
    ]


def _critical_path(report: Report) -> list[Check]:
    """The slowest task of ours against that of KP-OIJ."""
    checks = []
    for result in _hot_cases(report):
        ours, theirs = (_details(result, name).get("slowest task") for name in (report.ours, "key"))
        if ours is not None and theirs is not None:
            name = f"slowest task at most half of KP-OIJ's, {result.case.name}"
            checks.append(Check(name, 2 * ours <= theirs, f"{ours / theirs:.2f}x"))
    return checks


def _predicted(report: Report) -> list[Check]:
    """What EXPLAIN expects of ours against what was measured."""
    checks = []
    for result in _hot_cases(report):
        found = _details(result, report.ours)
        if {"expected", "max/avg"} <= found.keys():
            off = found["expected"] / found["max/avg"] - 1
            name = f"expected max/avg within 15 % of the measured, {result.case.name}"
            checks.append(Check(name, abs(off) <= 0.15, f"{found['expected']:.2f} against {found['max/avg']:.2f}"))
    return checks
