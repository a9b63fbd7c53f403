"""The targets of the suite `umjoin`, as statements about a report."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness.checks import cases
from benchmarks.harness.results import CaseResult, Measurement, Report
from benchmarks.harness.suite import Check
from benchmarks.umjoin.session_cost import P95

#: How much slower than plain Spark ours may be if both run Spark's own plan.
ALLOWANCE = 1.05
PEER = "spark"


def seed_query(report: Report) -> Iterator[Check]:
    """On the query of the UMJoin paper never more than 5 % slower than plain Spark, by the best runs."""
    for result in cases(report, set="seed"):
        ours, spark = _best(result, report.ours), _best(result, PEER)
        if ours and spark:
            name = f"at most {ALLOWANCE:g}x the time of plain Spark, {result.case.name}"
            yield Check(name, ours / spark <= ALLOWANCE, f"{ours / spark:.3f}x")


def factorised(report: Report) -> Iterator[Check]:
    """At least 20x as fast as plain Spark if the join has 10^9 rows."""
    for shape in ("star", "chain"):
        for result in cases(report, set=shape, results="few"):
            yield from _faster(report, result, 20)


def flat_in_fan_out(report: Report) -> Iterator[Check]:
    """A thousand times the result rows, from the same number of input rows, take at most 1.5 times the time."""
    for shape in ("star", "chain"):
        for query in ("count", "sum"):
            few, many = (
                next((r.measurement(report.ours) for r in cases(report, set=shape, query=query, results=size)), None)
                for size in ("few", "many")
            )
            if few is not None and many is not None and few.seconds and many.seconds:
                name = f"{shape}, {query}: 1000x the result rows at most 1.5x the time"
                ratio = many.seconds / few.seconds
                passed = ratio <= 1.5 and many.status == "ok"
                yield Check(name, passed, f"{_least(many)}{ratio:.2f}x")


def known_results(report: Report) -> Iterator[Check]:
    """Ours has the count and the sum that the generator knows, even if no other contestant has an answer."""
    for result in report.cases:
        expected, item = result.case.parameters.get("expected"), result.measurement(report.ours)
        if expected is not None and item is not None and "c0" in item.checksums:
            found = int(item.checksums["c0"])
            yield Check(f"{int(expected):,}, {result.case.name}", found == int(expected), f"{found:,}")


def cycles(report: Report) -> Iterator[Check]:
    """At least 2x plain Spark on the most skewed graph, and the more skew the larger the factor."""
    for shape in ("triangle", "cycle4"):
        for query in ("count", "vertices"):
            results = sorted(cases(report, set=shape, query=query), key=lambda result: result.case.x)
            if not results:
                continue
            yield from _faster(report, results[-1], 2)
            ratios = [ratio for result in results if (ratio := report.ratio(result, PEER)) is not None]
            if len(ratios) > 1:
                detail = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
                name = f"{shape}, {query}: a larger factor over plain Spark with more skew"
                yield Check(name, ratios[-1] > ratios[0], detail)


def tpch_total(report: Report) -> Iterator[Check]:
    """All queries of TPC-H at most 5 % slower than plain Spark in total, by the best run of each."""
    pairs = [(_best(result, report.ours), _best(result, PEER)) for result in cases(report, set="tpch")]
    both = [(ours, spark) for ours, spark in pairs if ours is not None and spark is not None]
    if not both:
        return
    ours, spark = (sum(times) for times in zip(*both, strict=True))
    name = f"TPC-H in total at most {ALLOWANCE:g}x the time of plain Spark"
    detail = f"{ours / spark:.3f}x, {ours:.2f} s against {spark:.2f} s for {len(both)} of {len(pairs)} queries"
    yield Check(name, ours / spark <= ALLOWANCE and len(both) == len(pairs), detail)


def planning(report: Report) -> Iterator[Check]:
    """The median query of TPC-DS is planned in less than 100 ms."""
    for result in cases(report, set="planning"):
        item = result.measurement(report.ours)
        if item is not None and item.seconds is not None:
            detail = (
                f"{1_000 * item.seconds:.0f} ms, {item.rows} of {result.case.parameters['queries']} queries planned"
            )
            whole = item.rows == result.case.parameters["queries"]
            name = f"less than 100 ms for the median query of TPC-DS, {result.case.name}"
            yield Check(name, item.seconds < 0.1 and whole, detail)


#: The most milliseconds that Session.sql may add to spark.sql: for the median text of TPC-DS, and at p95.
ADDED = {"first": (15, 40), "again": (3, 10)}


def session(report: Report) -> Iterator[Check]:
    """Texts that Spark runs cost little more through a session, at first and again."""
    for result in cases(report, set="session"):
        seconds, p95 = result.seconds(report.ours), result.detail(report.ours, P95)
        if seconds is not None and p95 is not None:
            median_ms, p95_ms = ADDED[str(result.case.parameters["met"])]
            passed = 1_000 * seconds <= median_ms and p95 <= p95_ms
            name = f"at most {median_ms} ms more than spark.sql, and {p95_ms} at p95, {result.case.name}"
            yield Check(name, passed, f"{1_000 * seconds:.1f} ms, {p95:.1f} at p95")


CHECKS = (seed_query, factorised, flat_in_fan_out, known_results, cycles, tpch_total, planning, session)


def _best(result: CaseResult, contestant: str) -> float | None:
    item = result.measurement(contestant)
    return None if item is None else item.best


def _faster(report: Report, result: CaseResult, factor: float) -> Iterator[Check]:
    """Ours against plain Spark; nothing if one side has no time. For a stopped run the ratio is a bound."""
    ratio, spark, ours = report.ratio(result, PEER), result.measurement(PEER), result.measurement(report.ours)
    if ratio is not None and spark is not None and ours is not None:
        name = f"at least {factor:g}x as fast as plain Spark, {result.case.name}"
        yield Check(name, ratio >= factor and ours.status != "stopped", f"{_least(spark)}{ratio:.2f}x")


def _least(item: Measurement) -> str:
    return ">" if item.status == "stopped" else ""
