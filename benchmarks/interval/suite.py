"""Suite `interval`: interval joins, ours against DuckDB, Polars, plain Spark and hand-written bins; kernels alone.

The cases are in `cases`, the statements in `sql`, the targets in `checks`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from sqlext_operators.interval_join.relations import RELATIONS

from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Told, Workplace, check, untold
from benchmarks.harness.statements import DuckSql, SparkSql
from benchmarks.harness.suite import Contestant, EitherContestant, Suite
from benchmarks.interval.bins import BinWidth
from benchmarks.interval.cases import SETS, SWEEPS, CaseList
from benchmarks.interval.checks import CHECKS
from benchmarks.interval.contestants import JoinStatements, KernelContestant, OursContestant
from benchmarks.interval.options import CONTESTANTS, QUERIES, IntervalOptions
from benchmarks.interval.peers import PEERS, PeerContestant, interpreter
from benchmarks.interval.sql import SHORT_NAMES
from benchmarks.storage import storage_checks, storage_names, storage_place, stored_contestant


def interval_suite(options: IntervalOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Contestants whose environment is missing are left out, and the suite reports it. Raises AnalysisError for an unknown
    set, relation, query or contestant.
    """
    check("set", options.sets, SETS)
    check("relation", options.relations, known_relations())
    check("query", options.queries, QUERIES)
    check("contestant", options.contestants, CONTESTANTS)
    place = storage_place(options, engines)
    programs = {name: interpreter(name, options.peers) for name in options.contestants if name in PEERS}
    missing = {name: program for name, program in programs.items() if not program.exists()}
    asked = [name for name in CONTESTANTS if name in options.contestants and name not in missing]
    asked += storage_names(options.storage)
    found = CaseList(options, place.root, asked).build()
    taking_part = [name for name in asked if any(case.has(name) for case in found.cases)]
    statements = JoinStatements(found.joins, place.engines.cores, BinWidth(options.bin_width))
    bin_widths = "chosen for each case" if options.bin_width is None else options.bin_width
    return Suite(
        name="interval",
        title="Interval joins",
        parameters={
            **options.shown("sets", "rows", "lengths", "scale", "cores", "memory"),
            "bin_widths": bin_widths,
        },
        cases=tuple(found.cases),
        contestants=tuple(_contestant(name, options, found, place, statements) for name in taking_part),
        ours="ours",
        x_label="rows of each side",
        close=place.close,
        checks=(*CHECKS, storage_checks),
        facts=_facts(found),
        left_out=(
            *(f"{name}: no environment at {path.parent.parent} (make peers)" for name, path in missing.items()),
            *found.left_out,
        ),
        speedup=True,
    )


def known_relations() -> Collection[str]:
    """The values that `--relations` accepts: the short names, and every name of the table of relations."""
    return (*SHORT_NAMES, *RELATIONS)


def _contestant(
    name: str, options: IntervalOptions, found: CaseList, place: Workplace, statements: JoinStatements
) -> Contestant:
    engines = place.engines
    if name in PEERS:
        return PeerContestant(name, found.joins, options.peers, options.cores)
    if name in SWEEPS:
        return KernelContestant(name, name, found.joins)
    if name.startswith("ours-"):
        return stored_contestant(name, engines, partial(statements.of, "ours"), place.root, options.bucket)
    statement = partial(statements.of, name)
    if name != "ours":
        return (DuckSql if name.startswith("duckdb") else SparkSql)(name, engines, statement)
    kernels = [case for case, join in found.joins.items() if join.kernel]
    kernel = KernelContestant(name, "slices", found.joins)
    return EitherContestant(name, kernels, kernel, OursContestant(name, engines, statement))


def _facts(found: CaseList) -> dict[str, str]:
    """The statements of a case of each relation and query."""
    facts = {}
    for join in found.joins.values():
        text = join.text
        name = f"{text.relation} {text.query}" + (" by key" if text.keyed else "")
        facts[f"{name}: ours"] = text.ours(("l", "r"))
        facts[f"{name}: inequalities"] = text.plain(("l", "r"))
        if text.bins_apply:
            facts[f"{name}: bins"] = text.bins(("l", "r"), found.options.bin_width or 1024)
    return facts
