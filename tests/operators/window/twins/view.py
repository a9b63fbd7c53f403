"""What the brute-force twins of the window functions see, and what they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlext_operators.window.spec import Scalar

Values = tuple[Any, ...]


@dataclass(frozen=True)
class View:
    """What a function sees: the frame's rows oldest to newest, and the row's history with the row itself last.
    `future`: the rows after it. `openmldb` as in `Call`."""

    rows: list[Values]
    history: list[Values]
    types: tuple[pa.DataType, ...]
    constants: tuple[Scalar, ...]
    openmldb: bool = False
    future: list[Values] = field(default_factory=list)


Twin = Callable[[View], Any]


def chosen(view: View, condition: int | None = None) -> list[Any]:
    """The values that count, oldest first: not NULL, and with a true condition; the rows themselves for ``*``.

    `condition` is the condition's place in a row, as in a list (-1 is the last).
    """
    rows = view.rows
    if condition is not None:
        place = condition % len(rows[0]) if rows else 0
        rows = [(*row[:place], *row[place + 1 :]) for row in rows if row[place] is True]
    return [row[0] if row else row for row in rows if not row or row[0] is not None]


def order_key(value: Any) -> Any:
    """What Spark orders by: NaN above all numbers, strings by their UTF-8 bytes."""
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value.encode() if isinstance(value, str) else value


def float_sum(values: list[float]) -> float:
    """The correctly rounded sum of doubles; for infinities and NaNs, Python's."""
    if all(abs(value) < float("inf") for value in values):
        return float(sum(map(Fraction, values)))
    return sum(values)


def is_finite(value: Any) -> bool:
    """Whether a number is neither NaN nor infinite."""
    return not isinstance(value, float) or math.isfinite(value)


class ApproximateResult(float):
    """A result that the function may miss by `error`."""

    error: float

    def __new__(cls, value: float, error: float) -> ApproximateResult:
        result = super().__new__(cls, value)
        result.error = error
        return result
