"""Measures a suite: a warm-up and a check of the answers first, then the timed runs, in turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sqlext_planner.errors import SqlExtError

from benchmarks.harness import machine
from benchmarks.harness.memory import MemoryWatch, process_tree
from benchmarks.harness.results import CaseResult, Measurement, Report, Run
from benchmarks.harness.suite import BRIEF_SECONDS, Answer, Case, Contestant, Suite
from sqlext.embedded import is_ending

#: A run may not take longer, so that one contestant does not hold up all others.
LIMIT_SECONDS = 600.0

#: A contestant that has not ended is interrupted again after this many seconds: Spark forgets a cancellation that
#: arrives between two jobs of a query.
AGAIN_SECONDS = 1.0

#: Called with a line of text at every step; the console shows it.
Progressed = Callable[[str], None]


@dataclass(frozen=True)
class Limits:
    """How often and how long a contestant runs: once above `cap_seconds`, not to the end above `limit_seconds`."""

    repeat: int = 3
    cap_seconds: float | None = None
    limit_seconds: float = LIMIT_SECONDS


def run(
    suite: Suite,
    limits: Limits,
    console: Console | None = None,
    keep: Callable[[Report], object] = lambda _: None,
) -> Report:
    """Run every contestant on every case, then close them and the suite. `keep` gets the report after each case:
    what was measured survives a run that does not reach its end.

    In each case every contestant has one warm-up run whose answer is compared with the reference. Then the contestants
    take turns (so that a slow minute of the machine hits all of them), in both orders (so that none always follows the
    same other one), first for any further warm-ups of the case. A contestant whose warm-up takes longer than
    `cap_seconds` is not repeated: that run is its measurement, marked "capped". A run that can be interrupted stops
    after `limit_seconds`: "stopped". An error of a contestant is recorded, not raised. Raises ConfigurationError if
    psutil is missing.
    """
    same = ("title", "ours", "x_label", "facts", "speedup")
    report = Report(
        suite=suite.name,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine.describe(),
        versions=machine.versions(),
        parameters={**suite.parameters, **asdict(limits)},
        cases=[],
        left_out=list(suite.left_out),
        **{name: getattr(suite, name) for name in same},
    )
    try:
        process_tree()
        with _progress(suite, limits.repeat, console or Console(stderr=True)) as progressed:
            for case in suite.cases:
                report.cases.append(_run_case(suite, case, limits, progressed))
                report.checks = [check for function in suite.checks for check in function(report)]
                keep(report)
    finally:
        for contestant in suite.contestants:
            contestant.close()
        suite.close()
    return report


def _run_case(suite: Suite, case: Case, limits: Limits, progressed: Progressed) -> CaseResult:
    contestants = [contestant for contestant in suite.contestants if case.has(contestant.name)]
    measurements = {contestant.name: Measurement(contestant.name) for contestant in contestants}
    answers: dict[str, Answer] = {}
    limit_seconds = min(limits.limit_seconds, case.limit_seconds or limits.limit_seconds)
    for contestant in contestants:
        progressed(f"{case.name}: {contestant.name}, warm-up")
        measurement = measurements[contestant.name]
        run = _attempt(contestant, case, measurement, answers, limit_seconds, suite.watch_seconds)
        measurement.warmup = run
        over = run is not None and limits.cap_seconds is not None and run.seconds > limits.cap_seconds
        if over and measurement.status == "ok":
            measurement.status = "capped"
    _check_answers(suite, measurements, answers)
    for number, of, is_timed in _rounds(case, limits.repeat):
        for contestant in contestants[:: 1 if number % 2 else -1]:
            step = "run" if is_timed else "warm-up"
            progressed(f"{case.name}: {contestant.name}, {step} {number} of {of}")
            measurement = measurements[contestant.name]
            asked = is_timed and number <= limits.repeat
            if measurement.status == "ok" and (asked or _is_brief(measurement)):
                run = _attempt(contestant, case, measurement, answers, limit_seconds, suite.watch_seconds)
                measurement.runs += [run] if run is not None and is_timed else []
        _check_answers(suite, measurements, answers)
    return CaseResult(case, list(measurements.values()))


def _is_brief(measurement: Measurement) -> bool:
    return measurement.warmup is not None and measurement.warmup.seconds < BRIEF_SECONDS


def _rounds(case: Case, repeat: int) -> Iterator[tuple[int, int, bool]]:
    """After the first warm-up: (number, of how many, whether it is timed). `repeat` 1 is only a first look."""
    warm_ups, runs = (case.warm_ups, max(repeat, case.least_runs)) if repeat > 1 else (1, 1)
    yield from ((number, warm_ups, False) for number in range(2, warm_ups + 1))
    yield from ((number, runs, True) for number in range(1, runs + 1))


def _attempt(
    contestant: Contestant,
    case: Case,
    measurement: Measurement,
    answers: dict[str, Answer],
    limit_seconds: float,
    watch_seconds: float,
) -> Run | None:
    """One run and its answer; on an error the measurement is "failed" and the result None."""
    try:
        contestant.prepare(case)
        with MemoryWatch(watch_seconds) as watch, _limit(contestant, limit_seconds) as was_stopped:
            start = time.perf_counter()
            try:
                measured = contestant.run(case)
            except Exception:
                if not was_stopped.is_set():
                    raise
                measurement.status = "stopped"
                measured = None
            seconds = time.perf_counter() - start if measured is None else measured
        details, series = dict(contestant.details()), dict(contestant.series())
        plan = contestant.plan()
        run = Run(seconds, watch.peak_python, watch.peak_process, watch.peak_jvm, details, series, plan)
        if measurement.status == "stopped":
            answers.pop(contestant.name, None)
            return run
        with _limit(contestant, limit_seconds):
            answer = contestant.answer(case)
    except Exception as error:  # a contestant may fail in any way; the report says how
        if is_ending():
            raise
        measurement.status = "failed"
        measurement.message = str(error) if isinstance(error, SqlExtError) else f"{type(error).__name__}: {error}"
        answers.pop(contestant.name, None)
        return None
    if answer is None:
        return run
    answers[contestant.name] = answer
    measurement.rows, measurement.checksums = answer.rows, dict(answer.checksums)
    return run


@contextmanager
def _limit(contestant: Contestant, seconds: float) -> Iterator[threading.Event]:
    """Interrupt the contestant after `seconds` and set the event; one that cannot be interrupted runs on."""
    was_stopped, has_ended = threading.Event(), threading.Event()

    def watch() -> None:
        if has_ended.wait(seconds):
            return
        was_stopped.set()
        contestant.interrupt()
        while not has_ended.wait(AGAIN_SECONDS):
            contestant.interrupt()

    watcher = threading.Thread(target=watch, name="sqlext-limit", daemon=True)
    watcher.start()
    try:
        yield was_stopped
    finally:
        has_ended.set()
        watcher.join()


def _check_answers(suite: Suite, measurements: dict[str, Measurement], answers: dict[str, Answer]) -> None:
    """Mark every measurement whose answer is not the reference's as wrong."""
    reference = next((name for name in answers if name != suite.ours), None)
    for name, answer in answers.items():
        difference = answer.difference(answers[reference], suite.tolerance) if reference is not None else None
        if difference is not None:
            measurements[name].status = "wrong"
            measurements[name].message = f"{difference} (reference: {reference})"


@contextmanager
def _progress(suite: Suite, repeat: int, console: Console) -> Iterator[Progressed]:
    """A progress bar on a terminal, one line for each step elsewhere."""
    steps = sum(
        1 + sum(1 for _ in _rounds(case, repeat))
        for case in suite.cases
        for contestant in suite.contestants
        if case.has(contestant.name)
    )
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(suite.title, total=steps)

        def progressed(text: str) -> None:
            progress.update(task, description=text)
            progress.advance(task)
            if not console.is_terminal:
                console.print(f"[{suite.name}] {text}", highlight=False, markup=False)

        yield progressed
