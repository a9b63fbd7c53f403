"""A window at the moment of its early answer, and the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.key_totals import Floats, Ints, KeyTotals


@dataclass(frozen=True)
class Arrivals:
    """The rows of a window in the order in which they arrived; for estimators that follow each of them.

    Times are in microseconds from the start of the window, which is `length` long. `is_left` and `keys` (codes from 0)
    say whose row it is, `values` are the left values (0 for right rows), `lags` how far the row's own stream had come
    when it arrived: the latest event time seen, less the row's. `clocks`: how far the left and the right stream have
    come when the answer is due (latest event time, -1 for none).
    """

    length: int
    is_left: NDArray[np.bool_]
    keys: Ints
    values: Floats
    events: Ints
    arrivals: Ints
    lags: Ints
    clocks: tuple[int, int]


@dataclass(frozen=True)
class EarlyWindow:
    """What is known of a window when its early answer is due.

    `elapsed`: the share of the window's time that has passed, in (0, 1]. `complete`: no more rows can come.
    """

    totals: KeyTotals
    elapsed: float = 1.0
    arrivals: Arrivals | None = None
    complete: bool = False


@dataclass(frozen=True)
class Answer:
    """An early answer: `lower <= estimate <= upper`, which holds the exact answer with the confidence asked for.

    `coverage`: the expected share of the pairs that is there already, in (0, 1]. `reliable`: whether past windows bear
    out what the interval assumes. An average of nothing, with nothing known of the past, is NaN, as its bounds are.
    """

    estimate: float
    lower: float
    upper: float
    coverage: float
    reliable: bool
