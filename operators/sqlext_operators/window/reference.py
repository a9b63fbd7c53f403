"""The brute-force twin of the window-union operator, in plain Python: which rows are in a frame (openmldb.md
section 3), and what each function makes of them (section 5). Tests and benchmarks compare the two.

Values are plain Python values; timestamps are integers of microseconds. A row is (order, source, values), order
None for NULL; a sequence is the list of one group's rows in the order of `Piece`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sqlext_operators.window.spec import Frame, Scalar

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """One row of a group's sequence."""

    order: int | None
    source: int
    values: Values


@dataclass(frozen=True)
class View:
    """What a function sees: the frame's rows oldest to newest, and the row's history with the row itself last."""

    rows: list[Values]
    history: list[Values]
    types: tuple[pa.DataType, ...]
    constants: tuple[Scalar, ...]


def others(frame: Frame, sequence: Sequence[Row], p: int) -> tuple[list[int], list[int]]:
    """Places of the rows before and behind row p that EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW leave."""
    left = []
    for i, row in enumerate(sequence):
        is_instance = frame.instance_not_in_window and row.source == 0
        is_same_time = frame.exclude_current_time and row.order == sequence[p].order
        if i != p and not is_instance and not is_same_time:
            left.append(i)
    return [i for i in left if i < p], [i for i in left if i > p]


def members(frame: Frame, sequence: Sequence[Row], p: int) -> list[int]:
    """Places of the rows in the frame of row p, oldest to newest."""
    past, future = others(frame, sequence, p)
    if frame.unit == "rows":
        line = [*past, p, *future]
        chosen = [
            i
            for offset, i in enumerate(line, -len(past))
            if (frame.start is None or offset >= frame.start) and (frame.end is None or offset <= frame.end)
        ]
    else:
        is_ahead = frame.start is not None and frame.start > 0
        is_history = frame.end is not None and frame.end < 0
        reach = [i for i in (*past, *future) if in_range(frame, sequence[p].order, sequence[i].order)]
        chosen = [] if is_ahead else [i for i in reach if i < p]
        chosen += [] if is_ahead or is_history else [p]
        chosen += [i for i in reach if i > p] if frame.end_following else []
    if frame.exclude_current_row:
        chosen = [i for i in chosen if i != p]
    return chosen if frame.maxsize is None else chosen[-frame.maxsize :]


def in_range(frame: Frame, current: int | None, order: int | None) -> bool:
    """Whether `order` is between the bounds of a row with order `current`; NULL is below every number."""
    if current is None:
        return order is None or frame.end is None
    if order is None:
        return frame.start is None
    is_above = frame.start is None or order >= current + frame.start
    is_below = frame.end is None or order <= current + frame.end
    return is_above and is_below


def _chosen(view: View, *, has_condition: bool) -> list[Any]:
    """The values that count; the rows themselves for ``*``."""
    rows = view.rows
    if has_condition:
        rows = [row[:-1] for row in rows if row[-1] is True]
    return [row[0] if row else row for row in rows if not row or row[0] is not None]


def _count(view: View, *, has_condition: bool = False) -> int:
    return len(_chosen(view, has_condition=has_condition))


def _sum(view: View, *, has_condition: bool = False) -> Any:
    """Exact for integers (not wrapped) and decimals; of doubles the correctly rounded sum."""
    values = _chosen(view, has_condition=has_condition)
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values)
    if isinstance(values[0], Decimal):
        with localcontext() as context:
            context.prec = 100
            return sum(values, Decimal(0))
    return sum(values)


def _float_sum(values: list[float]) -> float:
    if all(abs(value) < float("inf") for value in values):
        return float(sum(map(Fraction, values)))
    return sum(values)


def wrap(value: int, bits: int) -> int:
    """The integer that remains of `value` in `bits` bits of two's complement."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _avg(view: View, *, has_condition: bool = False) -> Any:
    values = _chosen(view, has_condition=has_condition)
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
        return _float_sum(values) / len(values)
    return float(Fraction(sum(values), len(values)))


def order_key(value: Any) -> Any:
    """What Spark orders by: NaN above all numbers, strings by their UTF-8 bytes."""
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value.encode() if isinstance(value, str) else value


def _min(view: View, *, has_condition: bool = False) -> Any:
    return min(_chosen(view, has_condition=has_condition), key=order_key, default=None)


def _max(view: View, *, has_condition: bool = False) -> Any:
    return max(_chosen(view, has_condition=has_condition), key=order_key, default=None)


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


def _frame_rows(view: View) -> list[dict[str, Any]]:
    return [{f"x{i + 1}": value for i, value in enumerate(row)} for row in view.rows]


#: The twin of every window function: what it makes of a view.
TWINS: dict[str, Callable[[View], Any]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _min,
    "max": _max,
    "distinct_count": _distinct_count,
    "first_value": _first_value,
    "last_value": _last_value,
    "lag": lambda view: _nth_newest(view.history, view.constants[0]),
    "count_where": lambda view: _count(view, has_condition=True),
    "sum_where": lambda view: _sum(view, has_condition=True),
    "avg_where": lambda view: _avg(view, has_condition=True),
    "min_where": lambda view: _min(view, has_condition=True),
    "max_where": lambda view: _max(view, has_condition=True),
    "frame_at": lambda view: _nth_newest(view.rows, view.constants[0]),
    "frame_rows": _frame_rows,
}


def evaluate(
    function: str,
    frame: Frame,
    sequence: Sequence[Row],
    types: tuple[pa.DataType, ...],
    constants: tuple[Scalar, ...],
) -> list[Any]:
    """The function's value for each FROM row of one group's sequence (rows of the window's sources only).

    Sums of integers are not wrapped, sums of decimals and their means not cut to the result's precision.
    """
    results = []
    for p, row in enumerate(sequence):
        if row.source != 0:
            continue
        rows = [sequence[i].values for i in members(frame, sequence, p)]
        history = [sequence[i].values for i in (*others(frame, sequence, p)[0], p)]
        results.append(TWINS[function](View(rows, history, types, constants)))
    return results
