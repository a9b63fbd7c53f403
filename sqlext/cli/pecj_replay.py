"""`sqlext pecj replay`: options to a replay, its figures as a table, its answers as JSON, and its picture: errors,
intervals and waits over the moment of the answer, or one replay window by window."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

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

from sqlext.cli.drawing import new_figure, save_figure
from sqlext.cli.terminal import console, exact_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A replay that takes longer shows how far it is.
PATIENCE_SECONDS = 2.0


def run_pecj_replay(
    *,
    key: str,
    value: str | None,
    time: str | None,
    arrival: str | None,
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
    """Replay, print, draw; `others` are options as they are. Raises SqlExtError for what does not do."""
    options = ReplayOptions(
        columns=Columns(key, value, time, arrival),
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
        self._begin = monotonic()
        self._screen = Console(stderr=True)
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if not self._screen.is_terminal or monotonic() - self._begin < PATIENCE_SECONDS:
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


def write_replay_chart(result: ReplayResult, path: Path) -> None:
    """Draw it (.png, .svg or .pdf). Raises ConfigurationError if matplotlib is missing or the file is not writable."""
    figure = new_figure((11, 4))
    first, second = figure.subplots(1, 2)
    if len(result.results) > 1:
        _errors(first, result)
        _held(second, result)
    else:
        _relative(first, result.results[0])
        _interval(second, result.results[0])
    options = result.options
    figure.suptitle(f"{options.aggregate.upper()} over windows of {text_of(options.window)}", fontsize=11)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    save_figure(figure, path)


def _errors(axes: Axes, result: ReplayResult) -> None:
    """Mean relative error over the moment of the answer: figures 8 to 13 of PECJ."""
    times = [emitted.emit_after / 1000 for emitted in result.results]
    for number, name in enumerate(result.options.estimators):
        found = [figures(emitted)[number].mean_error for emitted in result.results]
        shown = [math.nan if error is None else max(error, 1e-4) for error in found]
        axes.plot(times, shown, marker="o", label=name)
    axes.set_yscale("log")
    axes.set_ylabel("mean relative error")
    axes.set_xlabel("answered after (ms)")
    axes.grid(True, which="both", alpha=0.3)


def _held(axes: Axes, result: ReplayResult) -> None:
    """The share of intervals that hold the exact answer, over the moment of the answer."""
    times = [emitted.emit_after / 1000 for emitted in result.results]
    for number, name in enumerate(result.options.estimators):
        known = [figures(emitted)[number] for emitted in result.results]
        axes.plot(times, [row.held / row.windows if row.windows else math.nan for row in known], marker="o", label=name)
    axes.axhline(result.options.confidence, color="grey", linewidth=1)
    axes.set_ylim(0, 1.03)
    axes.set_ylabel("intervals that hold the exact answer")
    axes.set_xlabel("answered after (ms)")
    axes.grid(True, alpha=0.3)


def _relative(axes: Axes, emitted: EmitResult) -> None:
    """Each estimator's answers over the exact ones, window by window."""
    for name in emitted.windows[0].answers:
        axes.plot(
            [window.answers[name].estimate / window.exact if window.exact else math.nan for window in emitted.windows],
            label=name,
        )
    axes.axhline(1, color="black", linewidth=1)
    axes.set_ylabel("estimate / exact")
    axes.set_xlabel("window")
    axes.grid(True, alpha=0.3)


def _interval(axes: Axes, emitted: EmitResult) -> None:
    """The last estimator's interval around the exact answers; windows that are not reliable are hatched."""
    name = list(emitted.windows[0].answers)[-1]
    answers = [window.answers[name] for window in emitted.windows]
    places = range(len(answers))
    axes.fill_between(places, [a.lower for a in answers], [a.upper for a in answers], alpha=0.3, label=name)
    doubtful = [not answer.reliable for answer in answers]
    axes.fill_between(
        places, [a.lower for a in answers], [a.upper for a in answers], where=doubtful, hatch="//", alpha=0.1
    )
    exact = [float(window.exact) for window in emitted.windows]
    axes.plot(places, exact, color="black", linewidth=1)
    known = [value for value in exact if math.isfinite(value)]
    if any(known):
        axes.set_ylim(min(0.0, 2.5 * min(known)), max(0.0, 2.5 * max(known)))
    axes.set_ylabel(f"exact answers in the interval of {name}")
    axes.set_xlabel("window (hatched: not reliable)")
    axes.grid(True, alpha=0.3)
