"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from statistics import NormalDist


def t_quantile(confidence: float, freedom: float) -> float:
    """How many standard errors to each side hold a share `confidence` in (0, 1) of a t distribution.

    `freedom` (degrees of freedom) is rounded down to an integer, at least 1. From 3 on by Hill's expansion (G. W. Hill,
    Algorithm 396, CACM 13(10), 1970), which is exact to 5 digits.
    """
    tail = 1 - confidence
    degrees = max(1, math.floor(min(freedom, 1e6)))
    if degrees == 1:
        return 1 / math.tan(tail * math.pi / 2)
    if degrees == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20_700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * tail) ** (2 / degrees)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2)
        y = x * x
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3) + 0.5 / (degrees + 4)) * y
            - 1
        ) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)
