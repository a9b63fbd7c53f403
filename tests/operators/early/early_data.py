"""Random windows: rows of both sides, which of them have arrived early, and the estimators' view of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sqlext_operators.early.replay import Replayed, Stream, WindowBounds, cut_windows
from sqlext_operators.early.windows import EarlyWindow, KeyTotals

LENGTH, EMIT_AFTER = 100, 70


@dataclass(frozen=True)
class Rows:
    """One side of a window: keys, values, times in it, delays."""

    keys: list[int]
    values: list[float]
    events: list[int]
    delays: list[int]

    def stream(self) -> Stream:
        events = np.array(self.events, np.int64)
        return Stream(
            np.array(self.keys, np.int64),
            np.array(self.values, np.float64),
            events,
            events + np.array(self.delays, np.int64),
        )


@dataclass(frozen=True)
class Window:
    """A window with all its rows."""

    left: Rows
    right: Rows

    def cut(self, scale: float = 1.0, swap: bool = False) -> tuple[EarlyWindow, KeyTotals]:
        """What is known early, and the totals in the end; values times `scale`, sides swapped."""
        left, right = (self.right, self.left) if swap else (self.left, self.right)
        scaled = Rows(left.keys, [value * scale for value in left.values], left.events, left.delays)
        found = cut_windows(
            Replayed(scaled.stream()), Replayed(right.stream()), [0], WindowBounds(LENGTH), EMIT_AFTER, follow=True
        )
        window = next(found)
        return window.early, window.final


#: Few keys, so that they meet; few values, negative ones too
KEYS = st.integers(0, 4)
VALUES = st.sampled_from([0.0, 1.0, -1.0, 2.5, -7.0, 1e6, 1e-3]) | st.floats(-100, 100).map(lambda v: round(v, 3))


@st.composite
def sides(draw: st.DrawFn, on_time: bool = False) -> Rows:
    size = draw(st.integers(0, 12))

    def several(one: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(one, min_size=size, max_size=size))

    last = EMIT_AFTER - 30 if on_time else LENGTH - 1
    delays = st.integers(0, 20 if on_time else 60)
    return Rows(several(KEYS), several(VALUES), several(st.integers(0, last)), several(delays))


def windows(on_time: bool = False) -> st.SearchStrategy[Window]:
    """`on_time`: all rows arrive before the early answer."""
    return st.builds(Window, sides(on_time), sides(on_time))


def random_window(random: np.random.Generator, rows: int, keys: int, skew: float = 1.0) -> Window:
    """A larger one: keys with shares that fall with the rank, uniform times and delays, normal values."""
    shares = 1 / np.arange(1, keys + 1) ** skew

    def side() -> Rows:
        return Rows(
            random.choice(keys, rows, p=shares / shares.sum()).tolist(),
            random.normal(10, 5, rows).tolist(),
            random.integers(0, LENGTH, rows).tolist(),
            random.integers(0, 60, rows).tolist(),
        )

    return Window(side(), side())
