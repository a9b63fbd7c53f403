"""Doubles as decimals and as texts, as Java writes them.

Spark turns a double into a decimal by its text. From version 19 on Java's text is the shortest that gives the double
back, the nearest of these, with two digits at least. Before, it may be longer, or not the nearest. Where the two could
differ and the version is not known to be 19, the value is left to Spark.

They do not differ for whole numbers that are exact, nor if 15 digits are enough (6 for a float) and the number is
neither near 0 nor beyond these whole numbers: no more than one decimal of so few digits is within half a unit of the
last place, and the older Java stops at it. In Java 17 it held for 3.9 million such doubles and 2.6 million floats.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

import numpy as np

from sqlext_operators.expressions.values import inexact

#: The first version of Java that writes the shortest text.
SHORTEST = 19
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)


def rounded(value: Decimal, digits: int) -> Decimal:
    """Half up to `digits` after the point, which may be negative."""
    return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=_WIDE)


#: Digits that are enough, and where the whole numbers end that are exact, of floats and doubles.
_SURE_DIGITS, _SURE_END, _SURE_START = {True: 6, False: 15}, {True: 2.0**24, False: 2.0**53}, 1e-5


def shortest(value: float, single: bool = False) -> Decimal:
    """The decimal of Java's text since version 19; `single` for a float32."""
    text = str(np.float32(value)) if single else repr(value)
    number = Decimal(text)
    if len(number.normalize(_WIDE).as_tuple().digits) > 1:
        return number
    two = Decimal(f"{Decimal(value):.1e}")  # of one digit: the nearest of two digits, if that is the same double
    back = float(np.float32(two)) if single else float(two)
    return two if back == value else number


def rounded_double(value: float, digits: int, java: int | None) -> Decimal:
    """A finite double as a decimal with `digits` after the point. Raises a TaskError if that depends on Java's version
    and `java` does not say enough."""
    result = rounded(shortest(value), digits)
    if java is None or java < SHORTEST:
        ends = [Decimal(math.nextafter(value, end)) for end in (-math.inf, math.inf)]
        certain = all(end.is_finite() and rounded(end, digits) == result for end in ends)
        if not certain and not _is_sure(value, single=False):
            raise inexact(f"the rounding of {value!r}")
    return result


def _is_sure(value: float, single: bool) -> bool:
    """Whether every Java writes the same text."""
    if value.is_integer() and abs(value) < _SURE_END[single]:
        return True
    digits = shortest(value, single).normalize(_WIDE).as_tuple().digits
    return len(digits) <= _SURE_DIGITS[single] and _SURE_START <= abs(value) < _SURE_END[single]


def double_text(value: float, java: int | None, single: bool = False) -> str:
    """Java's text of a double or a float. Raises a TaskError if it depends on Java's version."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    if (java is None or java < SHORTEST) and not _is_sure(value, single):
        raise inexact(f"the text of {value!r} under a Java before 19")
    with localcontext(_WIDE):
        sign, digits, exponent = shortest(value, single).normalize().as_tuple()
    assert isinstance(exponent, int)
    figures, point = "".join(map(str, digits)), len(digits) + exponent
    before = "-" if sign else ""
    if -3 < point <= 7:
        padded = figures.ljust(point, "0") if point > 0 else figures
        head, tail = (padded[:point], padded[point:]) if point > 0 else ("0", "0" * -point + padded)
        return f"{before}{head}.{tail or '0'}"
    return f"{before}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
