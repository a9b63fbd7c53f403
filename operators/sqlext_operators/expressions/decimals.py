"""Arithmetic of decimals whose exact result has more digits than its type: rounded half up, as Spark does.

What needs no rounding is Arrow's (`nodes.TaskArithmetic`). Here each value is a Python number: exact, of any size.
Spark cuts a product to 39 digits and a quotient to 39 digits after the point before it rounds to the result's type.
Python's own operators round to 28 digits: only methods of a context, and those that copy, are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from functools import partial

import pyarrow as pa

from sqlext_operators.expressions.decimal_texts import rounded
from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.values import Kernel, Values, by_row, division_by_zero, inexact, overflow

_EXACT = Context(prec=400, rounding=ROUND_DOWN)
_PRODUCT = Context(prec=39, rounding=ROUND_DOWN)
_QUOTIENT_DIGITS = 39


def fitted(value: Decimal, kind: pa.DataType, checked: bool) -> Decimal | None:
    """The value half up in a decimal type; if it has too many digits, None or, if `checked`, a TaskError."""
    result = rounded(value, kind.scale)
    if len(result.as_tuple().digits) <= kind.precision:
        return result
    if checked:
        raise overflow(f"a number in decimal({kind.precision},{kind.scale})")
    return None


Compute = Callable[[Decimal, Decimal], "Decimal | None"]


def _arithmetic(arguments: Sequence[pa.Array], call: TaskCall, compute: Compute) -> Values:
    """``a sign b``; option: whether errors are raised, for which NULL stands without."""
    checked = call.options[0]

    def computed(left: Decimal, right: Decimal) -> Decimal | None:
        value = compute(left, right)
        if value is not None:
            return fitted(value, call.kind, checked)
        if checked:
            raise division_by_zero()
        return None

    return by_row(arguments, call, computed)


def _quotient(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    shift = Decimal(10) ** _QUOTIENT_DIGITS
    above, below = _EXACT.multiply(left, shift).copy_abs(), right.copy_abs()
    scale = 10 ** max(_places(above), _places(below))
    numerator, denominator = int(_EXACT.multiply(above, scale)), int(_EXACT.multiply(below, scale))
    quotient = Decimal(numerator // denominator).scaleb(-_QUOTIENT_DIGITS, _EXACT)
    return quotient.copy_negate() if (left < 0) != (right < 0) else quotient


def _places(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _remainder(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    return _EXACT.remainder(left, right)


def _whole_quotient(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    quotient = _EXACT.divide_int(left, right)
    if len(quotient.as_tuple().digits) > _PRODUCT.prec:
        raise inexact("a quotient of more than 39 digits")
    return quotient


def _div(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``a DIV b`` of decimals as a bigint, which wraps around; option: whether a zero divisor is an error."""
    checked = call.options[0]

    def computed(left: Decimal, right: Decimal) -> int | None:
        value = _whole_quotient(left, right)
        if value is None:
            if checked:
                raise division_by_zero()
            return None
        return (int(value) + 2**63) % 2**64 - 2**63

    return by_row(arguments, call, computed)


def _round(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Half up; options: digits after the point, whether a number that does not fit is an error."""
    digits, checked = call.options
    return by_row(arguments, call, lambda value: fitted(rounded(value, digits), call.kind, checked))


def _floor(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, lambda value: value.to_integral_value("ROUND_FLOOR", _EXACT))


def _ceil(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, lambda value: value.to_integral_value("ROUND_CEILING", _EXACT))


def _signed(arguments: Sequence[pa.Array], call: TaskCall, change: Callable[[Decimal], Decimal]) -> Values:
    """``- x`` and abs(x)."""

    def changed(value: Decimal) -> Decimal:
        if len(value.as_tuple().digits) > _SCALA_DIGITS:
            raise inexact(f"the sign of {value}")  # Spark loses digits of it
        return change(value)

    return by_row(arguments, call, changed)


#: Scala's decimals, of which Spark changes the sign, have no more digits.
_SCALA_DIGITS = 34

_COMPUTED: dict[str, Compute] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _PRODUCT.multiply,
    "/": _quotient,
    "%": _remainder,
}

KERNELS: dict[str, Kernel] = {
    **{f"decimal {sign}": partial(_arithmetic, compute=compute) for sign, compute in _COMPUTED.items()},
    "decimal negate": partial(_signed, change=Decimal.copy_negate),
    "decimal abs": partial(_signed, change=Decimal.copy_abs),
    "decimal div": _div,
    "decimal round": _round,
    "decimal floor": _floor,
    "decimal ceil": _ceil,
}
