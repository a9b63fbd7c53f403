"""A call of an aggregate in both languages; which columns may be its arguments.

`e._i` is the place of a row in input order. DuckDB's text stands in a SELECT with GROUP BY over rows `e` of a frame or
group; what it gives for no rows at all is `empty`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .scalars import INTEGERS
from .texts import Col


@dataclass(frozen=True)
class Call:
    """`ours` without OVER; `duck` over rows of `e`; the result's type, None where it is not checked."""

    ours: str
    duck: str
    dtype: str | None
    empty: str = "NULL"
    #: only where the frame's rows have an order; lag looks at `history` instead of the frame
    history: int | None = None


def numbers_of(cols: Sequence[Col]) -> list[Col]:
    """Columns that can be summed; the ends of periods of doubles are not added up."""
    numbers = [c for c in cols if c.dtype in (*INTEGERS, "double", "decimal(10,2)") and c.role != "special"]
    return [c for c in numbers if c.dtype != "double" or c.role != "end"]


def total_type(dtype: str) -> str:
    """Of a sum."""
    return "bigint" if dtype in INTEGERS else "decimal(20,2)" if dtype.startswith("decimal") else dtype


def mean_type(dtype: str) -> str:
    return "decimal(14,6)" if dtype.startswith("decimal") else "double"


def on_rows(text: str, alias: str) -> str:
    """A condition written for `alias`, for the rows `e`."""
    return re.sub(rf"\b{alias}\.", "e.", text) if alias else text
