"""The targets of the suite `stream`, as statements about a report."""

from __future__ import annotations

from itertools import pairwise

from sqlext.bench.results import CaseResult, Report
from sqlext.bench.suite import Check

#: How many seconds later than an empty stateful micro-batch 95 % of ours of 50,000 rows may end.
ALLOWANCE_SECONDS = 0.35
SMALL_BATCH = 50_000
#: How much longer a micro-batch may take with ten times the rows in state.
GROWTH = 1.5
FLOORS = ("floor", "floor-spark")
PEERS = ("spark-join", "spark-join-v2", "flink-over", "flink-over-heap", "flink-join", "flink-join-heap")


def near_the_floor(report: Report) -> list[Check]:
    """The 95th percentile of micro-batches of 50,000 rows against that of an empty stateful operator."""
    checks = []
    for result in report.cases:
        if result.case.parameters.get("set") != "throughput" or result.case.parameters.get("batch") != SMALL_BATCH:
            continue
        ours = _detail(result, report.ours, "batch p95")
        for name in FLOORS:
            floor = _detail(result, name, "batch p95")
            if ours is not None and floor is not None:
                title = f"p95 of micro-batches at most {ALLOWANCE_SECONDS} s over {name}, {result.case.name}"
                detail = f"{ours - floor:+.2f} s ({ours:.2f} s against {floor:.2f} s)"
                checks.append(Check(title, ours - floor <= ALLOWANCE_SECONDS, detail))
    return checks


def faster_than_peers(report: Report) -> list[Check]:
    """More rows a second than the best streaming peer, in the largest micro-batches and over rising state.

    A peer that was interrupted counts with the rows that it read until then."""
    checks = []
    for result in report.cases:
        ours = _detail(result, report.ours, "rows/s")
        rates = {name: rate for name in PEERS if (rate := _detail(result, name, "rows/s")) is not None}
        if ours is not None and rates:
            best = max(rates, key=lambda name: rates[name])
            detail = f"{ours / rates[best]:.2f}x ({ours:,.0f} against {rates[best]:,.0f} of {best})"
            checks.append(Check(f"more rows a second than any peer, {result.case.name}", ours > rates[best], detail))
    return checks


def flat_in_state(report: Report) -> list[Check]:
    """Ten times the rows in state cost at most GROWTH times the median micro-batch."""
    checks = []
    found = [
        (int(result.case.parameters["live"]), seconds)
        for result in report.cases
        if result.case.parameters.get("set") == "rising"
        and (seconds := _detail(result, report.ours, "batch p50")) is not None
    ]
    found.sort()
    for (small, fast), (large, slow) in pairwise(found):
        name = f"{large:,} rows live at most {GROWTH}x the micro-batch of {small:,}"
        checks.append(Check(name, slow / fast <= GROWTH, f"{slow / fast:.2f}x"))
    return checks


def _detail(result: CaseResult, contestant: str, name: str) -> float | None:
    """A detail of a contestant whose answer was not wrong."""
    item = result.measurement(contestant)
    return None if item is None or item.status in ("wrong", "failed") else item.details.get(name)


CHECKS = (near_the_floor, faster_than_peers, flat_in_state)
