"""What the targets of the suites have in common: which cases they are about, and how figures are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.harness.results import CaseResult, Report
from benchmarks.harness.suite import Check, Number


def cases(report: Report, **parameters: Number | str) -> Iterator[CaseResult]:
    """The cases with these parameters."""
    for result in report.cases:
        if parameters.items() <= dict(result.case.parameters).items():
            yield result


def timed(report: Report, results: Iterable[CaseResult] | None = None) -> Iterator[tuple[CaseResult, float]]:
    """The cases that ours has seconds for, and these."""
    for result in report.cases if results is None else results:
        if (seconds := result.seconds(report.ours)) is not None:
            yield result, seconds


def best_ratio(report: Report, result: CaseResult, peers: Iterable[str]) -> tuple[float, str] | None:
    """The least number of times that ours is as fast as one of these, and which one; None if one side has no time."""
    found = ((ratio, name) for name in peers if (ratio := report.ratio(result, name)) is not None)
    return min(found, default=None)


def at_least(name: str, found: float, wanted: float, more: str = "") -> Check:
    """A factor that is large enough."""
    return Check(name, found >= wanted, f"{found:.2f}x{more}")


def at_most(name: str, found: float, wanted: float) -> Check:
    """A factor that is small enough."""
    return Check(name, found <= wanted, f"{found:.2f}x")
