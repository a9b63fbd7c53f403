"""`sqlext doctor`: what is wrong with this machine, and the remedy."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.text import Text
from sqlext_planner.conditions import look_up
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError

from sqlext.cli.health.findings import Finding, Machine, State
from sqlext.cli.health.machine import CHECKS
from sqlext.cli.source import read_settings
from sqlext.cli.terminal import console, progress, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.WRONG: "bold red", State.SKIPPED: "dim"}
#: Widths of the first two columns.
_STATE, _NAME = 9, 18

Found = Callable[[str, Finding], None]


def run_doctor(conf: Sequence[str], format: str) -> None:
    """Check the machine, then a Spark that is started for it; exits with 1 if something is wrong.

    Text comes line by line as it is found; JSON is one array of {check, state, text, remedy, condition}.
    """
    ours, settings = read_settings(conf)
    Config.from_mapping(ours)
    machine = Machine(settings=settings)
    findings: list[tuple[str, Finding]] = []

    def tell(name: str, finding: Finding) -> None:
        findings.append((name, finding))
        if format == "text":
            _print(name, finding)

    _examine(machine, tell)
    states = Counter(finding.state for _, finding in findings)
    if format == "json":
        sys.stdout.write(
            json.dumps([{"check": name, **asdict(finding)} for name, finding in findings], indent=2) + "\n"
        )
    else:
        counts = ", ".join(f"{states[state]} {state}" for state in State if states[state])
        console().print(f"\n{counts}", style="bold red" if states[State.WRONG] else "bold")
    if states[State.WRONG]:
        raise typer.Exit(1)


def _examine(machine: Machine, tell: Found) -> None:
    missing: list[str] = []
    for check in CHECKS:
        findings = check.findings(machine)
        missing += [check.name] if check.starts and _is_wrong(findings) else []
        for finding in findings:
            tell(check.name, finding)
    if missing:
        tell("Spark", Finding(State.SKIPPED, f"not checked: it needs {' and '.join(missing)}"))
        return
    with _spark(machine, tell) as spark:
        if spark is not None:
            _examine_spark(spark, machine, tell)


def _examine_spark(spark: SparkSession, machine: Machine, tell: Found) -> None:
    from sqlext.cli.health.spark import CHECKS as SPARK_CHECKS

    for number, check in enumerate(SPARK_CHECKS):
        with progress(f"Checking: {check.name}"):
            findings = check.findings(spark, machine)
        for finding in findings:
            tell(check.name, finding)
        if check.starts and _is_wrong(findings):
            for other in SPARK_CHECKS[number + 1 :]:
                tell(other.name, Finding(State.SKIPPED, f"not checked: it needs {check.name}"))
            return


def _is_wrong(findings: Sequence[Finding]) -> bool:
    return any(finding.state is State.WRONG for finding in findings)


@contextmanager
def _spark(machine: Machine, tell: Found) -> Iterator[SparkSession | None]:
    """A Spark with the machine's settings, stopped afterwards; None if it does not start, which is a finding."""
    from sqlext.embedded import start_spark

    try:
        with progress("Starting Spark"):
            spark = start_spark(conf=machine.settings, java_arguments=())  # and leaves no archive
    except SqlExtError as error:
        tell("Spark", Finding.of(error))
        yield None
        return
    try:
        yield spark
    finally:
        spark.stop()


def _print(name: str, finding: Finding) -> None:
    out = console()
    line = Text(f"{finding.state:<{_STATE}}", style=_STYLES[finding.state])
    line.append(f"{name:<{_NAME}}", style="bold")
    line.append(visible(finding.text), style="default")
    out.print(line)
    blank = " " * (_STATE + _NAME)
    if finding.remedy is not None:
        out.print(Text(f"{blank}help: {visible(finding.remedy)}"))
    if finding.condition is not None:
        out.print(Text(f"{blank}{look_up(finding.condition)}", style="dim"))
