"""The twins of functions/basic.py in plain Python: counts, sums, means, extremes and positions, products, conditions
and bits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any

import pyarrow as pa
from sqlext_operators.window.spec import Scalar

from tests.operators.window.twins.view import (
    ApproximateResult,
    Twin,
    Values,
    View,
    chosen,
    float_sum,
    is_finite,
    order_key,
)


def _count(view: View, condition: int | None = None) -> int:
    return len(chosen(view, condition))


def _sum(view: View, condition: int | None = None) -> Any:
    """Exact for integers (not wrapped) and decimals; for doubles the correctly rounded sum."""
    values = chosen(view, condition)
    if not values:
        return None
    if isinstance(values[0], float):
        return float_sum(values)
    if isinstance(values[0], Decimal):
        with localcontext() as context:
            context.prec = 100
            return sum(values, Decimal(0))
    return sum(values)


def _avg(view: View, condition: int | None = None) -> Any:
    values = chosen(view, condition)
    if not values:
        return None
    if isinstance(values[0], Decimal):
        with localcontext() as context:
            context.prec = 100
            mean = Fraction(sum(values, Decimal(0))) / len(values)
            step = Decimal(1).scaleb(-min(38, view.types[0].scale + 4))
            scaled = Fraction(abs(mean)) / Fraction(step)
            whole = Decimal(int(scaled + Fraction(1, 2)))
            return (whole if mean >= 0 else -whole) * step
    if isinstance(values[0], float):
        return float_sum(values) / len(values)
    if pa.types.is_duration(view.types[0]):
        twice = 2 * abs(sum(values)) // len(values)
        return ((twice + 1) // 2) * (1 if sum(values) >= 0 else -1)
    return float(Fraction(sum(values), len(values)))


def _distinct(view: View) -> View:
    """The view with one row for each distinct value."""
    rows = {order_key(row[0]): row for row in reversed(view.rows)}
    return replace(view, rows=list(rows.values()))


def _min(view: View, condition: int | None = None) -> Any:
    return min(chosen(view, condition), key=order_key, default=None)


def _max(view: View, condition: int | None = None) -> Any:
    return max(chosen(view, condition), key=order_key, default=None)


def _distinct_count(view: View) -> int:
    zero = zero_value(view.types[0])
    return len({order_key(zero if row[0] is None else row[0]) for row in view.rows})


def zero_value(dtype: pa.DataType) -> Any:
    """What a NULL counts as in distinct_count; None for a value of its own."""
    if pa.types.is_boolean(dtype):
        return False
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return ""
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return b""
    if pa.types.is_floating(dtype):
        return 0.0
    return None if pa.types.is_date(dtype) else 0


def _with_value(view: View) -> list[Any]:
    ignore_null = bool(view.constants[0])
    return [row[0] for row in view.rows if not (ignore_null and row[0] is None)]


def _first_value(view: View) -> Any:
    return next(iter(_with_value(view)), None)


def _last_value(view: View) -> Any:
    return next(reversed(_with_value(view)), None)


def _nth_newest(rows: list[Values], n: Scalar) -> Any:
    place = len(rows) - 1 - int(n or 0)
    return rows[place][0] if place >= 0 else None


def _neighbour(view: View, line: list[Values]) -> Any:
    """The value of a row so many places before the last one of a line, the row itself, or its default."""
    own = line[-1]
    place = len(line) - 1 - int(view.constants[0] or 0)
    return line[place][0] if place >= 0 else own[1] if len(own) > 1 else None


def _count_where_at(view: View) -> int:
    n, null_safe = view.constants
    wanted = _nth_newest([row[-1:] for row in view.rows], n)
    if wanted is None and not null_safe:
        return 0
    return sum(order_key(row[-2]) == order_key(wanted) and (len(row) == 2 or row[0] is not None) for row in view.rows)


def _frame_rows(view: View) -> list[dict[str, Any]]:
    return [{f"x{i + 1}": value for i, value in enumerate(row)} for row in view.rows]


BASIC: dict[str, Twin] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _min,
    "max": _max,
    "distinct_count": _distinct_count,
    "first_value": _first_value,
    "last_value": _last_value,
    "lag": lambda view: _neighbour(view, view.history),
    "lead": lambda view: _neighbour(view, [*reversed(view.future), view.history[-1]]),
    "count_where": lambda view: _count(view, condition=-1),
    "sum_where": lambda view: _sum(view, condition=-1),
    "avg_where": lambda view: _avg(view, condition=-1),
    "min_where": lambda view: _min(view, condition=-1),
    "max_where": lambda view: _max(view, condition=-1),
    "distinct_sum": lambda view: _sum(_distinct(view)),
    "distinct_avg": lambda view: _avg(_distinct(view)),
    "frame_at": lambda view: _nth_newest(view.rows, view.constants[0]),
    "count_where_at": _count_where_at,
    "frame_rows": _frame_rows,
}


def _try_sum(view: View) -> Any:
    total = BASIC["sum"](view)
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
    return ApproximateResult(result, abs(result) * len(values) * 2.0**-50)


SUMS: dict[str, Twin] = {"try_sum": _try_sum, "try_avg": BASIC["avg"], "product": _product}


def _truths(view: View, combine: Callable[[list[bool]], bool]) -> bool | None:
    values = chosen(view)
    return combine(values) if values else None


def _bits(view: View, combine: Callable[[int, int], int]) -> int | None:
    values = chosen(view)
    return reduce(combine, values) if values else None


BITS: dict[str, Twin] = {
    "count_if": lambda view: sum(row[0] is True for row in view.rows),
    "bool_or": lambda view: _truths(view, any),
    "bool_and": lambda view: _truths(view, all),
    "bit_and": lambda view: _bits(view, operator.and_),
    "bit_or": lambda view: _bits(view, operator.or_),
    "bit_xor": lambda view: _bits(view, operator.xor),
}
