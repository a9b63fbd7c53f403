"""Simulated streams of rows that come late, and how near early answers of windows are to final ones.

``python -m tests.operators.early_windows.simulate`` prints the table of docs/early-answers.md, in about a minute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlext_operators.window.spec import Frame

from tests.operators.early_windows.row_data import Row, Run, Step, operator_of, spec_of

#: Milliseconds: of a micro-batch, of the watermark's delay; no row is later than LATEST.
TRIGGER, WATERMARK, LATEST = 2_000, 5_000, 4_500
#: When rows come: each late by chance, uniformly; the same for rows at even distances; whole seconds late together.
KINDS = ("chance", "even", "together")
#: Kind, delay of the early answer, end of the window.
CASES = (("chance", 0, 0), ("even", 0, 0), ("chance", 500, 2_000), ("together", 500, 0))

Pairs = list[tuple[dict[str, Any], dict[str, Any]]]


def simulated(estimator: str, kind: str = "chance", delay: int = 0, end: int = 0, *, seconds: int = 130) -> Pairs:
    """(early, final) rows from the second minute on: 24 rows a second of FROM and a union together, 3 keys, windows of
    10 s PRECEDING to `end`."""
    rng = np.random.default_rng(0)
    count = rng.poisson(24 * seconds)
    even = kind == "even"
    times = np.arange(count) * seconds * 1_000 // count if even else rng.integers(0, seconds * 1_000, count)
    late = rng.random(count) * LATEST
    if kind == "together":
        late = np.minimum(rng.exponential(1_500, seconds + 1)[times // 1_000] + 50 * rng.random(count), LATEST)
    arrivals = times + late
    tags, values = rng.integers(0, 2, count), rng.integers(1, 20, count)
    keys = np.arange(count) % 3 if even else rng.integers(0, 3, count)
    frame = Frame("range", -10_000, end, end_following=end > 0)
    run = Run(spec_of(operator_of([(frame, (1,))]), delay, estimator))
    found: list[dict[str, Any]] = []
    clock = 0
    watermark = None
    for now in range(TRIGGER, seconds * 1_000 + 2 * WATERMARK, TRIGGER):
        rows = tuple(
            Row(int(tags[i]), int(i), int(keys[i]), int(times[i]), int(values[i]) + 5 * int(keys[i]), values[i] / 2)
            for i in np.flatnonzero((arrivals >= now - TRIGGER) & (arrivals < now))
        )
        found += run.step(Step(watermark, rows))
        clock = max([clock, *(row.time for row in rows if row.time is not None)])
        watermark = clock - WATERMARK
    found += run.step(Step(1 << 40, ()))
    final = {row["id"]: row for row in found if row["phase"] == "final"}
    early = [row for row in found if row["phase"] == "early" and 60_000 <= row["ts"] <= (seconds - 10) * 1_000]
    return [(row, final[row["id"]]) for row in early]


def held(pairs: Pairs, name: str) -> float:
    """The share of intervals that hold the exact value."""
    inside = [early[f"{name}_lower"] - 1e-9 <= final[name] <= early[f"{name}_upper"] + 1e-9 for early, final in pairs]
    return float(np.mean(inside))


def _error(pairs: Pairs, name: str) -> float:
    exact = np.array([final[name] for _, final in pairs], np.float64)
    return float(np.abs(np.array([early[name] for early, _ in pairs]) - exact).mean() / exact.mean())


if __name__ == "__main__":
    for case in CASES:
        cells = [simulated(estimator, *case) for estimator in ("none", "coverage", "shrink")]
        print(case, *(f"{_error(pairs, 'n0'):.3f} ({held(pairs, 'n0'):.0%})" for pairs in cells), flush=True)
