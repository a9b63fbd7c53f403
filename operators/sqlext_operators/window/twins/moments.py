"""The twins of functions/moments.py in plain Python: exact fractions, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlext_operators.window.twins import basic
from sqlext_operators.window.twins.view import Measured, Twin, View, chosen, is_finite

#: Errors are a few units in the last place of what cancels.
_EPS = 64 * 2.0**-52


def _mean(values: list[Any]) -> float:
    if not all(map(is_finite, values)):
        return float(sum(map(float, values)))
    exact = float(sum(map(Fraction, values), Fraction(0)) / len(values))
    return Measured(exact, _EPS * max(map(abs, map(float, values))))


def _products(a: list[Any], b: list[Any]) -> float:
    """Sum of the products of the distances from the means."""
    if not all(map(is_finite, [*a, *b])):
        return math.nan
    p, q = [Fraction(v) for v in a], [Fraction(v) for v in b]
    mean_p, mean_q = sum(p, Fraction(0)) / len(p), sum(q, Fraction(0)) / len(q)
    total = sum(((x - mean_p) * (y - mean_q) for x, y in zip(p, q, strict=True)), Fraction(0))
    size = sum((abs((x - mean_p) * (y - mean_q)) for x, y in zip(p, q, strict=True)), Fraction(0))
    squares = [sum(((x - m) ** 2 for x in v), Fraction(0)) for v, m in ((p, mean_p), (q, mean_q))]
    return Measured(float(total), _EPS * max(float(size), math.sqrt(float(squares[0]) * float(squares[1]))))


def _error(value: float) -> float:
    return getattr(value, "error", 0.0)


def _ratio(value: float, below: float, scale: float = 1.0) -> Measured:
    """value / below * scale, `below` exact but for its last places."""
    result = float(value) / float(below) * scale
    return Measured(result, _error(value) / abs(below) * abs(scale) + _EPS * abs(result))


def _pairs(finish: Callable[[list[Any], list[Any]], float | None]) -> Twin:
    """The twin of a function of (y, x)."""

    def twin(view: View) -> float | None:
        rows = [row for row in view.rows if row[0] is not None and row[1] is not None]
        return finish([row[0] for row in rows], [row[1] for row in rows])

    return twin


def _slope(y: list[Any], x: list[Any]) -> Measured | None:
    xx = _products(x, x) if x else 0.0
    return None if xx == 0 else _ratio(_products(x, y), xx)


def _intercept(y: list[Any], x: list[Any]) -> float | None:
    slope = _slope(y, x)
    if slope is None:
        return None
    mean_x, mean_y = _mean(x), _mean(y)
    error = _error(slope) * abs(mean_x) + _error(mean_x) * abs(slope) + _error(mean_y)
    return Measured(mean_y - slope * mean_x, error + _EPS * (abs(mean_y) + abs(slope * mean_x)))


def _corr(y: list[Any], x: list[Any]) -> Measured | None:
    if len(x) < 2:
        return None
    squares = _products(x, x) * _products(y, y)
    return None if squares == 0 else _ratio(_products(x, y), math.sqrt(squares))


def _r2(y: list[Any], x: list[Any]) -> float | None:
    if not x or _products(x, x) == 0:
        return None
    if _products(y, y) == 0:
        return 1.0
    corr = _corr(y, x)
    return None if corr is None else Measured(corr * corr, 2 * abs(corr) * corr.error + corr.error**2)


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
    return Measured(result, _EPS * n * n)


def _mean_of(place: int) -> Twin:
    def twin(view: View) -> Any:
        rows = [(row[place],) for row in view.rows if None not in row]
        return basic.TWINS["avg"](replace(view, rows=rows, types=(view.types[place],)))

    return twin


#: The twins of functions/moments.py.
TWINS: dict[str, Twin] = {
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
