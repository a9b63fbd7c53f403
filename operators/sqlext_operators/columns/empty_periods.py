"""What a period that is empty or reversed does (docs/reference/periods.md, section 6)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.times import shown
from sqlext_operators.errors import RowError

#: It counts for nothing, raises EmptyPeriodError, or ([t, t) only) counts as the one instant t.
Empty = Literal["drop", "error", "point"]


class EmptyPeriodError(RowError):
    """Periods that are empty or reversed, where the statement says that there are none."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message, help, condition="empty-period")


def refuse_empty(start: pa.Array, end: pa.Array, bad: Bools) -> None:
    """Raises EmptyPeriodError if a row is bad: its period [start, end) is empty or reversed."""
    places = np.flatnonzero(bad)
    if len(places):
        row = int(places[0])
        raise EmptyPeriodError(
            f"{len(places)} of {len(bad)} rows have an empty or reversed period, "
            f"such as [{shown(start, row)}, {shown(end, row)})",
            "correct or leave out such rows, or set sqlext.interval.empty=drop",
        )
