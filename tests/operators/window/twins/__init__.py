"""The brute-force twin of every window function: its result for a view, in plain Python."""

from tests.operators.window.twins.basic import BASIC, BITS, SUMS
from tests.operators.window.twins.categories import CATEGORIES
from tests.operators.window.twins.collections import COLLECTIONS, FREQUENCIES
from tests.operators.window.twins.statistics import MOMENTS, QUANTILES, STATISTICS
from tests.operators.window.twins.view import Twin, View

TWINS: dict[str, Twin] = {
    name: twin
    for twins in (BASIC, COLLECTIONS, SUMS, BITS, STATISTICS, QUANTILES, MOMENTS, FREQUENCIES, CATEGORIES)
    for name, twin in twins.items()
}

__all__ = ["TWINS", "Twin", "View"]
