"""Measures a suite: a warm-up and a check of the answers first, then the timed runs, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sqlext_planner.errors import SqlExtError

from sqlext.bench import machine
from sqlext.bench.memory import MemoryWatch
from sqlext.bench.results import CaseResult, Measurement, Report, Run
from sqlext.bench.suite import Answer, Case, Contestant, Suite

#: Called with a line of text at every step; the console shows it.
Progressed = Callable[[str], None]


def run(suite: Suite, *, repeat: int = 3, cap_seconds: float | None = None, console: Console | None = None) -> Report:
    """Run every contestant on every case; the contestants are closed afterwards.

    In each case every contestant has one warm-up run whose answer is compared with the reference; then the
    contestants take turns (so that a slow minute of the machine hits all of them), `repeat` times. A contestant
    whose warm-up takes longer than `cap_seconds` is not repeated: that run is its measurement, marked "capped".
    An error of a contestant is recorded, not raised.
    """
    report = Report(
        suite=suite.name,
        title=suite.title,
        ours=suite.ours,
        x_label=suite.x_label,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine.describe(),
        versions=machine.versions(),
        parameters={**suite.parameters, "repeat": repeat, "cap_seconds": cap_seconds},
        facts=suite.facts,
        cases=[],
        left_out=list(suite.left_out),
        speedup=suite.speedup,
    )
    try:
        with _progress(suite, repeat, console or Console(stderr=True)) as progressed:
            for case in suite.cases:
                report.cases.append(_run_case(suite, case, repeat, cap_seconds, progressed))
    finally:
        for contestant in suite.contestants:
            contestant.close()
    report.checks = [check for function in suite.checks for check in function(report)]
    return report


def _run_case(suite: Suite, case: Case, repeat: int, cap_seconds: float | None, progressed: Progressed) -> CaseResult:
    contestants = [contestant for contestant in suite.contestants if case.has(contestant.name)]
    measurements = {contestant.name: Measurement(contestant.name) for contestant in contestants}
    answers: dict[str, Answer] = {}
    for contestant in contestants:
        progressed(f"{case.name}: {contestant.name}, warm-up")
        measurement = measurements[contestant.name]
        run = _attempt(contestant, case, measurement, answers)
        measurement.warmup = run
        if run is not None and cap_seconds is not None and run.seconds > cap_seconds:
            measurement.status = "capped"
    _check_answers(suite, measurements, answers)
    for number in range(repeat):
        for contestant in contestants:
            progressed(f"{case.name}: {contestant.name}, run {number + 1} of {repeat}")
            measurement = measurements[contestant.name]
            if measurement.status == "ok":
                run = _attempt(contestant, case, measurement, answers)
                measurement.runs += [run] if run is not None else []
        _check_answers(suite, measurements, answers)
    return CaseResult(case, list(measurements.values()))


def _attempt(contestant: Contestant, case: Case, measurement: Measurement, answers: dict[str, Answer]) -> Run | None:
    """One run and its answer; an error makes the measurement "failed" and gives None."""
    try:
        contestant.prepare(case)
        with MemoryWatch() as watch:
            start = time.perf_counter()
            measured = contestant.run(case)
            seconds = time.perf_counter() - start if measured is None else measured
        answer = contestant.answer(case)
    except Exception as error:  # a contestant may fail in any way; the report says how
        measurement.status = "failed"
        measurement.message = str(error) if isinstance(error, SqlExtError) else f"{type(error).__name__}: {error}"
        answers.pop(contestant.name, None)
        return None
    answers[contestant.name] = answer
    measurement.rows, measurement.checksums = answer.rows, dict(answer.checksums)
    return Run(seconds, watch.peak_python, watch.peak_process, watch.peak_jvm)


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
    """A progress bar on a terminal, one line a step elsewhere."""
    steps = sum(case.has(contestant.name) for case in suite.cases for contestant in suite.contestants) * (repeat + 1)
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
