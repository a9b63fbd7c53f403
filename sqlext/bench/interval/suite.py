"""Suite `interval`: interval joins, ours against DuckDB, Polars, plain Spark and hand-written bins; kernels alone.

The cases are in `interval_cases`, the statements in `interval_sql`, the targets in `interval_checks`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from sqlext_planner.errors import AnalysisError

from sqlext.bench.harness.engines import Closing, Engines
from sqlext.bench.harness.suite import Contestant, EitherContestant, Suite
from sqlext.bench.interval.bins import BinWidth
from sqlext.bench.interval.cases import SETS, CaseList
from sqlext.bench.interval.checks import CHECKS
from sqlext.bench.interval.contestants import BinsContestant, DuckContestant, OursContestant, PlainContestant
from sqlext.bench.interval.kernels import DuckKernelContestant, KernelContestant
from sqlext.bench.interval.options import CONTESTANTS, IntervalOptions
from sqlext.bench.interval.peers import PEERS, PeerContestant, interpreter
from sqlext.bench.interval.sql import SHORT_NAMES

QUERIES = ("pairs", "count", "semi", "anti")


def interval_suite(options: IntervalOptions, engines: Engines | None = None) -> Suite:
    """The suite; its data are written at once, the engines start with the first run.

    Contestants whose environment is missing are left out, and the suite reports it. Raises AnalysisError for an unknown
    set, relation, query or contestant.
    """
    _check("set", options.sets, SETS)
    _check("relation", options.relations, known_relations())
    _check("query", options.queries, QUERIES)
    _check("contestant", options.contestants, CONTESTANTS)
    engines = engines or Engines(options.cores, options.memory)
    root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
    missing = [name for name in options.contestants if name in PEERS and not interpreter(name, options.peers).exists()]
    found = CaseList(options, root, [n for n in CONTESTANTS if n in options.contestants and n not in missing]).build()
    taking_part = [name for name in found.contestants if any(case.has(name) for case in found.cases)]
    closing = Closing(engines, None if options.data else root, 0)
    contestants = tuple(_contestant(name, options, found, engines, closing) for name in taking_part)
    return Suite(
        name="interval",
        title="Interval joins",
        parameters={
            "sets": list(options.sets),
            "rows": list(options.rows),
            "lengths": list(options.lengths),
            "scale": options.scale,
            "cores": options.cores,
            "memory": options.memory,
            "bin_widths": "chosen for each case" if options.bin_width is None else options.bin_width,
        },
        cases=tuple(found.cases),
        contestants=contestants,
        ours="ours",
        x_label="rows of each side",
        checks=CHECKS,
        facts=_facts(found),
        left_out=(
            *(
                f"{name}: no environment at {interpreter(name, options.peers).parent.parent} (make peers)"
                for name in missing
            ),
            *found.left_out,
        ),
        speedup=True,
    )


def known_relations() -> Collection[str]:
    """The values that `--relations` accepts: the short names, and every name of the table of relations."""
    from sqlext_planner.periods.relations import RELATIONS

    return (*SHORT_NAMES, *RELATIONS)


def _check(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise AnalysisError(f"there is no {what} '{name}'", help="choose from " + ", ".join(known))


def _contestant(name: str, options: IntervalOptions, found: CaseList, engines: Engines, closing: Closing) -> Contestant:
    kernels = frozenset(found.kernels)
    if name in PEERS:
        return PeerContestant(name, found.joins, options.peers, options.cores, kernels)
    if name in ("join-by-s", "lazy-join-by-s"):
        return KernelContestant(name, name, found.joins)
    closing.left += 1
    if name == "ours":
        whole = OursContestant(name, found.joins, engines, closing)
        return EitherContestant(name, kernels, KernelContestant(name, "slices", found.joins), whole)
    if name == "duckdb":
        closing.left += 1
        kernel = DuckKernelContestant(name, found.joins, engines, closing)
        return EitherContestant(name, kernels, kernel, DuckContestant(name, found.joins, engines, closing))
    if name == "duckdb-range":
        return DuckContestant(name, found.joins, engines, closing, range_joins=True)
    if name == "spark-bins":
        return BinsContestant(name, found.joins, engines, closing, width=BinWidth(options.bin_width))
    return PlainContestant(name, found.joins, engines, closing)


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
