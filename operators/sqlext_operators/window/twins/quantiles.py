"""The twins of functions/quantiles.py in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlext_operators.window.twins.view import Twin, View, order_key


def _sorted(view: View, *, descending: bool = False) -> list[Any]:
    """The values in order, each as often as its frequency says."""
    values = []
    for value, *frequency in view.rows:
        if value is not None:
            values += [value] * ((frequency[0] or 0) if frequency else 1)
    values = [value + 0.0 if isinstance(value, float) else value for value in values]
    return sorted(values, key=order_key, reverse=descending)


def _continuous(values: Sequence[Any], p: float) -> float | None:
    if not values:
        return None
    place = (len(values) - 1) * p
    low, high = math.floor(place), math.ceil(place)
    if order_key(values[low]) == order_key(values[high]):
        return float(values[low])
    a, b = float(values[low]), float(values[high])
    return a + (b - a) * (place - low)


def _nearest(values: Sequence[Any], p: float) -> Any:
    return values[max(0, math.ceil(len(values) * p) - 1)] if values else None


def _discrete(values: Sequence[Any], p: float) -> float | None:
    found = _nearest(values, p)
    return None if found is None else float(found)


def _twin(find: Any, *, several: bool = False, directed: bool = False) -> Twin:
    def twin(view: View) -> Any:
        constants: list[Any] = list(view.constants)
        values = _sorted(view, descending=bool(constants.pop(0)) if directed else False)
        if not several:
            return find(values, float(constants[0]))
        return [find(values, float(p)) for p in constants] if values else None

    return twin


#: The twins of functions/quantiles.py.
TWINS: dict[str, Twin] = {
    "percentile": _twin(_continuous),
    "percentile_approx": _twin(_nearest),
    "percentiles": _twin(_continuous, several=True),
    "percentiles_frequency": _twin(_continuous, several=True),
    "approx_percentiles": _twin(_nearest, several=True),
    "approx_percentiles_accuracy": lambda view: TWINS["approx_percentiles"](
        replace(view, constants=view.constants[1:])
    ),
    "percentile_cont": _twin(_continuous, directed=True),
    "percentile_disc": _twin(_discrete, directed=True),
    "percentile_conts": _twin(_continuous, several=True, directed=True),
    "percentile_discs": _twin(_discrete, several=True, directed=True),
}
