"""The rows of the largest and the most frequent values, and of lists of window parts."""

from __future__ import annotations

from sqlext_operators.window.functions.definition import WindowFunction

ROWS: tuple[WindowFunction, ...] = ()
