"""The targets of the suite `interval`, as statements about a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from benchmarks.harness.checks import at_least, at_most, best_ratio, cases, timed
from benchmarks.harness.results import CaseResult, Report
from benchmarks.harness.suite import Check

DUCKDB = ("duckdb", "duckdb-2")
GIB = 1 << 30


def _faster(
    report: Report, chosen: Iterable[CaseResult], factor: float, what: str, names: Iterable[str]
) -> Iterator[Check]:
    """Ours against the fastest of the named contestants; nothing if one side has no time."""
    wanted = f"at least {factor:g}x as fast as" if factor > 1 else "at least as fast as"
    for result in chosen:
        if (best := best_ratio(report, result, names)) is not None:
            yield at_least(f"{wanted} {what}, {result.case.name}", best[0], factor, f" ({best[1]})")


def kernel_over_duckdb(report: Report) -> Iterator[Check]:
    """The kernel alone at least 4x DuckDB on one thread, at 50 pairs a row."""
    return _faster(report, cases(report, set="kernel", relation="overlap", factor=50), 4, "DuckDB", DUCKDB)


def nested_loop(report: Report) -> Iterator[Check]:
    """At least 100x Spark's nested loop at 100,000 x 100,000 rows."""
    return _faster(report, cases(report, set="nested"), 100, "Spark's nested loop", ("spark",))


def hand_written_bins(report: Report) -> Iterator[Check]:
    """At least 3x the hand-written bins at a million rows."""
    return _faster(report, cases(report, set="large"), 3, "hand-written bins", ("spark-bins",))


def not_slower_than_duckdb(report: Report) -> Iterator[Check]:
    """At least as fast as DuckDB for the count of 50M pairs and for git's self overlap."""
    chosen = [*cases(report, set="large", query="count", factor=50), *cases(report, data="git")]
    return _faster(report, chosen, 1, "DuckDB", DUCKDB)


def exons(report: Report) -> Iterator[Check]:
    """Faster than DuckDB and Polars on exons x fBrain; a separate line for DuckDB with prefer_range_joins."""
    others = (("DuckDB", DUCKDB), ("DuckDB with prefer_range_joins", ("duckdb-range",)), ("Polars", ("polars",)))
    for what, names in others:
        yield from _faster(report, cases(report, data="exons-fbrain"), 1, what, names)


def growth(report: Report) -> Iterator[Check]:
    """Four times the rows cost at most 4.6 times the time, at a constant number of pairs a row."""
    for query in ("pairs", "count"):
        times = timed(report, cases(report, set="growth", query=query))
        for (small, fast), (large, slow) in pairwise((result.case.x, seconds) for result, seconds in times):
            name = f"{large:,.0f} rows at most {1.15 * large / small:.1f}x the time of {small:,.0f}, {query}"
            yield at_most(name, slow / fast, 1.15 * large / small)


def without_enumerating(report: Report) -> Iterator[Check]:
    """SEMI, ANTI and COUNT of a hundred times the pairs take at most twice the time."""
    for query in ("count", "semi", "anti"):
        found = timed(report, cases(report, set="large", query=query))
        times = {result.case.parameters["factor"]: seconds for result, seconds in found}
        if {5, 500} <= times.keys():
            yield at_most(f"{query}: 500 pairs a row at most 2x the time of 5", times[500] / times[5], 2)


def memory(report: Report) -> Iterator[Check]:
    """No Python process above 4 GiB."""
    for result in cases(report, set="memory"):
        for item in result.measurements:
            if item.seconds is not None and (peak := item.peak("peak_process")):
                name = f"no Python process above 4 GiB, {result.case.name}"
                yield Check(name, peak < 4 * GIB, f"{peak / GIB:.2f} GiB")


def known_numbers(report: Report) -> Iterator[Check]:
    """The known right number of pairs of the real data."""
    for result in cases(report, set="real"):
        expected, item = int(result.case.parameters["expected"]), result.measurement(report.ours)
        if item is not None and item.rows is not None:
            yield Check(f"{expected:,} pairs, {result.case.name}", item.rows == expected, f"{item.rows:,}")


CHECKS = (
    kernel_over_duckdb,
    nested_loop,
    hand_written_bins,
    not_slower_than_duckdb,
    exons,
    growth,
    without_enumerating,
    memory,
    known_numbers,
)
