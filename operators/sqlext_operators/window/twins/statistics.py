"""The twins of functions/statistics.py in plain Python: exact fractions, rounded once."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from sqlext_operators.window.twins.view import Measured, Twin, View, chosen, is_finite, order_key

_EPS = 2.0**-52


def _variance(view: View, *, sample: bool, root: bool = False) -> float | None:
    values = chosen(view)
    if len(values) <= sample:
        return None
    if not all(map(is_finite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((value - mean) ** 2 for value in exact), Fraction(0)) / (len(exact) - sample)
    result = _root(variance) if root else float(variance)
    return Measured(result, 16 * _EPS * result)


def _root(value: Fraction) -> float:
    """The square root of any size: scaled into the range of a double and back."""
    power = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(value / Fraction(4) ** power), power)


def _median(view: View) -> float | None:
    values = sorted(chosen(view), key=order_key)
    if not values:
        return None
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    if order_key(low) == order_key(high):
        return float(low)
    if not (is_finite(low) and is_finite(high)):
        return float(low) + float(high)
    return float((Fraction(low) + Fraction(high)) / 2)


def _entropy(view: View) -> float | None:
    counts = Counter(order_key(value) for value in chosen(view)).values()
    total = sum(counts)
    return math.fsum(count / total * math.log2(total / count) for count in counts) if total else None


def _nth_value_where(view: View) -> Any:
    n = int(view.constants[0] or 0)
    matches = [row[0] for row in view.rows if row[1] is True]
    if n == 0 or abs(n) > len(matches):
        return None
    return matches[n - 1 if n > 0 else n]


def _ew_avg(view: View) -> float | None:
    """The error is measured by the largest value: what cancels is lost."""
    decay = 1 - Fraction(float(view.constants[0] or 0))
    newest_first = chosen(view)[::-1]
    weights = [decay**i for i in range(len(newest_first))]
    values = [value for value, weight in zip(newest_first, weights, strict=True) if weight]
    if not values:
        return None
    if not all(map(is_finite, values)):
        return float(sum(value for value in values if not is_finite(value)))
    exact = sum(Fraction(value) * weight for value, weight in zip(values, weights, strict=False))
    return Measured(float(exact / sum(weights)), 8 * _EPS * max(abs(float(value)) for value in values))


def _drawdown(view: View) -> float | None:
    values = [value for value in chosen(view) if not value < 0]
    if not values:
        return None
    if any(math.isnan(value) for value in values):
        return math.nan
    falls = [_fall(peak, valley) for i, peak in enumerate(values) for valley in values[i:]]
    return max(falls)


def _fall(peak: Any, valley: Any) -> float:
    if valley >= peak:
        return 0.0
    return 1.0 if peak == math.inf else float(1 - Fraction(valley) / Fraction(peak))


#: The twins of functions/statistics.py.
TWINS: dict[str, Twin] = {
    "stddev": lambda view: _variance(view, sample=True, root=True),
    "stddev_pop": lambda view: _variance(view, sample=False, root=True),
    "var_samp": lambda view: _variance(view, sample=True),
    "var_pop": lambda view: _variance(view, sample=False),
    "median": _median,
    "entropy": _entropy,
    "nth_value_where": _nth_value_where,
    "ew_avg": _ew_avg,
    "drawdown": _drawdown,
}
