"""The targets of suite `serving`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from benchmarks.harness.checks import cases
from benchmarks.harness.results import Report
from benchmarks.harness.suite import Check
from benchmarks.serving import soak
from benchmarks.serving.measured import LONG, RATE, TIMES_ARROW
from benchmarks.serving.trend import trend

#: Of the echo's p50 and p99, at 200 requests a second of Q1.
SCRIPT, REQUEST_RATE, MEDIAN_TIMES, P99_TIMES = "Q1", 200, 4.0, 5.0
LONG_TIMES, LEAST_PUSHED, MOST_TIMES_ARROW, WARM_ROWS, WARM_SECONDS = 2.0, 20_000, 2.5, 10_000_000, 90.0
#: A trend of the soak counts if it makes so much of the median over the whole run.
MEMORY_GROWTH, LATENCY_GROWTH = 0.05, 0.2


def latency(report: Report) -> Iterator[Check]:
    """Q1's latencies against the echo's."""
    for result in cases(report, set="scripts", script=SCRIPT, rate=REQUEST_RATE):
        for word, most in (("p50 ms", MEDIAN_TIMES), ("p99 ms", P99_TIMES)):
            ours, echo = result.detail(report.ours, word), result.detail("echo", word)
            if ours is not None and echo:
                name = f"{result.case.name}: {word[:3]} at most {most:g} times the echo's"
                yield Check(name, ours / echo <= most, f"{ours / echo:.1f} times ({ours:.2f} and {echo:.2f} ms)")


def long_windows(report: Report) -> Iterator[Check]:
    """The most rows against the fewest, by function."""
    by_function: dict[str, dict[int, float]] = {}
    for result in cases(report, set="long"):
        seconds, function = result.seconds(report.ours), str(result.case.parameters["function"])
        if seconds is not None and function in LONG:
            by_function.setdefault(function, {})[int(result.case.parameters["rows"])] = seconds
    times = sorted(
        ((taken[max(taken)] / taken[min(taken)], name) for name, taken in by_function.items() if len(taken) > 1),
        reverse=True,
    )
    if times:
        above = sum(value > LONG_TIMES for value, _ in times)
        worst = ", ".join(f"{name} {value:.2f}" for value, name in times[:5])
        name = f"long windows: at most {LONG_TIMES:g} times one of the fewest rows, {len(times)} functions"
        yield Check(name, above == 0, f"{above} above; the worst: {worst}")


def pushes(report: Report) -> Iterator[Check]:
    """Rows a second that are stored."""
    for result in cases(report, set="pushes", journal=1):
        rate = result.detail(report.ours, RATE)
        if rate is not None:
            yield Check(f"{result.case.name}: at least {LEAST_PUSHED:,} rows/s", rate >= LEAST_PUSHED, f"{rate:,.0f}")


def warm(report: Report) -> Iterator[Check]:
    """Seconds and memory of warm starts."""
    for result in cases(report, set="warm"):
        seconds, times = result.seconds(report.ours), result.detail(report.ours, TIMES_ARROW)
        if seconds is None or times is None:
            continue
        if result.case.parameters["rows"] == WARM_ROWS:
            yield Check(f"{result.case.name}: under {WARM_SECONDS:g} s", seconds < WARM_SECONDS, f"{seconds:.1f} s")
        name = f"{result.case.name}: memory at most {MOST_TIMES_ARROW:g} times the Arrow bytes kept"
        yield Check(name, times <= MOST_TIMES_ARROW, f"{times:.2f} times")


def soaked(report: Report) -> Iterator[Check]:
    """Whether memory or latency rises from minute to minute, and whether all was answered."""
    for result in cases(report, set="soak"):
        measurement = result.measurement(report.ours)
        if measurement is None:
            continue
        run = measurement.runs[-1] if measurement.runs else measurement.warmup
        if run is None or not run.series:
            continue
        memory, p99, machine = (
            soak.settled(run.series.get(word, ())) for word in (soak.MEMORY, soak.P99, soak.MACHINE)
        )
        slope = trend(memory)
        shown = f"{slope.text('MB')}; by minute {soak.shortly(memory)}"
        yield Check(f"soak: MB without a trend over {len(memory)} minutes", not slope.rises(MEMORY_GROWTH), shown)
        slope = trend(p99)
        shown = (
            f"{slope.text('ms')}; by minute {soak.shortly(p99)}; "
            f"the machine {trend(machine).text('ms')}, by minute {soak.shortly(machine)}"
        )
        yield Check(f"soak: p99 ms without a trend over {len(p99)} minutes", not slope.rises(LATENCY_GROWTH), shown)
        aged, young = (run.series.get(word, ()) for word in (soak.AGED, soak.YOUNG))
        if aged and young:
            times = float(np.median(np.divide(aged, young)))
            shown = f"{times:.2f} times; aged {soak.shortly(aged)}; new {soak.shortly(young)}"
            name = f"soak: p99 ms at most {1 + LATENCY_GROWTH:g} times a new server's, in turn"
            yield Check(name, times <= 1 + LATENCY_GROWTH, shown)
        failed = sum(run.series.get(soak.FAILED, ()))
        yield Check("soak: all requests and pushes are answered", failed == 0, f"{failed:.0f} were not")


def all_checks(report: Report) -> Iterable[Check]:
    """All of them."""
    for function in (latency, long_windows, pushes, warm, soaked):
        yield from function(report)
