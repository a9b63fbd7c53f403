"""A report as a picture: seconds over the case axis, one line a contestant."""

from __future__ import annotations

from pathlib import Path

from sqlext_planner.errors import ConfigurationError

from sqlext.bench.results import Report


def write_chart(report: Report, path: Path) -> None:
    """Draw the medians to `path` (.png, .svg or .pdf).

    Raises ConfigurationError where matplotlib is missing, or the format or the place is not writable.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "drawing the chart needs matplotlib", help="pip install 'sql-for-time-on-spark[bench]'"
        ) from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for contestant in dict.fromkeys(m.contestant for result in report.cases for m in result.measurements):
        points = [(r.case.x, seconds) for r in report.cases if (seconds := r.seconds(contestant)) is not None]
        if points:
            ours = contestant == report.ours
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker="o",
                linewidth=2.5 if ours else 1.5,
                label=contestant,
                zorder=3 if ours else 2,
            )
    if axes.lines:
        axes.legend()
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(report.x_label)
    axes.set_ylabel("seconds (median)")
    axes.set_title(report.title, fontsize=10)
    axes.grid(True, which="both", alpha=0.3)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise ConfigurationError(f"cannot draw {path}: {error}", help="use .png, .svg or .pdf") from error
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
