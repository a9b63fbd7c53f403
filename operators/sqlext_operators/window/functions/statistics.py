"""The rows of statistics: stddev, variance, median, entropy, ew_avg, drawdown, nth_value_where."""

from __future__ import annotations

from sqlext_operators.window.functions.definition import WindowFunction

ROWS: tuple[WindowFunction, ...] = ()
