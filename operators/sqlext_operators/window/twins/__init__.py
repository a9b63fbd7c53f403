"""The brute-force twin of every window function: its result for a view, in plain Python."""

from sqlext_operators.window.twins import (
    basic,
    bits,
    categories,
    collections,
    frequencies,
    moments,
    quantiles,
    statistics,
    sums,
)
from sqlext_operators.window.twins.view import Twin, View

TWINS: dict[str, Twin] = {
    name: twin
    for module in (basic, collections, sums, bits, statistics, quantiles, moments, frequencies, categories)
    for name, twin in module.TWINS.items()
}

__all__ = ["TWINS", "Twin", "View"]
