"""The targets of the suite `umjoin`, as statements about a report."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.harness.results import CaseResult, Measurement, Report
from sqlext.bench.harness.suite import Check

#: How much slower than plain Spark ours may be if both run Spark's own plan.
ALLOWANCE = 1.05
PEER = "spark"


def seed_query(report: Report) -> list[Check]:
    """On the query of the UMJoin paper never more than 5 % slower than plain Spark, by the best runs."""
    checks = []
    for result in _cases(report, "seed"):
        ours, spark = _best(result, report.ours), _best(result, PEER)
        if ours and spark:
            name = f"at most {ALLOWANCE:g}x the time of plain Spark, {result.case.name}"
            checks.append(Check(name, ours / spark <= ALLOWANCE, f"{ours / spark:.3f}x"))
    return checks


def factorised(report: Report) -> list[Check]:
    """At least 20x as fast as plain Spark if the join has 10^9 rows."""
    chosen = [result for shape in ("star", "chain") for result in _cases(report, shape, results="few")]
    return [check for result in chosen for check in _at_least(report, result, 20)]


def flat_in_fan_out(report: Report) -> list[Check]:
    """A thousand times the result rows, from the same number of input rows, take at most 1.5 times the time."""
    checks = []
    for shape in ("star", "chain"):
        for query in ("count", "sum"):
            few, many = (
                next((r.measurement(report.ours) for r in _cases(report, shape, query=query, results=size)), None)
                for size in ("few", "many")
            )
            if few is not None and many is not None and few.seconds and many.seconds:
                name = f"{shape}, {query}: 1000x the result rows at most 1.5x the time"
                ratio = many.seconds / few.seconds
                passed = ratio <= 1.5 and many.status == "ok"
                checks.append(Check(name, passed, f"{_least(many)}{ratio:.2f}x"))
    return checks


def known_results(report: Report) -> list[Check]:
    """Ours has the count and the sum that the generator knows, even if no other contestant has an answer."""
    checks = []
    for result in report.cases:
        expected, item = result.case.parameters.get("expected"), result.measurement(report.ours)
        if expected is not None and item is not None and "c0" in item.checksums:
            found = int(item.checksums["c0"])
            checks.append(Check(f"{int(expected):,}, {result.case.name}", found == int(expected), f"{found:,}"))
    return checks


def cycles(report: Report) -> list[Check]:
    """At least 2x plain Spark on the most skewed graph, and the more skew the larger the factor."""
    checks = []
    for shape in ("triangle", "cycle4"):
        for query in ("count", "vertices"):
            results = sorted(_cases(report, shape, query=query), key=lambda result: result.case.x)
            if not results:
                continue
            checks += _at_least(report, results[-1], 2)
            ratios = [ratio for result in results if (ratio := report.ratio(result, PEER)) is not None]
            if len(ratios) > 1:
                detail = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
                name = f"{shape}, {query}: a larger factor over plain Spark with more skew"
                checks.append(Check(name, ratios[-1] > ratios[0], detail))
    return checks


def tpch_total(report: Report) -> list[Check]:
    """All queries of TPC-H at most 5 % slower than plain Spark in total, by the best run of each."""
    pairs = [(_best(result, report.ours), _best(result, PEER)) for result in _cases(report, "tpch")]
    both = [(ours, spark) for ours, spark in pairs if ours is not None and spark is not None]
    if not both:
        return []
    ours, spark = (sum(times) for times in zip(*both, strict=True))
    name = f"TPC-H in total at most {ALLOWANCE:g}x the time of plain Spark"
    detail = f"{ours / spark:.3f}x, {ours:.2f} s against {spark:.2f} s for {len(both)} of {len(pairs)} queries"
    return [Check(name, ours / spark <= ALLOWANCE and len(both) == len(pairs), detail)]


def planning(report: Report) -> list[Check]:
    """The median query of TPC-DS is planned in less than 100 ms."""
    checks = []
    for result in _cases(report, "planning"):
        item = result.measurement(report.ours)
        if item is not None and item.seconds is not None:
            detail = (
                f"{1_000 * item.seconds:.0f} ms, {item.rows} of {result.case.parameters['queries']} queries planned"
            )
            whole = item.rows == result.case.parameters["queries"]
            name = f"less than 100 ms for the median query of TPC-DS, {result.case.name}"
            checks.append(Check(name, item.seconds < 0.1 and whole, detail))
    return checks


CHECKS = (seed_query, factorised, flat_in_fan_out, known_results, cycles, tpch_total, planning)


def _cases(report: Report, set: str, **parameters: str) -> Iterator[CaseResult]:
    """The cases of a set with these parameters."""
    for result in report.cases:
        if all(result.case.parameters.get(name) == value for name, value in {"set": set, **parameters}.items()):
            yield result


def _best(result: CaseResult, contestant: str) -> float | None:
    item = result.measurement(contestant)
    return None if item is None else item.best


def _at_least(report: Report, result: CaseResult, factor: float) -> list[Check]:
    """Ours against plain Spark; nothing if one side has no time. For a stopped run the ratio is a bound."""
    ratio, spark, ours = report.ratio(result, PEER), result.measurement(PEER), result.measurement(report.ours)
    if ratio is None or spark is None or ours is None:
        return []
    passed = ratio >= factor and ours.status != "stopped"
    return [
        Check(
            f"at least {factor:g}x as fast as plain Spark, {result.case.name}", passed, f"{_least(spark)}{ratio:.2f}x"
        )
    ]


def _least(item: Measurement) -> str:
    return ">" if item.status == "stopped" else ""
