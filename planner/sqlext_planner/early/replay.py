"""A replay from its options to its answers and figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlext_operators.early.replay import Replayed, ReplaySpec, WindowAnswers, WindowBounds
from sqlext_operators.early.replay import replay as replayed
from sqlext_operators.early.windows import EarlyAnswer

from sqlext_planner.early.files import LoadedStreams, load, read_rows
from sqlext_planner.early.options import UNITS, Columns, ReplayOptions
from sqlext_planner.errors import ConfigurationError, DataError


@dataclass(frozen=True)
class EmitResult:
    """The answers of all windows, `emit_after` microseconds after their starts."""

    emit_after: int
    windows: tuple[WindowAnswers, ...]


@dataclass(frozen=True)
class ReplayResult:
    """A finished replay.

    `lateness`: microseconds after its end at which a window is final; `dropped`: rows that came later; `timestamps`:
    the times are timestamps, not numbers.
    """

    options: ReplayOptions
    lateness: int
    dropped: int
    timestamps: bool
    results: tuple[EmitResult, ...]


@dataclass(frozen=True)
class EstimatorFigures:
    """How well an estimator did over the windows of one replay.

    Errors are relative to the exact answer, over windows where that is a number other than 0 (`compared` of them;
    None without any). `held`: windows whose interval has the exact answer, of `windows` that have one. `width`: mean
    width of the intervals over the exact answer. `wait`: microseconds from arrival to the answer that 95 % of the left
    rows wait at most.
    """

    estimator: str
    windows: int
    compared: int
    mean_error: float | None
    largest_error: float | None
    bias: float | None
    held: int
    width: float | None
    unreliable: int
    wait: float | None


def run_replay(options: ReplayOptions, progressed: Callable[[int, int], None] = lambda done, all: None) -> ReplayResult:
    """Read the files and replay them; `progressed(windows done, windows in all)` is called after each window.

    Raises ConfigurationError, AnalysisError, DataError.
    """
    unit = options.unit
    sides = [read_rows(path, columns, unit) for path, columns in _sides(options)]
    loaded = load(sides[0], sides[1], options)
    _check(options, loaded)
    left, right = Replayed(loaded.left), Replayed(loaded.right)
    total = len(loaded.starts) * len(options.emit_after)
    results = []
    done = 0
    for emit_after in options.emit_after:
        windows = []
        for answers in replayed(left, right, loaded.starts, _spec(options, loaded, emit_after)):
            windows.append(answers)
            done += 1
            progressed(done, total)
        results.append(EmitResult(emit_after, tuple(windows)))
    return ReplayResult(options, loaded.lateness, loaded.dropped, sides[0].timestamps, tuple(results))


def figures(result: EmitResult) -> list[EstimatorFigures]:
    """One for each estimator, in their order."""
    names = list(result.windows[0].answers)
    waits = np.concatenate([window.waits for window in result.windows])
    wait = float(np.quantile(waits, 0.95)) if len(waits) else None
    return [_figures(name, result.windows, wait) for name in names]


def json_rows(result: ReplayResult) -> list[dict[str, Any]]:
    """One object for each window and estimator; `emit_after` (microseconds) if there are several.

    A window's start is in the unit of the times (microseconds with a rate), a timestamp if they are timestamps.
    """
    several = len(result.results) > 1
    return [
        {
            "estimator": name,
            "window_start": _start(result, window.start),
            **({"emit_after": emitted.emit_after} if several else {}),
            "estimate": _json(answer.estimate),
            "lower": _json(answer.lower),
            "upper": _json(answer.upper),
            "exact": _json(window.exact),
            "reliable": answer.reliable,
        }
        for emitted in result.results
        for window in emitted.windows
        for name, answer in window.answers.items()
    ]


def _sides(options: ReplayOptions) -> list[tuple[Path, Columns]]:
    columns = options.columns
    if options.aggregate == "count":
        columns = replace(columns, value=None)
    return [(options.left, columns), (options.right, replace(columns, value=None))]


def _spec(options: ReplayOptions, loaded: LoadedStreams, emit_after: int) -> ReplaySpec:
    return ReplaySpec(
        WindowBounds(options.window, options.closed),
        emit_after,
        loaded.lateness,
        options.aggregate,
        options.confidence,
        options.estimators,
        options.warm_up,
    )


def _check(options: ReplayOptions, loaded: LoadedStreams) -> None:
    final = options.window + loaded.lateness
    if options.emit_after[-1] > final:
        raise ConfigurationError(
            f"--emit-after {text_of(options.emit_after[-1])} is too late for an early answer",
            condition="command-line",
            help=f"a window of {text_of(options.window)} is final {text_of(final)} after its start, with rows that are "
            f"up to {text_of(loaded.lateness)} late",
        )
    if len(loaded.starts) <= options.warm_up:
        raise DataError(
            f"the files have {len(loaded.starts)} windows of {text_of(options.window)}, "
            f"and --warm-up is {options.warm_up}",
            condition="command-line",
            help="give a smaller --warm-up or a shorter --window",
        )


def text_of(micros: float) -> str:
    """``7 ms``."""
    unit = next(unit for unit in reversed(UNITS) if micros >= UNITS[unit] or unit == "us")
    return f"{micros / UNITS[unit]:.4g} {unit}"


def _start(result: ReplayResult, micros: int) -> int | float | str:
    if result.timestamps:
        return str(np.datetime64(micros, "us"))
    unit = 1 if result.options.rate is not None else result.options.unit
    return micros // unit if micros % unit == 0 else micros / unit


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _figures(name: str, windows: tuple[WindowAnswers, ...], wait: float | None) -> EstimatorFigures:
    pairs = [(window.answers[name], window.exact) for window in windows]
    known = [(answer, exact) for answer, exact in pairs if math.isfinite(exact)]
    compared = [(answer, exact) for answer, exact in known if exact and math.isfinite(answer.estimate)]
    errors = np.array([(answer.estimate - exact) / abs(exact) for answer, exact in compared])
    widths = [(answer.upper - answer.lower) / abs(exact) for answer, exact in compared]
    return EstimatorFigures(
        name,
        len(known),
        len(compared),
        float(np.abs(errors).mean()) if compared else None,
        float(np.abs(errors).max()) if compared else None,
        float(errors.mean()) if compared else None,
        sum(_holds(answer, exact) for answer, exact in known),
        float(np.mean(widths)) if compared else None,
        sum(not answer.reliable for answer, _ in pairs),
        wait,
    )


def _holds(answer: EarlyAnswer, exact: float) -> bool:
    """Up to the rounding of sums in another order."""
    slack = 1e-9 * abs(exact)
    return answer.lower - slack <= exact <= answer.upper + slack
