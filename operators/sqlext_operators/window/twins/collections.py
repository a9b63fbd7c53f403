"""The twins of functions/collections.py in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlext_operators.window.twins.view import Twin, View, chosen, order_key


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


#: The twins of functions/collections.py.
TWINS: dict[str, Twin] = {
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
