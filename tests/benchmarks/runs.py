"""What the tests of the suites share: small runs, made-up results, and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from typer.testing import CliRunner

from benchmarks import Case, CaseResult, Check, Limits, Measurement, Report, Run, Suite, run
from benchmarks.cli import app

Details = Mapping[str, float]


def measured(suite: Suite, repeat: int = 1, **limits: float) -> Report:
    """The report of a run that says nothing."""
    return run(suite, Limits(repeat, **limits), console=Console(file=StringIO()))


def agreed(suite: Suite, repeat: int = 1, **limits: float) -> Report:
    """The same of contestants that all have the right answer."""
    report = measured(suite, repeat, **limits)
    assert [m.message for result in report.cases for m in result.measurements if m.message] == []
    assert report.answers_agree
    return report


def case_result(
    parameters: Mapping[str, int | float | str],
    seconds: Mapping[str, float | tuple[float, Details]],
    name: str | None = None,
    x: float = 1.0,
    rows: int | None = None,
) -> CaseResult:
    """A case in which each contestant took so many seconds, and measured more."""
    items = []
    for contestant, found in seconds.items():
        time, details = found if isinstance(found, tuple) else (found, {})
        items.append(Measurement(contestant, rows=rows, runs=[Run(time, 0, 3 << 30, 0, details)]))
    return CaseResult(Case(", ".join(map(str, parameters.values())) if name is None else name, x, parameters), items)


def report_of(cases: list[CaseResult], **more: Any) -> Report:
    """A report of these cases."""
    return Report("suite", "title", "ours", "x axis", "", {}, {}, {}, {}, cases, **more)


def outcome(
    checks: Iterable[Callable[[Report], Iterable[Check]]], cases: list[CaseResult]
) -> list[tuple[str, bool, str]]:
    """What the checks say of these cases."""
    report = report_of(cases)
    return [(check.name, check.passed, check.detail) for function in checks for check in function(report)]


def bench(*words: str | Path, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of `python -m benchmarks`."""
    apart: Any = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}  # up to click 8.1
    found = CliRunner(**apart).invoke(app, list(map(str, words)), env={"COLUMNS": "200"})
    assert found.exit_code == code, found.output
    assert "Traceback" not in found.output
    return found.stdout, found.stderr


def stored(folder: Path, *words: str | Path) -> tuple[Mapping[str, Any], str]:
    """The report in JSON that a suite writes into a folder, and the same as Markdown; there is a chart, too."""
    file = folder / "out.json"
    printed = bench(*words, "--repeat", "1", "--json", file)[0]
    assert file.with_suffix(".png").exists()
    return json.loads(file.read_text()), printed + bench("report", file, "--markdown")[0]
