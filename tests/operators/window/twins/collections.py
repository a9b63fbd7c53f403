"""The twins of functions/collections.py in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.operators.window.twins.view import Twin, View, chosen, order_key


def _nth_value(view: View) -> Any:
    n, ignore_null = int(view.constants[0] or 0), view.constants[1]
    values = [row[0] for row in view.rows if not (ignore_null and row[0] is None)]
    return values[n - 1] if n <= len(values) else None


def _extreme_by(view: View, *, largest: bool) -> Any:
    rows = [row for row in view.rows if row[1] is not None]
    if not rows:
        return None
    keys = [order_key(row[1]) for row in rows]
    best = max(keys) if largest else min(keys)
    return [row[0] for row, key in zip(rows, keys, strict=True) if key == best][-1]


def _mode(view: View, *, directed: bool = False) -> Any:
    values = {order_key(value): value for value in chosen(view)}
    counts = Counter(map(order_key, chosen(view)))
    if not counts:
        return None
    best = [key for key, count in counts.items() if count == max(counts.values())]
    found = values[max(best) if directed and view.constants[0] else min(best)]
    return found + 0.0 if isinstance(found, float) else found


def _set(view: View) -> list[Any]:
    values: dict[Any, Any] = {}
    for value in chosen(view):
        values.setdefault(order_key(value), value + 0.0 if isinstance(value, float) else value)
    return list(values.values())


def _joined(values: list[Any], delimiter: Any) -> Any:
    if not values:
        return None
    text = delimiter or ""
    return text.encode().join(values) if isinstance(values[0], bytes) else text.join(values)


def _ordered_text(view: View) -> Any:
    delimiter, descending, nulls_first = view.constants
    rows = [row for row in view.rows if row[0] is not None]
    nulls = [row for row in rows if row[1] is None]
    others = [row for row in rows if row[1] is not None]
    others.sort(key=lambda row: order_key(row[1]), reverse=bool(descending))  # equal ones stay in their order
    found = [*nulls, *others] if nulls_first else [*others, *nulls]
    return _joined([row[0] for row in found], delimiter)


COLLECTIONS: dict[str, Twin] = {
    "nth_value": _nth_value,
    "max_by": lambda view: _extreme_by(view, largest=True),
    "min_by": lambda view: _extreme_by(view, largest=False),
    "mode": _mode,
    "mode_within_group": lambda view: _mode(view, directed=True),
    "approx_count_distinct": lambda view: len(set(map(order_key, chosen(view)))),
    "collect_list": chosen,
    "collect_set": _set,
    "listagg": lambda view: _joined(chosen(view), view.constants[0]),
    "listagg_within_group": _ordered_text,
}


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


FREQUENCIES: dict[str, Twin] = {
    "top": _top,
    "topn_frequency": _topn_frequency,
    "top1_ratio": _top1_ratio,
    "window_split": _window_split,
    "window_split_by_key": lambda view: _window_split(view, 0),
    "window_split_by_value": lambda view: _window_split(view, 1),
}
