"""Do the rows of a result equal the expected ones?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

TOLERANCE = 1e-5

Row = Sequence[Any]


def same_value(actual: Any, expected: Any) -> bool:
    """Equal, NULL with NULL, NaN with NaN, floats to 1e-5 (relative above 1)."""
    if actual is None or expected is None:
        return actual is None and expected is None
    if isinstance(actual, bool) or isinstance(expected, bool):
        return bool(actual == expected)
    if isinstance(actual, int | float | Decimal) and isinstance(expected, int | float):
        if isinstance(actual, int) and isinstance(expected, int):
            return actual == expected
        a, b = float(actual), float(expected)
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(actual, float) and isinstance(expected, str):
        return str(actual).lower() == expected.lower()  # the case files spell NaN and infinities as text
    return bool(actual == expected)


def same_row(actual: Row, expected: Row) -> bool:
    return len(actual) == len(expected) and all(map(same_value, actual, expected))


def unmatched(actual: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What is left of two multisets of rows after pairing equal rows: (unexpected, missing)."""
    missing = list(expected)
    unexpected = []
    for row in actual:
        place = next((i for i, other in enumerate(missing) if same_row(row, other)), None)
        if place is None:
            unexpected.append(row)
        else:
            del missing[place]
    return unexpected, missing


def difference(actual: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """The first rows that differ, in words; None if the multisets are equal."""
    unexpected, missing = unmatched(actual, expected)
    if not unexpected and not missing:
        return None
    parts = [f"{len(actual)} rows, {len(unexpected)} of them wrong"]
    parts += [f"got {list(row)}" for row in unexpected[:2]]
    parts += [f"expected {list(row)}" for row in missing[:2]]
    return "; ".join(parts)
