"""A report as a terminal table, as Markdown, and as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.results import RATE, CaseResult, Measurement, Report

GIB = 1 << 30
MEMORY = ("Python GiB", "largest process", "JVM GiB")

#: Columns that a terminal has no place for in 80 characters.
NOT_SHOWN = ("JVM GiB", "rows")


def print_report(report: Report, console: Console) -> None:
    """The table, then the checks."""
    table = Table(title=report.title, caption=_caption(report), padding=(0, 0))
    shown = [place for place, name in enumerate(_header(report)) if name not in NOT_SHOWN]
    for number, name in enumerate(_header(report)[place] for place in shown):
        table.add_column(name, justify="left" if number < 2 else "right", no_wrap=number < 2)
    for result in report.cases:
        last = len(result.measurements) - 1
        for number, row in enumerate(_rows(report, result)):
            cells = ["" if number and not place else row[place] for place in shown]
            table.add_row(
                *map(escape, cells), style="bold" if row[1] == report.ours else None, end_section=number == last
            )
    console.print(table)
    if _detail_names(report):
        console.print(_detail_table(report))
    for measurement in (m for result in report.cases for m in result.measurements if m.message is not None):
        console.print(f"[red]{measurement.contestant} {measurement.status}:[/red] {escape(measurement.message or '')}")
    for check in report.checks:
        mark = "[green]met[/green]   " if check.passed else "[red]missed[/red]"
        console.print(f"{mark} {escape(check.name)}: {escape(check.detail)}", highlight=False)
    for text in report.left_out:
        console.print(f"[yellow]left out[/yellow] {escape(text)}", highlight=False)


def markdown(report: Report) -> str:
    """The table, the checks and what they were measured on. docs/benchmarks.md has the figures that matter of it."""
    lines = [
        f"**{report.title}**",
        "",
        _caption(report),
        "",
        _line(header := _header(report)),
        _line(["---"] * len(header)),
    ]
    lines += [_line(row) for result in report.cases for row in _rows(report, result)]
    if names := _detail_names(report):
        header = ("case", "contestant", *names)
        lines += ["", _line(header), _line(["---"] * len(header))]
        lines += [_line(row) for result in report.cases for row in _detail_rows(result, names)]
    if report.checks:
        lines += ["", _line(("target", "met", "measured")), _line(["---"] * 3)]
        lines += [_line((check.name, "yes" if check.passed else "**no**", check.detail)) for check in report.checks]
    lines += ["", *(f"Left out: {text}." for text in report.left_out)] if report.left_out else []
    return "\n".join(lines) + "\n"


def write_json(report: Report, path: Path) -> None:
    """Write the report. Raises ConfigurationError if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}", condition="file-access") from error


def read_json(path: Path) -> Report:
    """Read a report that `write_json` wrote. Raises ConfigurationError for any other file."""
    try:
        return Report.from_json(json.loads(path.read_text()))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}", condition="file-access") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a report of `python -m benchmarks`",
            condition="file-access",
            help="write one with `python -m benchmarks SUITE --json FILE`",
        ) from error


def _header(report: Report) -> tuple[str, ...]:
    """The headings."""
    return "case", "contestant", "seconds", "ratio to ours", *MEMORY, "rows"


def _rows(report: Report, result: CaseResult) -> list[tuple[str, ...]]:
    return [_row(report, result, item) for item in result.measurements]


def _row(report: Report, result: CaseResult, item: Measurement) -> tuple[str, ...]:
    ratio = report.ratio(result, item.contestant)
    seconds = _seconds(item.seconds) if item.seconds is not None else item.status
    seconds += "*" if item.status == "capped" else ""
    least = ">" if item.status == "stopped" else ""
    return (
        result.case.name,
        item.contestant,
        least + seconds,
        f"{least}{ratio:.2f}" if ratio is not None else "-",
        *_memory(item),
        f"{item.rows:,}" if item.rows is not None else "-",
    )


def _seconds(value: float) -> str:
    """Two digits after the point; of a few milliseconds and less two digits that are not 0."""
    return f"{value:.2g}" if 0.0001 <= value < 0.01 else f"{value:.2f}"


def _memory(item: Measurement) -> tuple[str, ...]:
    peaks = item.peak("peak_python"), item.peak("peak_process"), item.peak("peak_jvm")
    return tuple(f"{peak / GIB:.2f}" for peak in peaks)


def _detail_names(report: Report) -> tuple[str, ...]:
    """The headings of all details, in the order in which they come up."""
    return tuple(dict.fromkeys(name for result in report.cases for m in result.measurements for name in m.details))


def _detail_rows(result: CaseResult, names: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each contestant that measured more than seconds."""
    return [
        (result.case.name, item.contestant, *(_bound(item, name) + _figure(item.details.get(name)) for name in names))
        for item in result.measurements
        if item.details
    ]


def _bound(item: Measurement, name: str) -> str:
    """The sign before a figure that is only known to be less."""
    return "<" if item.status == "stopped" and name == RATE and name in item.details else ""


def _detail_table(report: Report) -> Table:
    """A row for each case, below it one for each contestant: a column for the cases would not fit in 80 characters."""
    names = _detail_names(report)
    found = [_detail_rows(result, names) for result in report.cases]
    table = Table(padding=(0, 0))
    for number, name in enumerate(("contestant", *names), 1):
        words = [*name.split(), *(row[number] for rows in found for row in rows)]
        table.add_column(name, justify="left" if number == 1 else "right", width=max(map(len, words)))
    for result, rows in zip(report.cases, found, strict=True):
        if rows:
            table.add_row(escape(result.case.name), style="italic")
        for number, row in enumerate(rows, 1):
            style = "bold" if row[1] == report.ours else None
            table.add_row(*map(escape, row[1:]), style=style, end_section=number == len(rows))
    return table


def _figure(value: float | None) -> str:
    """Whole numbers from 100 on, else up to two digits after the point."""
    if value is None:
        return "-"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _caption(report: Report) -> str:
    memory = float(report.machine["memory_bytes"]) / GIB
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return (
        f"{report.started}; {report.machine['processor']}, {report.machine['cores']} cores, {memory:.0f} GiB; "
        f"Python {report.machine['python']}; {packages}. {_measured(report)}"
    )


def _measured(report: Report) -> str:
    """What the figures are."""
    return (
        f"Medians of {report.parameters['repeat']} runs or more "
        "after warm-ups (*: the warm-up alone, as it took too long; "
        ">: stopped, so more than that, nobody knows how much); "
        "a ratio above 1 means that ours is faster; memory is the highest seen, summed over all Python processes, "
        "of the largest one, and of the JVM."
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
