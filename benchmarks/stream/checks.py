"""The targets of the suite `stream`, as statements about a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from benchmarks.harness.checks import at_most, cases
from benchmarks.harness.results import RATE, CaseResult, Measurement, Report
from benchmarks.harness.suite import Check
from benchmarks.stream.progress import STEADY

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
OPERATOR, CHOSEN_RATE = "ours-operator", 0.95
MULTI_JOINS = ("flink-multi", "flink-multi-heap")
BINARY_JOINS = ("flink-binary", "flink-binary-heap")
SPARK_JOINS = ("spark-join", "spark-join-v2")
FLINK_WINDOWS = ("flink-over", "flink-over-heap", *FLINK_JOINS)
#: Ours over the CSV files that Flink reads.
OURS_CSV = "ours-csv"
#: The sets of cases whose joins only lead to a window.
WINDOWS = ("throughput", "rising")
#: How many times as many rows a second as the better of Spark's stream-stream joins, by workload; and the micro-batches
#: from which on these count: in smaller ones nobody can be much faster than the floor.
INTERVAL_RATES = {"points": 3, "overlap": 100}
LARGE_BATCH = 500_000
#: How much longer a query may take with estimates than without.
COMPENSATION, UNCOMPENSATED = 1.1, "ours-none"


def near_the_floor(report: Report) -> Iterator[Check]:
    """The 95th percentile of micro-batches of 50,000 rows against that of an empty stateful operator."""
    for result in cases(report, set="throughput", batch=SMALL_BATCH):
        ours = _detail(result, report.ours, "batch p95")
        for name in FLOORS:
            floor = _detail(result, name, "batch p95")
            if ours is not None and floor is not None:
                title = f"p95 of micro-batches at most {ALLOWANCE_SECONDS} s over {name}, {result.case.name}"
                detail = f"{ours - floor:+.2f} s ({ours:.2f} s against {floor:.2f} s)"
                yield Check(title, ours - floor <= ALLOWANCE_SECONDS, detail)


def faster_than_peers(report: Report) -> Iterator[Check]:
    """More rows a second than the best streaming peer, in the largest micro-batches and over rising state; of each kind
    of files."""
    for result in _of(report, WINDOWS):
        for ours, who, peers in ((report.ours, "Spark's joins", SPARK_JOINS), (OURS_CSV, "Flink", FLINK_WINDOWS)):
            title = f"more rows a second than {who}, {result.case.name}"
            yield from _rates(ours, [result], peers, 1, title, above=True)


def far_faster_than_flinks_join(report: Report) -> Iterator[Check]:
    """Rows a second against Flink's interval join and aggregate, the better of its two states."""
    for result in _of(report, WINDOWS):
        name = f"at least {FLINK_RATE}x the rows a second of Flink's join, {result.case.name}"
        yield from _rates(OURS_CSV, [result], FLINK_JOINS, FLINK_RATE, name)


def steady_while_keys_move(report: Report) -> Iterator[Check]:
    """The 95th percentile of micro-batches while keys become hot and cool down against that of even keys."""
    found = {
        result.case.parameters["workload"]: _detail(result, report.ours, "batch p95")
        for result in cases(report, set="spread")
    }
    even, moving = found.get("even"), found.get("moving")
    if even is not None and moving is not None:
        name = f"p95 of micro-batches with hot keys at most {HOT_GROWTH}x that of even keys"
        detail = f"{moving / even:.2f}x ({moving:.2f} s against {even:.2f} s)"
        yield Check(name, moving <= HOT_GROWTH * even, detail)


def flat_in_state(report: Report) -> Iterator[Check]:
    """Ten times the rows in state cost at most GROWTH times the median micro-batch."""
    found = sorted(
        (int(result.case.parameters["live"]), seconds)
        for result in cases(report, set="rising")
        if (seconds := _detail(result, report.ours, "batch p50")) is not None
    )
    for (small, fast), (large, slow) in pairwise(found):
        yield at_most(f"{large:,} rows live at most {GROWTH}x the micro-batch of {small:,}", slow / fast, GROWTH)


def joins_beat_chains(report: Report) -> Iterator[Check]:
    """More rows a second than Spark's chain of joins, by a factor that depends on the rows in state."""
    rates = {("shared", live): times for live, times in CHAIN_RATES.items()}
    return _against_spark(report, "umjoin", CHAINS, "chain", lambda *key: rates.get(key))


def choices_are_right(report: Report) -> Iterator[Check]:
    """Without a hint nearly as many rows a second as the better of the operator and Spark's chains, in each case.

    Where the operator is chosen, all runs of both have one plan: they differ by what else the machine did. So their
    runs count together, and are compared with the chains. A chain that was stopped has no rate here: while its state is
    being filled, it reads faster than with all of it.
    """
    for result in cases(report, set="umjoin"):
        rates = {name: rate for name in (OPERATOR, *CHAINS) if (rate := _ended_rate(result, name)) is not None}
        ours = _detail(result, report.ours, STEADY)
        if ours is None or OPERATOR not in rates:
            continue
        name = f"without a hint at least {CHOSEN_RATE}x the better of operator and chain, {result.case.name}"
        note = ""
        if (both := _of_one_plan(result, report.ours, OPERATOR)) is not None:
            operator, ours = rates.pop(OPERATOR), both.details[STEADY]
            apart = _detail(result, report.ours, STEADY) or 0.0
            note = f"the operator is chosen; the runs without the hint alone {apart / operator:.2f}x those with it"
        best = max(rates, key=rates.__getitem__, default=None)
        words = [f"{ours / rates[best]:.2f}x ({ours:,.0f} against {rates[best]:,.0f} of {best})"] if best else []
        is_met = best is None or ours >= CHOSEN_RATE * rates[best]
        yield Check(name, is_met, "; ".join([*words, note] if note else words))


def _of_one_plan(result: CaseResult, *contestants: str) -> Measurement | None:
    """The runs of some contestants as those of one, if all have one plan and none was stopped; else None."""
    items = [item for name in contestants if (item := result.measurement(name)) is not None]
    plans = {run.plan for item in items for run in (item.warmup, *item.runs) if run is not None}
    runs = [run for item in items for run in item.runs or (item.warmup,) if run is not None]
    if plans == {""} or len(plans) != 1 or any(item.status not in ("ok", "capped") for item in items):
        return None
    return Measurement(" and ".join(contestants), runs=runs)


def _ended_rate(result: CaseResult, name: str) -> float | None:
    """The rows a second of a contestant that ran to its end, all of them on Spark."""
    item = result.measurement(name)
    return None if item is None or item.status not in ("ok", "capped") else _detail(result, name, STEADY)


def joins_keep_up_with_flink(report: Report) -> Iterator[Check]:
    """As many rows a second as Flink's best join, and far more than its multi-join on second keys."""
    for result in report.cases:
        name = f"at least Flink's rows a second, {result.case.name}"
        yield from _rates(OURS_CSV, [result], (*MULTI_JOINS, *BINARY_JOINS), 1, name)
        if result.case.parameters.get("workload") == "second":
            name = f"at least {SECOND_KEYS_RATE}x the rows a second of Flink's multi-join, {result.case.name}"
            yield from _rates(OURS_CSV, [result], MULTI_JOINS, SECOND_KEYS_RATE, name)


def small_checkpoints(report: Report) -> Iterator[Check]:
    """The checkpoint against the smaller one of Spark's chains that ran to the end."""
    for result in report.cases:
        ours = _detail(result, report.ours, "checkpoint MiB")
        ended = (name for name in CHAINS if (item := result.measurement(name)) and item.status in ("ok", "capped"))
        sizes = [size for name in ended if (size := _detail(result, name, "checkpoint MiB")) is not None]
        if ours is not None and sizes:
            name = f"at most 1/{CHECKPOINT_PART} of the checkpoint of Spark's smaller chain, {result.case.name}"
            detail = f"1/{min(sizes) / ours:.2f} ({ours:,.1f} MiB against {min(sizes):,.1f})"
            yield Check(name, CHECKPOINT_PART * ours <= min(sizes), detail)


def interval_joins_beat_sparks(report: Report) -> Iterator[Check]:
    """More rows a second than Spark's join of two streams, by a factor that depends on the workload."""
    return _against_spark(report, "interval", SPARK_JOINS, "join", lambda workload, _: INTERVAL_RATES.get(workload))


def estimates_cost_little(report: Report) -> Iterator[Check]:
    """The time of a query with estimates against that of the same query whose early rows are what has come."""
    for result in cases(report, set="early"):
        ours, plain = result.seconds(report.ours), result.seconds(UNCOMPENSATED)
        if ours is not None and plain is not None:
            name = f"estimates cost at most {COMPENSATION - 1:.0%} of the time, {result.case.name}"
            detail = f"{ours / plain:.2f}x ({ours:.2f} s, {plain:.2f} s)"
            yield Check(name, ours <= COMPENSATION * plain, detail)


def early_answers_beat_spark(report: Report) -> Iterator[Check]:
    """Early and final rows in less time than Spark's final rows alone."""
    for result in cases(report, set="early"):
        name = f"more rows a second than Spark's final rows, {result.case.name}"
        yield from _rates(report.ours, [result], SPARK_JOINS, 1, name, above=True)


def _against_spark(
    report: Report, name: str, peers: Sequence[str], what: str, target: Callable[[str, int], int | None]
) -> Iterator[Check]:
    """Rows a second against Spark's, each in the micro-batches that suit it best, where large ones are among them;
    `target` says how many times as many there must be for a workload and a state."""
    groups: dict[tuple[str, int], list[CaseResult]] = {}
    for result in cases(report, set=name):
        key = str(result.case.parameters["workload"]), int(result.case.parameters["live"])
        groups.setdefault(key, []).append(result)
    for (workload, live), results in groups.items():
        times = target(workload, live)
        if times is not None and max(int(result.case.parameters["batch"]) for result in results) >= LARGE_BATCH:
            title = f"at least {times}x the rows a second of Spark's better {what}, {workload}, {live:,} rows live"
            yield from _rates(report.ours, results, peers, times, title)


def _of(report: Report, sets: Sequence[str]) -> Iterator[CaseResult]:
    """The results of these sets of cases."""
    return (result for result in report.cases if result.case.parameters.get("set") in sets)


#: What of two contestants is compared: whole jobs with whole jobs, and what they do in the middle with the same.
LIKE = {"whole jobs": RATE, "steady state": STEADY}


def _rates(
    contestant: str, results: Sequence[CaseResult], peers: Sequence[str], times: int, title: str, *, above: bool = False
) -> Iterator[Check]:
    """The highest rate of a contestant in some cases is at least (or, `above`, more than) so many times that of the
    best of some peers, of each kind in LIKE; nothing if it or all of the peers have none.

    A peer that was stopped counts with the rate that it would have had if it had ended then.
    """
    for like, rate in LIKE.items():
        mine = _best(results, contestant, rate)
        found = [(rival, name) for name in peers if (rival := _best(results, name, rate)) is not None]
        if mine is None or not found:
            continue
        (ours, is_stopped), ((best, is_bound), peer) = mine, max(found)
        if is_stopped:
            yield Check(f"{title}, {like}", False, f"{contestant} was stopped")
            continue
        more, fewer = ("more than ", "less than ") if is_bound else ("", "")
        words = f"{more}{ours / best:.2f}x ({ours:,.0f} against {fewer}{best:,.0f} of {peer})"
        yield Check(f"{title}, {like}", ours > times * best if above else ours >= times * best, words)


def _best(results: Sequence[CaseResult], contestant: str, rate: str) -> tuple[float, bool] | None:
    """The highest rate of a contestant in some cases, and whether that is the bound of a run that was stopped."""
    found = []
    for result in results:
        value, item = _detail(result, contestant, rate), result.measurement(contestant)
        if value is not None and item is not None:
            found.append((value, item.status == "stopped"))
    return max(found, default=None)


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
    choices_are_right,
    joins_keep_up_with_flink,
    small_checkpoints,
    interval_joins_beat_sparks,
    estimates_cost_little,
    early_answers_beat_spark,
)
