"""`sqlext pecj replay`: options to a replay, its figures as a table, its answers as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table
from sqlext_planner.early.options import (
    UNITS,
    Columns,
    EstimatedAggregate,
    ReplayOptions,
    chosen_estimators,
    duration,
    durations,
    uniform_delay,
)
from sqlext_planner.early.replay import (
    EmitResult,
    EstimatorFigures,
    ReplayResult,
    figures,
    json_rows,
    run_replay,
    text_of,
)

from sqlext.cli.console import console
from sqlext.cli.terminal import exact_output

#: A replay that takes longer shows how far it is.
PATIENCE_SECONDS = 2.0


def run_pecj_replay(
    files: tuple[Path, Path],
    columns: tuple[str, str | None, str | None, str | None],
    window: str,
    emit_after: Sequence[str],
    aggregate: str,
    estimators: str,
    delay: str | None,
    lateness: str | None,
    unit: str,
    format: str,
    chart: Path | None,
    **others: Any,
) -> None:
    """Replay, print, draw. Raises SqlExtError for options, files and rows that do not do."""
    options = ReplayOptions(
        left=files[0],
        right=files[1],
        columns=Columns(*columns),
        window=duration("--window", window),
        emit_after=durations("--emit-after", emit_after),
        aggregate=EstimatedAggregate(aggregate),
        estimators=chosen_estimators(estimators),
        delay=None if delay is None else uniform_delay(delay),
        lateness=None if lateness is None else duration("--lateness", lateness),
        unit=UNITS[unit],
        **others,
    )
    with closing(_Patient()) as progressed:
        result = run_replay(options, progressed)
    if chart is not None:
        from sqlext.cli.pecj_chart import write_replay_chart

        write_replay_chart(result, chart)
    if format == "json":
        rows = ",\n ".join(json.dumps(row) for row in json_rows(result))
        with exact_output() as out:
            out.write(f"[{rows}]\n")
        return
    _print(result)


class _Patient:
    """A bar on stderr that appears when the work has taken a while; nothing if stderr is not a terminal."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._screen = Console(stderr=True)
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if not self._screen.is_terminal or time.monotonic() - self._begin < PATIENCE_SECONDS:
                return
            self._bar = Progress(console=self._screen, transient=True)
            self._bar.add_task("windows", total=total)
            self._bar.start()
        self._bar.update(TaskID(0), completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _print(result: ReplayResult) -> None:
    out = console()
    for emitted in result.results:
        out.print(_table(result, emitted), end="")
        out.print(_below(result, emitted), style="dim", highlight=False)
    if result.dropped:
        out.print(f"{result.dropped:,} rows arrive later than --lateness allows, and are left out.", style="dim")


def _table(result: ReplayResult, emitted: EmitResult) -> Table:
    options = result.options
    known = figures(emitted)
    title = (
        f"{options.aggregate.upper()} over windows of {text_of(options.window)}, "
        f"answered {text_of(emitted.emit_after)} after their start: {len(emitted.windows)} windows"
    )
    grid = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("estimator")
    for name in ("mean error", "largest", "bias", f"{options.confidence:.0%} holds", "width", "unreliable"):
        grid.add_column(name, justify="right")
    for row in known:
        grid.add_row(*_cells(row, len(emitted.windows)))
    return grid


def _cells(row: EstimatorFigures, windows: int) -> list[str]:
    return [
        row.estimator,
        _number(row.mean_error),
        _number(row.largest_error),
        _number(row.bias, "+"),
        f"{row.held}/{row.windows}",
        _number(row.width),
        f"{row.unreliable}/{windows}",
    ]


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.3f}"


def _below(result: ReplayResult, emitted: EmitResult) -> str:
    """What the columns are, and what the early answer saves."""
    first = figures(emitted)[0]
    options = result.options
    lines = ["Errors and widths are relative to the exact answer."]
    left_out = len(emitted.windows) - first.compared
    if left_out:
        lines.append(f"{left_out} windows without one, or with 0, are not in their means.")
    final = options.window + result.lateness
    wait = "" if first.wait is None else f"95 % of the left rows wait {text_of(first.wait)} at most for this answer; "
    lines.append(f"{wait}the exact one comes {text_of(final - emitted.emit_after)} later.")
    return " ".join(lines)
