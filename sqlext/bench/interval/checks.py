"""The targets of the suite `interval`, as statements about a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from sqlext.bench.harness.results import CaseResult, Report
from sqlext.bench.harness.suite import Check

DUCKDB = ("duckdb", "duckdb-2")
GIB = 1 << 30


def kernel_over_duckdb(report: Report) -> list[Check]:
    """The kernel alone at least 4x DuckDB on one thread, at 50 pairs a row."""
    return [
        check
        for result in _cases(report, set="kernel", relation="overlap", factor=50)
        for check in _at_least(report, result, 4, "DuckDB", DUCKDB)
    ]


def nested_loop(report: Report) -> list[Check]:
    """At least 100x Spark's nested loop at 100,000 x 100,000 rows."""
    return [
        check
        for result in _cases(report, set="nested")
        for check in _at_least(report, result, 100, "Spark's nested loop", ("spark",))
    ]


def hand_written_bins(report: Report) -> list[Check]:
    """At least 3x the hand-written bins at a million rows."""
    return [
        check
        for result in _cases(report, set="large")
        for check in _at_least(report, result, 3, "hand-written bins", ("spark-bins",))
    ]


def not_slower_than_duckdb(report: Report) -> list[Check]:
    """At least as fast as DuckDB for the count of 50M pairs and for git's self overlap."""
    chosen = [*_cases(report, set="large", query="count", factor=50), *_cases(report, data="git")]
    return [check for result in chosen for check in _at_least(report, result, 1, "DuckDB", DUCKDB)]


def exons(report: Report) -> list[Check]:
    """Faster than DuckDB and Polars on exons x fBrain; a separate line for DuckDB with prefer_range_joins."""
    others = (("DuckDB", DUCKDB), ("DuckDB with prefer_range_joins", ("duckdb-range",)), ("Polars", ("polars",)))
    return [
        check
        for result in _cases(report, data="exons-fbrain")
        for what, names in others
        for check in _at_least(report, result, 1, what, names)
    ]


def growth(report: Report) -> list[Check]:
    """Four times the rows cost at most 4.6 times the time, at a constant number of pairs a row."""
    checks = []
    for query in ("pairs", "count"):
        times = [(r.case.x, t) for r in _cases(report, set="growth", query=query) if (t := r.seconds(report.ours))]
        for (small, fast), (large, slow) in pairwise(times):
            name = f"{large:,.0f} rows at most {1.15 * large / small:.1f}x the time of {small:,.0f}, {query}"
            checks.append(Check(name, slow / fast <= 1.15 * large / small, f"{slow / fast:.2f}x"))
    return checks


def without_enumerating(report: Report) -> list[Check]:
    """SEMI, ANTI and COUNT of a hundred times the pairs take at most twice the time."""
    checks = []
    for query in ("count", "semi", "anti"):
        times = {r.case.parameters["factor"]: r.seconds(report.ours) for r in _cases(report, set="large", query=query)}
        few, many = times.get(5), times.get(500)
        if few and many:
            name = f"{query}: 500 pairs a row at most 2x the time of 5"
            checks.append(Check(name, many / few <= 2, f"{many / few:.2f}x"))
    return checks


def memory(report: Report) -> list[Check]:
    """No Python process above 4 GiB."""
    return [
        Check(f"no Python process above 4 GiB, {result.case.name}", peak < 4 * GIB, f"{peak / GIB:.2f} GiB")
        for result in _cases(report, set="memory")
        for item in result.measurements
        if item.seconds is not None and (peak := item.peak("peak_process"))
    ]


def known_numbers(report: Report) -> list[Check]:
    """The known right number of pairs of the real data."""
    return [
        Check(f"{expected:,} pairs, {result.case.name}", item.rows == expected, f"{item.rows:,}")
        for result in _cases(report, set="real")
        if (expected := int(result.case.parameters["expected"]))
        for item in result.measurements
        if item.contestant == report.ours and item.rows is not None
    ]


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


def _cases(report: Report, **parameters: int | str) -> Iterator[CaseResult]:
    """The cases with these parameters."""
    for result in report.cases:
        if all(result.case.parameters.get(name) == value for name, value in parameters.items()):
            yield result


def _at_least(report: Report, result: CaseResult, factor: float, what: str, names: Iterable[str]) -> list[Check]:
    """Ours against the fastest of the named contestants; nothing if one side has no time."""
    ratios = [(ratio, name) for name in names if (ratio := report.ratio(result, name)) is not None]
    if not ratios:
        return []
    ratio, name = min(ratios)
    wanted = f"at least {factor:g}x as fast as" if factor > 1 else "at least as fast as"
    return [Check(f"{wanted} {what}, {result.case.name}", ratio >= factor, f"{ratio:.2f}x ({name})")]
