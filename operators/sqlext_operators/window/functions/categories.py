"""The rows of aggregates by category."""

from __future__ import annotations

from sqlext_operators.window.functions.definition import WindowFunction

ROWS: tuple[WindowFunction, ...] = ()
