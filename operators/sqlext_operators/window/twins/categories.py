"""The twins of functions/categories.py in plain Python."""

from __future__ import annotations

from sqlext_operators.window.twins.view import Twin

#: The twins of functions/categories.py.
TWINS: dict[str, Twin] = {}
