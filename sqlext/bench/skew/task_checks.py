"""The targets of the suite `skew-tasks`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.harness.checks import at_most
from sqlext.bench.harness.results import CaseResult, Report
from sqlext.bench.harness.suite import Check

#: The case of the target: one key with 58 % of the rows, eight partitions.
_HOT, _PARTITIONS = "50 keys, skew 0.2", 8
#: How far the planner's expectation may be off.
_OFF = 0.15
#: A run's series of one figure: the rows to be moved by the partitioner's closed formula.
FORMULA = "moved by the formula"


def _shapes(report: Report) -> Iterator[tuple[str, list[CaseResult]]]:
    """The cases of each shape."""
    for panel in dict.fromkeys(result.case.panel for result in report.cases):
        yield panel or "", [result for result in report.cases if result.case.panel == panel]


def _formula(report: Report) -> Iterator[Check]:
    """Every partitioner moves as many rows as its closed formula says."""
    for shape, results in _shapes(report):
        runs = [run for result in results for item in result.measurements for run in item.runs]
        found = [(run.details["moved"], run.series[FORMULA][0]) for run in runs]
        same = sum(moved == formula for moved, formula in found)
        yield Check(f"rows moved as by the closed formula, {shape}", same == len(found), f"{same} of {len(found)}")


def _expected(report: Report) -> Iterator[Check]:
    """What EXPLAIN expects of the largest partition against what was counted."""
    for shape, results in _shapes(report):
        off = {}
        for result in results:
            for item in result.measurements:
                if "expected" in item.details:
                    expected, counted = item.details["expected"], item.details["work max/avg"]
                    place = f"{item.contestant} at N={result.case.x:.0f}, {expected:.2f} against {counted:.2f}"
                    off[place] = abs(expected / counted - 1)
        if off:
            within, worst = sum(value <= _OFF for value in off.values()), max(off, key=off.__getitem__)
            name = f"expected max/avg within {_OFF:.0%} of the counted, {shape}"
            yield Check(name, within == len(off), f"{within} of {len(off)}; worst: {worst}")


def _half_of_key(report: Report) -> Iterator[Check]:
    """Ours against keys that stay whole."""
    for result in report.cases:
        ours, theirs = result.seconds(report.ours), result.seconds("key")
        hot = result.case.name.startswith(_HOT) and result.case.x == _PARTITIONS
        if hot and ours is not None and theirs is not None:
            yield at_most(f"simulated critical path at most half of key's, {result.case.name}", ours / theirs, 0.5)


CHECKS = (_formula, _expected, _half_of_key)
