"""The twins of functions/statistics.py in plain Python: exact fractions, rounded once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.operators.window.twins.basic import BASIC
from tests.operators.window.twins.view import ApproximateResult, Twin, View, chosen, is_finite, order_key

_EPS = 2.0**-52
#: Errors are a few units in the last place of what cancels.
_CANCELLED = 64 * 2.0**-52


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
    return ApproximateResult(result, 16 * _EPS * result)


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
    return ApproximateResult(float(exact / sum(weights)), 8 * _EPS * max(abs(float(value)) for value in values))


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


STATISTICS: dict[str, Twin] = {
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


def _sorted(view: View, *, descending: bool = False) -> list[Any]:
    """The values in order, each as often as its frequency says."""
    values = []
    for value, *frequency in view.rows:
        if value is not None:
            values += [value] * ((frequency[0] or 0) if frequency else 1)
    values = [value + 0.0 if isinstance(value, float) else value for value in values]
    return sorted(values, key=order_key, reverse=descending)


def _continuous(values: Sequence[Any], p: float) -> float | None:
    if not values:
        return None
    place = (len(values) - 1) * p
    low, high = math.floor(place), math.ceil(place)
    if order_key(values[low]) == order_key(values[high]):
        return float(values[low])
    a, b = float(values[low]), float(values[high])
    return a + (b - a) * (place - low)


def _nearest(values: Sequence[Any], p: float) -> Any:
    return values[max(0, math.ceil(len(values) * p) - 1)] if values else None


def _discrete(values: Sequence[Any], p: float) -> float | None:
    found = _nearest(values, p)
    return None if found is None else float(found)


def _twin(find: Any, *, several: bool = False, directed: bool = False) -> Twin:
    def twin(view: View) -> Any:
        constants: list[Any] = list(view.constants)
        values = _sorted(view, descending=bool(constants.pop(0)) if directed else False)
        if not several:
            return find(values, float(constants[0]))
        return [find(values, float(p)) for p in constants] if values else None

    return twin


QUANTILES: dict[str, Twin] = {
    "percentile": _twin(_continuous),
    "percentile_approx": _twin(_nearest),
    "percentiles": _twin(_continuous, several=True),
    "percentiles_frequency": _twin(_continuous, several=True),
    "approx_percentiles": _twin(_nearest, several=True),
    "approx_percentiles_accuracy": lambda view: QUANTILES["approx_percentiles"](
        replace(view, constants=view.constants[1:])
    ),
    "percentile_cont": _twin(_continuous, directed=True),
    "percentile_disc": _twin(_discrete, directed=True),
    "percentile_conts": _twin(_continuous, several=True, directed=True),
    "percentile_discs": _twin(_discrete, several=True, directed=True),
}


def _mean(values: list[Any]) -> float:
    if not all(map(is_finite, values)):
        return float(sum(map(float, values)))
    exact = float(sum(map(Fraction, values), Fraction(0)) / len(values))
    return ApproximateResult(exact, _CANCELLED * max(map(abs, map(float, values))))


def _products(a: list[Any], b: list[Any]) -> float:
    """Sum of the products of the distances from the means."""
    if not all(map(is_finite, [*a, *b])):
        return math.nan
    p, q = [Fraction(v) for v in a], [Fraction(v) for v in b]
    mean_p, mean_q = sum(p, Fraction(0)) / len(p), sum(q, Fraction(0)) / len(q)
    total = sum(((x - mean_p) * (y - mean_q) for x, y in zip(p, q, strict=True)), Fraction(0))
    size = sum((abs((x - mean_p) * (y - mean_q)) for x, y in zip(p, q, strict=True)), Fraction(0))
    squares = [sum(((x - m) ** 2 for x in v), Fraction(0)) for v, m in ((p, mean_p), (q, mean_q))]
    return ApproximateResult(
        float(total), _CANCELLED * max(float(size), math.sqrt(float(squares[0]) * float(squares[1])))
    )


def _error(value: float) -> float:
    return getattr(value, "error", 0.0)


def _ratio(value: float, below: float, scale: float = 1.0) -> ApproximateResult:
    """value / below * scale, `below` exact but for its last places."""
    result = float(value) / float(below) * scale
    return ApproximateResult(result, _error(value) / abs(below) * abs(scale) + _CANCELLED * abs(result))


def _pairs(finish: Callable[[list[Any], list[Any]], float | None]) -> Twin:
    """The twin of a function of (y, x)."""

    def twin(view: View) -> float | None:
        rows = [row for row in view.rows if row[0] is not None and row[1] is not None]
        return finish([row[0] for row in rows], [row[1] for row in rows])

    return twin


def _slope(y: list[Any], x: list[Any]) -> ApproximateResult | None:
    xx = _products(x, x) if x else 0.0
    return None if xx == 0 else _ratio(_products(x, y), xx)


def _intercept(y: list[Any], x: list[Any]) -> float | None:
    slope = _slope(y, x)
    if slope is None:
        return None
    mean_x, mean_y = _mean(x), _mean(y)
    error = _error(slope) * abs(mean_x) + _error(mean_x) * abs(slope) + _error(mean_y)
    return ApproximateResult(mean_y - slope * mean_x, error + _CANCELLED * (abs(mean_y) + abs(slope * mean_x)))


def _corr(y: list[Any], x: list[Any]) -> ApproximateResult | None:
    if len(x) < 2 or _products(x, x) == 0 or _products(y, y) == 0:
        return None
    return _correlation(y, x)


def _correlation(y: list[Any], x: list[Any]) -> ApproximateResult | None:
    squares = _products(x, x) * _products(y, y)
    return None if squares == 0 else _ratio(_products(x, y), math.sqrt(squares))


def _r2(y: list[Any], x: list[Any]) -> float | None:
    if not x or _products(x, x) == 0:
        return None
    if _products(y, y) == 0:
        return 1.0
    corr = _correlation(y, x)
    return None if corr is None else ApproximateResult(corr * corr, 2 * abs(corr) * corr.error + corr.error**2)


def _powers(view: View, power: int) -> float | None:
    values = chosen(view)
    if not values:
        return None
    if not all(map(is_finite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    m2 = float(sum(((v - mean) ** 2 for v in exact), Fraction(0)))
    top = float(sum(((v - mean) ** power for v in exact), Fraction(0)))
    below = m2 * m2 if power == 4 else math.sqrt(m2 * m2 * m2)
    if below == 0:
        return None
    n = len(values)
    result = n * top / below - 3 if power == 4 else math.sqrt(n) * top / below
    return ApproximateResult(result, _CANCELLED * n * n)


def _mean_of(place: int) -> Twin:
    def twin(view: View) -> Any:
        rows = [(row[place],) for row in view.rows if None not in row]
        return BASIC["avg"](replace(view, rows=rows, types=(view.types[place],)))

    return twin


MOMENTS: dict[str, Twin] = {
    "covar_pop": _pairs(lambda y, x: _ratio(_products(x, y), len(x)) if x else None),
    "covar_samp": _pairs(lambda y, x: _ratio(_products(x, y), len(x) - 1) if len(x) > 1 else None),
    "corr": _pairs(_corr),
    "regr_count": _pairs(lambda y, x: len(x)),
    "regr_avgx": _mean_of(1),
    "regr_avgy": _mean_of(0),
    "regr_sxx": _pairs(lambda y, x: _products(x, x) if x else None),
    "regr_syy": _pairs(lambda y, x: _products(y, y) if y else None),
    "regr_sxy": _pairs(lambda y, x: _products(x, y) if x else None),
    "regr_slope": _pairs(_slope),
    "regr_intercept": _pairs(_intercept),
    "regr_r2": _pairs(_r2),
    "skewness": lambda view: _powers(view, 3),
    "kurtosis": lambda view: _powers(view, 4),
}
