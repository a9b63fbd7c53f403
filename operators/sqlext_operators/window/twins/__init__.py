"""The brute-force twin of every window function: its result for a view, in plain Python."""

from sqlext_operators.window.twins import basic, categories, frequencies, statistics
from sqlext_operators.window.twins.view import Twin, View

TWINS: dict[str, Twin] = {**basic.TWINS, **statistics.TWINS, **frequencies.TWINS, **categories.TWINS}

__all__ = ["TWINS", "Twin", "View"]
