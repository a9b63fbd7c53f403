"""The twins of functions/frequencies.py in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sqlext_operators.window.twins.view import Twin, View, chosen, order_key


def value_text(value: Any, dtype: pa.DataType) -> str:
    """A value as text; timestamps are integers of microseconds, written in UTC."""
    if pa.types.is_timestamp(dtype):
        return str(datetime(1970, 1, 1) + timedelta(seconds=value // 1_000_000))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value + 0.0:f}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date) else str(value)


def _top(view: View) -> str:
    values = sorted(chosen(view), key=order_key, reverse=True)[: int(view.constants[0] or 0)]
    return ",".join(value_text(value, view.types[0]) for value in values)


def _frequencies(view: View) -> list[tuple[int, Any, Any]]:
    """(-count, order, value) of each value, the most frequent first, the smaller first of equally frequent ones."""
    values = {order_key(value): value for value in chosen(view)}
    counts = Counter(map(order_key, chosen(view)))
    return sorted(((-count, key, values[key]) for key, count in counts.items()), key=lambda entry: entry[:2])


def _topn_frequency(view: View) -> str:
    n = int(view.constants[0] or 0)
    texts = [value_text(value, view.types[0]) for _, _, value in _frequencies(view)]
    return ",".join((texts + ["NULL"] * n)[:n]) if view.rows else ""


def _top1_ratio(view: View) -> float:
    counts = [-count for count, _, _ in _frequencies(view)]
    return counts[0] / sum(counts) if counts else 0.0


def _window_split(view: View, field: int | None = None) -> list[str]:
    parts: list[str] = []
    for (text,) in reversed(view.rows):
        if text is None or "" in view.constants:
            continue
        for part in text.split(view.constants[0]):
            pieces = part.split(view.constants[-1])
            if field is None:
                parts.append(part)
            elif len(pieces) > 1:
                parts.append(pieces[field])
    return parts


#: The twins of functions/frequencies.py.
TWINS: dict[str, Twin] = {
    "top": _top,
    "topn_frequency": _topn_frequency,
    "top1_ratio": _top1_ratio,
    "window_split": _window_split,
    "window_split_by_key": lambda view: _window_split(view, 0),
    "window_split_by_value": lambda view: _window_split(view, 1),
}
