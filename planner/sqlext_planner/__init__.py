"""Plans: from the logical plan of a statement to a Spark DataFrame."""

from __future__ import annotations

from sqlext_operators import __version__

__all__ = ["__version__"]
