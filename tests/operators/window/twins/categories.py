"""The twins of functions/categories.py in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tests.operators.window.twins.view import Twin, Values, View, float_sum, order_key


def key_text(key: Any, dtype: pa.DataType) -> str:
    """A category as text; timestamps are integers of microseconds, written in UTC."""
    if pa.types.is_timestamp(dtype):
        return f"{datetime(1970, 1, 1) + timedelta(seconds=key // 1_000_000):%Y-%m-%d %H:%M:%S}"
    return key.isoformat() if isinstance(key, date) else str(key)


def number_text(value: float) -> str:
    """An integer plain, a double as ``%f`` without the sign of a zero."""
    return str(value) if isinstance(value, int) else f"{value + 0.0:f}"


def _count(values: list[Any], dtype: pa.DataType) -> int:
    return len(values)


def _sum(values: list[Any], dtype: pa.DataType) -> float:
    if isinstance(values[0], int):
        half = 1 << (dtype.bit_width - 1)
        return int((sum(values) + half) % (2 * half) - half)
    total = float_sum(values)
    return float(np.float32(total)) if dtype == pa.float32() else total


def _avg(values: list[Any], dtype: pa.DataType) -> float:
    total = float_sum(values) if isinstance(values[0], float) else float(Fraction(sum(values)))
    return total / len(values)


def _min(values: list[Any], dtype: pa.DataType) -> Any:
    return min(values, key=order_key)


def _max(values: list[Any], dtype: pa.DataType) -> Any:
    return max(values, key=order_key)


_AGGREGATES: dict[str, Callable[[list[Any], pa.DataType], Any]] = {
    "count": _count, "sum": _sum, "avg": _avg, "min": _min, "max": _max
}  # fmt: skip


def _groups(view: View, rows: list[Values], value: int = 0) -> dict[Any, list[Any]]:
    """The values (column `value`) of each category, the last column; rows without x or category are left out."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if row[0] is not None and row[-1] is not None:
            groups.setdefault(row[-1], []).append(row[value])
    return groups


def _text(view: View, results: dict[Any, Any], order: str) -> str:
    pairs = sorted(results.items(), key=lambda pair: order_key(pair[0]), reverse=order != "keys")
    if order == "top_values":
        pairs.sort(key=lambda pair: order_key(pair[1]), reverse=True)
    if order != "keys":
        n = int(view.constants[0] or 0)
        pairs = pairs if n < 0 else pairs[:n]
    return ",".join(f"{key_text(key, view.types[-1])}:{number_text(value)}" for key, value in pairs)


def _twin(aggregate: str, order: str, *, where: bool) -> Twin:
    def twin(view: View) -> str:
        rows = [row for row in view.rows if row[1] is True] if where else view.rows
        dtype = _summed(view.types[0]) if aggregate == "sum" and not view.openmldb else view.types[0]
        results = {k: _AGGREGATES[aggregate](values, dtype) for k, values in _groups(view, rows).items()}
        return _text(view, results, order)

    return twin


def _summed(dtype: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(dtype) else pa.int64()


def _ratio(order: str) -> Twin:
    def twin(view: View) -> str:
        groups = _groups(view, view.rows, value=1)
        return _text(view, {key: sum(c is True for c in found) / len(found) for key, found in groups.items()}, order)

    return twin


#: The twins of functions/categories.py.
CATEGORIES: dict[str, Twin] = {
    **{f"{name}_cate": _twin(name, "keys", where=False) for name in _AGGREGATES},
    **{f"{name}_cate_where": _twin(name, "keys", where=True) for name in _AGGREGATES},
    **{f"top_n_key_{name}_cate_where": _twin(name, "top_keys", where=True) for name in _AGGREGATES},
    **{f"top_n_value_{name}_cate_where": _twin(name, "top_values", where=True) for name in _AGGREGATES},
    "top_n_key_ratio_cate": _ratio("top_keys"),
    "top_n_value_ratio_cate": _ratio("top_values"),
}
