"""Names of tables."""

from __future__ import annotations

import re


def last_part(name: str) -> str:
    """The last part of a name whose parts are joined by dots, without its backticks."""
    found = re.search(r"`((?:[^`]|``)*)`$", name)
    return found[1].replace("``", "`") if found is not None else name.rpartition(".")[2]
