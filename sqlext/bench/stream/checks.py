"""The targets of the suite `stream`, as statements about a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlext.bench.harness.results import CaseResult, Report
from sqlext.bench.harness.suite import Check

#: How many seconds later than an empty stateful micro-batch 95 % of ours of 50,000 rows may end.
ALLOWANCE_SECONDS = 0.35
SMALL_BATCH = 50_000
#: How much longer a micro-batch may take with ten times the rows in state.
GROWTH = 1.3
#: How much longer 95 % of the micro-batches may take while keys become hot.
HOT_GROWTH = 1.5
FLOORS = ("floor", "floor-spark")
#: How many times as many rows a second as Flink's interval join with an aggregate above it.
FLINK_RATE = 4
FLINK_JOINS = ("flink-join", "flink-join-heap")
#: How many times as many rows a second as the better of Spark's chains, by the rows in state, and which part of the
#: bytes of its checkpoint.
CHAIN_RATES = {1_000_000: 3, 10_000_000: 6}
CHECKPOINT_PART = 3
#: How many times as many rows a second as Flink's multi-join where the key that all streams share has few values.
SECOND_KEYS_RATE = 10
CHAINS = ("spark-chain", "spark-chain-v2")
MULTI_JOINS = ("flink-multi", "flink-multi-heap")
BINARY_JOINS = ("flink-binary", "flink-binary-heap")
SPARK_JOINS = ("spark-join", "spark-join-v2")
PEERS = (*SPARK_JOINS, "flink-over", "flink-over-heap", *FLINK_JOINS)
#: The sets of cases whose joins only lead to a window.
WINDOWS = ("throughput", "rising")
#: How many times as many rows a second as the better of Spark's stream-stream joins, by workload; and the micro-batches
#: from which on these count: in smaller ones nobody can be much faster than the floor.
INTERVAL_RATES = {"points": 3, "overlap": 100}
LARGE_BATCH = 500_000
#: How much longer a query may take with estimates than without.
COMPENSATION, UNCOMPENSATED = 1.1, "ours-none"


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
    for result in _of(report, WINDOWS):
        if (rates := _rates(report, [result], PEERS)) is not None:
            name = f"more rows a second than any peer, {result.case.name}"
            checks.append(Check(name, rates.ours > rates.best, rates.words))
    return checks


def far_faster_than_flinks_join(report: Report) -> list[Check]:
    """Rows a second against Flink's interval join and aggregate, the better of its two states."""
    checks = []
    for result in _of(report, WINDOWS):
        if (rates := _rates(report, [result], FLINK_JOINS)) is not None:
            name = f"at least {FLINK_RATE}x the rows a second of Flink's join, {result.case.name}"
            checks.append(Check(name, rates.ours >= FLINK_RATE * rates.best, rates.words))
    return checks


def steady_while_keys_move(report: Report) -> list[Check]:
    """The 95th percentile of micro-batches while keys become hot and cool down against that of even keys."""
    found = {
        str(result.case.parameters["workload"]): _detail(result, report.ours, "batch p95")
        for result in report.cases
        if result.case.parameters.get("set") == "spread"
    }
    even, moving = found.get("even"), found.get("moving")
    if even is None or moving is None:
        return []
    name = f"p95 of micro-batches with hot keys at most {HOT_GROWTH}x that of even keys"
    return [Check(name, moving <= HOT_GROWTH * even, f"{moving / even:.2f}x ({moving:.2f} s against {even:.2f} s)")]


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


def joins_beat_chains(report: Report) -> list[Check]:
    """More rows a second than Spark's chain of joins, by a factor that depends on the rows in state."""
    rates = {("shared", live): times for live, times in CHAIN_RATES.items()}
    return _against_spark(report, "umjoin", CHAINS, "chain", lambda *key: rates.get(key))


def joins_keep_up_with_flink(report: Report) -> list[Check]:
    """As many rows a second as Flink's best join, and far more than its multi-join on second keys."""
    checks = []
    for result in report.cases:
        if (rates := _rates(report, [result], (*MULTI_JOINS, *BINARY_JOINS))) is not None:
            name = f"at least Flink's rows a second, {result.case.name}"
            checks.append(Check(name, rates.ours >= rates.best, rates.words))
        rates = _rates(report, [result], MULTI_JOINS)
        if result.case.parameters.get("workload") == "second" and rates is not None:
            name = f"at least {SECOND_KEYS_RATE}x the rows a second of Flink's multi-join, {result.case.name}"
            checks.append(Check(name, rates.ours >= SECOND_KEYS_RATE * rates.best, rates.words))
    return checks


def small_checkpoints(report: Report) -> list[Check]:
    """The checkpoint against the smaller one of Spark's chains that ran to the end."""
    checks = []
    for result in report.cases:
        ours = _detail(result, report.ours, "checkpoint MiB")
        ended = (name for name in CHAINS if (item := result.measurement(name)) and item.status in ("ok", "capped"))
        sizes = [size for name in ended if (size := _detail(result, name, "checkpoint MiB")) is not None]
        if ours is not None and sizes:
            name = f"at most 1/{CHECKPOINT_PART} of the checkpoint of Spark's smaller chain, {result.case.name}"
            detail = f"1/{min(sizes) / ours:.2f} ({ours:,.1f} MiB against {min(sizes):,.1f})"
            checks.append(Check(name, CHECKPOINT_PART * ours <= min(sizes), detail))
    return checks


def interval_joins_beat_sparks(report: Report) -> list[Check]:
    """More rows a second than Spark's join of two streams, by a factor that depends on the workload."""
    return _against_spark(report, "interval", SPARK_JOINS, "join", lambda workload, _: INTERVAL_RATES.get(workload))


def estimates_cost_little(report: Report) -> list[Check]:
    """The time of a query with estimates against that of the same query whose early rows are what has come."""
    checks = []
    for result in _of(report, ("early",)):
        ours, plain = result.seconds(report.ours), result.seconds(UNCOMPENSATED)
        if ours is not None and plain is not None:
            name = f"estimates cost at most {COMPENSATION - 1:.0%} of the time, {result.case.name}"
            checks.append(
                Check(name, ours <= COMPENSATION * plain, f"{ours / plain:.2f}x ({ours:.2f} s, {plain:.2f} s)")
            )
    return checks


def early_answers_beat_spark(report: Report) -> list[Check]:
    """Early and final rows in less time than Spark's final rows alone."""
    checks = []
    for result in _of(report, ("early",)):
        if (rates := _rates(report, [result], SPARK_JOINS)) is not None:
            name = f"more rows a second than Spark's totals joined, {result.case.name}"
            checks.append(Check(name, rates.ours > rates.best, rates.words))
    return checks


def _against_spark(
    report: Report, name: str, peers: Sequence[str], what: str, target: Callable[[str, int], int | None]
) -> list[Check]:
    """Rows a second against Spark's, each in the micro-batches that suit it best, where large ones are among them;
    `target` says how many times as many there must be for a workload and a state."""
    groups: dict[tuple[str, int], list[CaseResult]] = {}
    for result in _of(report, (name,)):
        key = str(result.case.parameters["workload"]), int(result.case.parameters["live"])
        groups.setdefault(key, []).append(result)
    checks = []
    for (workload, live), results in groups.items():
        times = target(workload, live)
        if times is None or max(int(result.case.parameters["batch"]) for result in results) < LARGE_BATCH:
            continue
        if (rates := _rates(report, results, peers)) is not None:
            title = f"at least {times}x the rows a second of Spark's better {what}, {workload}, {live:,} rows live"
            checks.append(Check(title, rates.ours >= times * rates.best, rates.words))
    return checks


def _of(report: Report, sets: Sequence[str]) -> Iterator[CaseResult]:
    """The results of these sets of cases."""
    return (result for result in report.cases if result.case.parameters.get("set") in sets)


@dataclass(frozen=True)
class _Rates:
    """Rows a second of ours and of the best of some peers."""

    ours: float
    best: float
    peer: str

    @property
    def words(self) -> str:
        """Both, and how many times as fast ours is."""
        return f"{self.ours / self.best:.2f}x ({self.ours:,.0f} against {self.best:,.0f} of {self.peer})"


def _rates(report: Report, results: Sequence[CaseResult], peers: Sequence[str]) -> _Rates | None:
    """The highest rates in some cases; None if ours or all of the peers have none."""
    found = {
        name: max(rates)
        for name in (report.ours, *peers)
        if (rates := [rate for result in results if (rate := _detail(result, name, "rows/s")) is not None])
    }
    ours = found.pop(report.ours, None)
    if ours is None or not found:
        return None
    best = max(found, key=lambda name: found[name])
    return _Rates(ours, found[best], best)


def _detail(result: CaseResult, contestant: str, name: str) -> float | None:
    """A detail of a contestant whose answer was not wrong."""
    item = result.measurement(contestant)
    return None if item is None or item.status in ("wrong", "failed") else item.details.get(name)


CHECKS = (
    near_the_floor,
    faster_than_peers,
    far_faster_than_flinks_join,
    flat_in_state,
    steady_while_keys_move,
    joins_beat_chains,
    joins_keep_up_with_flink,
    small_checkpoints,
    interval_joins_beat_sparks,
    estimates_cost_little,
    early_answers_beat_spark,
)
