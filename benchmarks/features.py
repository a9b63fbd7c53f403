"""Suite `features`: FEBench's feature scripts Q0 to Q5, ours against the best plain Spark SQL for them.

The scripts and the Spark SQL are files in `benchmarks/sql/features`; benchmarks/README.md explains how it was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from benchmarks.features_bank import BankTables
from benchmarks.features_contestants import (
    ASOF_JOIN,
    SEGMENT_TREE,
    FeatureContestant,
    FloorContestant,
    OursContestant,
    Tables,
    script,
)
from benchmarks.features_data import CovidTables, TaxiTables
from benchmarks.features_loans import LoanTables
from benchmarks.features_shop import ShopTables
from benchmarks.features_values import stored_tables, write_tables
from benchmarks.features_wind import WindTables
from benchmarks.harness.checks import at_most, best_ratio, timed
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import WHO, Options, Told, Workplace, check, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.suite import Case, Check, Suite


class Generator(Protocol):
    """Makes a script's tables for a number of rows."""

    def __call__(self, rows: int) -> GeneratedTables:
        """The generator for that many rows of the FROM table."""


class GeneratedTables(Protocol):
    """Tables in memory."""

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""


@dataclass(frozen=True)
class Script:
    """What a script is about, the generator of its tables, their names, and which share of plain Spark's time it may
    take at most. Without windows, Spark's segment tree is nothing else than Spark. `settings` are for all contestants.
    """

    about: str
    generator: Generator
    tables: tuple[str, ...]
    share: float
    has_windows: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def contestants(self) -> tuple[str, ...]:
        """Those that take part."""
        return tuple(name for name in CONTESTANTS if self.has_windows or name != WITH_TREE)


#: By default Spark compiles loops over 100 columns at most. Q5 has 661. Measured with 20,000 rows, other work beside:
#: plain Spark takes 12 to 35 s, 5 s with this; ours 14 s, 11 s with this.
WIDE = {"spark.sql.codegen.maxFields": "2000"}
SCRIPTS: Mapping[str, Script] = {
    "Q0": Script("taxi trips", TaxiTables, ("train",), 0.65),
    "Q1": Script("cases by day", CovidTables, ("train",), 0.4),
    "Q2": Script("wind power", WindTables, WindTables.NAMES, 0.7, has_windows=False),
    "Q3": Script("shop", ShopTables, ShopTables.NAMES, 0.15),
    "Q4": Script("loans", LoanTables, LoanTables.NAMES, 0.7),
    "Q5": Script("bank", BankTables, BankTables.NAMES, 0.7, has_windows=False, settings=WIDE),
}
WITH_TREE = "spark-segment-tree"
#: The contestants in plain Spark SQL, and their settings.
NATIVE: Mapping[str, Mapping[str, str]] = {
    "spark": {ASOF_JOIN: "true", SEGMENT_TREE: "false"},
    WITH_TREE: {ASOF_JOIN: "true", SEGMENT_TREE: "true"},
}
CONTESTANTS = ("ours", *NATIVE, "floor")
#: No Python process may hold more, in bytes.
MOST_BYTES = int(1.5 * (1 << 30))


@dataclass(frozen=True)
class FeaturesOptions(Options):
    """What the command line sets."""

    rows: int = option(1_000_000, "Rows of each script's FROM table.", min=1, scaled=True)
    scripts: Sequence[str] = option(tuple(SCRIPTS), "Which of FEBench's scripts.")
    contestants: Sequence[str] = option(CONTESTANTS, WHO)


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
        cases=tuple(_case(name, options.rows) for name in options.scripts),
        contestants=tuple(_contestant(name, tables, place.engines) for name in options.contestants),
        ours="ours",
        x_label="script (Q0: 1, ..., Q5: 6)",
        close=place.close,
        checks=(_share_of_spark, _small_processes),
        facts={
            f"{prefix}{name}": ";\n".join(script(prefix + name))
            for name in options.scripts
            for prefix in ("", "spark_")
        },
    )


def _case(name: str, rows: int) -> Case:
    known = SCRIPTS[name]
    return Case(
        f"{name} {known.about}",
        float(name[1:]) + 1,
        {"script": name, "rows": rows},
        contestants=known.contestants,
    )


def _contestant(name: str, tables: Mapping[str, Tables], engines: Engines) -> FeatureContestant:
    of_scripts = {script: SCRIPTS[script].settings for script in tables}
    match name:
        case "ours":
            return OursContestant(name, "", tables, engines, of_scripts)
        case "floor":
            return FloorContestant(name, "", tables, engines, of_scripts)
    return FeatureContestant(name, "spark_", tables, engines, of_scripts, NATIVE[name])


def _write(name: str, rows: int, root: Path) -> Tables:
    """The script's tables below `root`, generated if they are missing."""
    known = SCRIPTS[name]
    folder = root / f"febench-{name}-{rows}"
    paths = stored_tables(known.tables, folder) or write_tables(known.generator(rows).tables(), folder)
    # What is measured is the largest process, and this is one (loans, 200,000 rows: 735 MB are kept, 155 after this).
    pa.default_memory_pool().release_unused()
    return paths


def _share_of_spark(report: Report) -> list[Check]:
    """Ours against the best of the contestants in plain Spark SQL, for each script."""
    checks = []
    for result, _ in timed(report):
        best = best_ratio(report, result, NATIVE)
        if best is not None:
            share = SCRIPTS[str(result.case.parameters["script"])].share
            name = f"at most {share:g}x the time of plain Spark, {result.case.name}"
            checks.append(at_most(name, 1 / best[0], share))
    return checks


def _small_processes(report: Report) -> list[Check]:
    """The largest Python process of ours, for each script."""
    found = ((result, result.measurement(report.ours)) for result, _ in timed(report))
    peaks = ((result, item.peak("peak_process")) for result, item in found if item is not None)
    return [
        Check(f"no Python process above 1.5 GiB, {result.case.name}", peak <= MOST_BYTES, f"{peak / (1 << 30):.2f} GiB")
        for result, peak in peaks
    ]
