"""The twins of functions/sums.py in plain Python."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from sqlext_operators.window.twins import basic
from sqlext_operators.window.twins.view import Measured, Twin, View, chosen, is_finite


def _try_sum(view: View) -> Any:
    total = basic.TWINS["sum"](view)
    return None if isinstance(total, int) and not -(2**63) <= total < 2**63 else total


def _product(view: View) -> float | None:
    values = chosen(view)
    if not values:
        return None
    if not all(map(is_finite, values)):
        signs = math.prod(math.copysign(1.0, value) for value in values)
        if any(value == 0 or math.isnan(value) for value in values):
            return math.nan
        return math.copysign(math.inf, signs)
    exact = math.prod(map(Fraction, values))
    try:
        result = float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)
    return Measured(result, abs(result) * len(values) * 2.0**-50)


#: The twins of functions/sums.py.
TWINS: dict[str, Twin] = {"try_sum": _try_sum, "try_avg": basic.TWINS["avg"], "product": _product}
