"""A replay as a picture: errors, intervals and waits over the moment of the answer, or one replay window by window."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.early.replay import EmitResult, ReplayResult, figures, text_of

from sqlext.cli.drawing import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
