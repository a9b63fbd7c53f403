"""Suite `features`: FEBench's feature scripts Q0, Q1 and Q3, ours against the best plain Spark SQL for them.

The scripts and the Spark SQL are files in `sqlext/bench/sql/features`; docs/benchmarks.md explains how it was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from sqlext.bench.features_contestants import ASOF_JOIN, SEGMENT_TREE, FeatureContestant, Tables, script
from sqlext.bench.features_data import CovidTables, TaxiTables, stored_tables, write_tables
from sqlext.bench.features_shop import ShopTables
from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.options import WHO, Options, Told, Workplace, check, option, untold
from sqlext.bench.harness.results import Report
from sqlext.bench.harness.suite import Case, Check, Suite


class Generator(Protocol):
    """Makes a script's tables for a number of rows."""

    def __call__(self, rows: int) -> GeneratedTables:
        """The generator for that many rows of the FROM table."""


class GeneratedTables(Protocol):
    """Tables in memory."""

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""


#: What each script is about, the generator of its tables, their names, and how much faster than Spark it should be.
SCRIPTS: Mapping[str, tuple[str, Generator, tuple[str, ...], float]] = {
    "Q0": ("taxi trips", TaxiTables, ("train",), 1.0),
    "Q1": ("cases by day", CovidTables, ("train",), 1.0),
    "Q3": ("shop", ShopTables, ShopTables.NAMES, 3.0),
}
CONTESTANTS: Mapping[str, Mapping[str, str]] = {
    "ours": {},
    "spark": {ASOF_JOIN: "true", SEGMENT_TREE: "false"},
    "spark-segment-tree": {ASOF_JOIN: "true", SEGMENT_TREE: "true"},
}


@dataclass(frozen=True)
class FeaturesOptions(Options):
    """What the command line sets."""

    rows: int = option(1_000_000, "Rows of each script's FROM table.", min=1, scaled=True)
    scripts: Sequence[str] = option(tuple(SCRIPTS), "Which of FEBench's scripts.")
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)


def features_suite(options: FeaturesOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Raises AnalysisError for an unknown script or contestant.
    """
    check("script", options.scripts, SCRIPTS)
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    tables = {name: _write(name, options.rows, place.root) for name in options.scripts}
    return Suite(
        name="features",
        title=f"FEBench's feature scripts, {options.rows:,} rows",
        parameters=options.shown("rows", "scripts", "cores", "memory"),
        cases=tuple(
            Case(f"{name} {SCRIPTS[name][0]}", float(name[1:]) + 1, {"script": name, "rows": options.rows})
            for name in options.scripts
        ),
        contestants=tuple(
            FeatureContestant(name, "" if name == "ours" else "spark_", tables, place.engines, CONTESTANTS[name])
            for name in options.contestants
        ),
        ours="ours",
        x_label="script (Q0: 1, Q1: 2, Q3: 4)",
        close=place.close,
        checks=(_faster_than_spark,),
        facts={
            f"{prefix}{name}": ";\n".join(script(prefix + name))
            for name in options.scripts
            for prefix in ("", "spark_")
        },
    )


def _write(name: str, rows: int, root: Path) -> Tables:
    """The script's tables below `root`, generated if they are missing."""
    _, generator, names, _ = SCRIPTS[name]
    folder = root / f"febench-{name}-{rows}"
    return stored_tables(names, folder) or write_tables(generator(rows).tables(), folder)


def _faster_than_spark(report: Report) -> list[Check]:
    """The best of the Spark contestants against ours, for each script."""
    checks = []
    for result in report.cases:
        ours = result.seconds(report.ours)
        others = [m.seconds for m in result.measurements if m.contestant != report.ours and m.seconds is not None]
        if ours is not None and others:
            factor = SCRIPTS[str(result.case.parameters["script"])][3]
            ratio = min(others) / ours
            wanted = "never slower" if factor == 1 else f"at least {factor:g}x faster"
            checks.append(Check(f"{wanted} than plain Spark, {result.case.name}", ratio >= factor, f"{ratio:.2f}x"))
    return checks
