"""The table of window functions (docs/reference/windows.md, section 5).

A new function is a row in one of the modules below and, if its evaluator is new, a factory in `window/evaluators`; the
analyzer, the processor, the documentation and the tests read this table.
"""

from __future__ import annotations

from types import MappingProxyType

from sqlext_operators.window.functions import basic, categories, frequencies, statistics
from sqlext_operators.window.functions.definition import WindowFunction

_ROWS = (*basic.ROWS, *statistics.ROWS, *frequencies.ROWS, *categories.ROWS)

#: Every window function by its name, without aliases.
FUNCTIONS = MappingProxyType({row.name: row for row in _ROWS})

_BY_NAME = {name: row for row in _ROWS for name in (row.name, *row.aliases)}


def lookup(name: str) -> WindowFunction | None:
    """The function of this name or alias, in any case; None if there is none."""
    return _BY_NAME.get(name.lower())
