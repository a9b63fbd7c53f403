"""What the operators of the period algebra have to compute: plain frozen data, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from sqlext_operators.columns.empty_periods import Empty

#: normalize   the maximal periods that a key's periods cover without a gap
#: gaps        what is not covered between the first start and the last end of a key
#: concurrent  the maximal periods with a constant number (at least 1) of a key's periods, with that number
#: difference  the maximal periods that input 0's periods of a key cover and input 1's do not
Operation = Literal["normalize", "gaps", "concurrent", "difference"]


@dataclass(frozen=True)
class PeriodAlgebraSpec:
    """One operation over the periods [start, end) of rows with equal keys; NULL keys are equal.

    `keys`, `start` and `end` name columns that every input has; `ends` is the type of both ends. A period with a NULL
    or NaN end covers nothing; `empty` says what one does that is empty or reversed. The output is the keys, then
    `start` and `end`, then for "concurrent" the column `count` (bigint). Periods of a key come in ascending order; they
    do not overlap, and touch only if their counts differ.
    """

    operation: Operation
    keys: tuple[str, ...]
    start: str
    end: str
    ends: pa.DataType
    count: str = ""
    empty: Empty = "drop"

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return 2 if self.operation == "difference" else 1
