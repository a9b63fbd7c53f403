"""A report as a picture: seconds, or how much faster ours is, over the case axis; one line for each contestant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.results import CaseResult, Report
from sqlext.cli.drawing import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
#: More places on an axis have its usual ticks.
TICKS = 8


def write_chart(report: Report, path: Path) -> None:
    """Draw the medians to `path` (.png, .svg or .pdf): one diagram for each panel of the cases, all on one scale.

    Raises ConfigurationError if matplotlib is missing, or the format or the path is not writable.
    """
    panels: dict[str, list[CaseResult]] = {}
    for result in report.cases:
        if result.case.panel is not None:
            panels.setdefault(result.case.panel, []).append(result)
    columns = min(COLUMNS, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure = new_figure((8, 5) if len(panels) < 2 else (4.2 * columns, 3.2 * rows))
    grid = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    names = list(dict.fromkeys(m.contestant for result in report.cases for m in result.measurements))
    for axes, (title, results) in zip(grid, panels.items(), strict=False):
        _draw(axes, report, results, {name: f"C{number % 10}" for number, name in enumerate(names)})
        axes.set_title(title, fontsize=10)
    for axes in grid[len(panels) or 1 :]:
        axes.set_axis_off()
    for axes in grid[::columns]:
        axes.set_ylabel("times as fast as" if report.speedup else "seconds (median)")
    _legend(figure, grid)
    figure.suptitle(report.title, fontsize=11)
    save_figure(figure, path)


def _legend(figure: Figure, grid: list[Axes]) -> None:
    """Draw one legend for all diagrams, below them; inside the diagram if there is only one."""
    lines = {str(line.get_label()): line for axes in grid for line in axes.lines}
    shown = {name: line for name, line in lines.items() if not name.startswith("_")}
    if shown and len(grid) == 1:
        grid[0].legend()
    elif shown:
        figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=len(shown))


def _draw(axes: Axes, report: Report, results: list[CaseResult], colors: dict[str, str]) -> None:
    """Draw one diagram. Cases with ticks are side by side above their labels."""
    ticks = [result.case.tick for result in results]
    words = any(ticks)
    for contestant, color in colors.items():
        ours = contestant == report.ours
        points = []
        for place, result in enumerate(results):
            value = report.drawn(result, contestant)
            if value is not None and not (ours and report.speedup):
                points.append((float(place) if words else result.case.x, value))
        if points:
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker="o",
                linestyle="" if words else "-",
                linewidth=2.5 if ours else 1.5,
                label=contestant,
                color=color,
                zorder=3 if ours else 2,
            )
    if axes.lines:
        axes.set_yscale("log")
        places = sorted({result.case.x for result in results})
        if not words and places[0] > 0:
            axes.set_xscale("log")
            if len(places) <= TICKS:
                axes.set_xticks(places, [f"{x:,.10g}" for x in places])
                axes.set_xticks([], minor=True)
    if words:
        axes.set_xticks(range(len(results)), [tick or "" for tick in ticks], fontsize=8)
        axes.set_xlim(-0.5, len(results) - 0.5)
    else:
        axes.set_xlabel(report.x_label)
    if report.speedup:
        axes.axhline(1, color="grey", linewidth=1, label="_as fast as ours")
    axes.grid(True, which="both", alpha=0.3)
