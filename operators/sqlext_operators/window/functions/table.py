"""The table of window functions (docs/reference/windows.md, section 5).

A new function is a row in one of the modules below and, if its evaluator is new, a class in `window/evaluators`; the
analyzer, the processor, the documentation and the tests read this table.
"""

from __future__ import annotations

from sqlext_operators.window.functions import basic, categories, frequencies, statistics
from sqlext_operators.window.functions.definition import WindowFunction

#: Every window function by its name, without aliases.
FUNCTIONS = {row.name: row for row in (*basic.ROWS, *statistics.ROWS, *frequencies.ROWS, *categories.ROWS)}


def lookup(name: str) -> WindowFunction | None:
    """The function of this name or alias, in any case; None if there is none."""
    lower = name.lower()
    return FUNCTIONS.get(lower) or next((row for row in FUNCTIONS.values() if lower in row.aliases), None)
