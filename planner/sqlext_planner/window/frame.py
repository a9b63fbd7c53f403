"""A window frame in the user's terms, and its resolution to the order column's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlext_operators.window.spec import Frame

from sqlext_planner.errors import AnalysisError
from sqlext_planner.tree import Clause

Direction = Literal["preceding", "following"]

#: Microseconds in each unit. The users' text has no word for the first: they write INTERVAL.
UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


@dataclass(frozen=True)
class Ticks:
    """The unit that an order column counts in: so many in an amount without a unit, and in a day."""

    plain: int
    day: int

    def of(self, amount: int, unit: str) -> int:
        """Ticks in an amount. Raises AnalysisError if they are not whole, which is found late where the type of the
        order column was not known before."""
        if not self.is_whole(amount, unit):
            raise AnalysisError(
                f"a frame bound of {shown_amount(amount, unit)} is no whole number of units of the order column",
                condition="window-frame",
                help="write whole days over a date, whole milliseconds over an integer",
            )
        return amount * self.day * UNITS[unit] // UNITS["d"] if unit else amount * self.plain

    def is_whole(self, amount: int, unit: str) -> bool:
        """Whether an amount is a whole number of ticks."""
        return not unit or amount * self.day * UNITS[unit] % UNITS["d"] == 0


#: An integer's own units, in which a time unit means milliseconds; and what ROWS counts.
ONES = Ticks(1, 86_400_000)
MICROSECONDS = Ticks(1_000, UNITS["d"])
DAYS = Ticks(1, 1)


def ticks_of(order_dtype: str | None) -> Ticks:
    """What ROWS_RANGE counts over an order column of a Spark type; those of an integer if it is unknown."""
    if order_dtype is None:
        return ONES
    return DAYS if order_dtype == "date" else MICROSECONDS if order_dtype.startswith("timestamp") else ONES


def shown_amount(amount: int, unit: str) -> str:
    """An amount as it may be written."""
    return f"INTERVAL {amount} MICROSECONDS" if unit == "us" else f"{amount}{unit}"


@dataclass(frozen=True)
class Bound:
    """One end of a frame: ``3h OPEN PRECEDING`` is Bound("preceding", 3, "h", True).

    `amount` None is UNBOUNDED; CURRENT ROW, 0 PRECEDING and 0 FOLLOWING are all amount 0.
    A unitless amount counts rows, or units of the order column (milliseconds for a timestamp, days for a date).
    """

    direction: Direction
    amount: int | None
    unit: str = ""
    open: bool = False

    def offset(self, ticks: Ticks, *, is_start: bool) -> int | None:
        """Signed distance from the current row in ticks, OPEN folded in; None for UNBOUNDED."""
        if self.amount is None:
            return None
        signed = ticks.of(self.amount, self.unit) * (-1 if self.direction == "preceding" else 1)
        return signed + ((1 if is_start else -1) if self.open else 0)

    def __str__(self) -> str:
        if self.amount is None:
            return f"UNBOUNDED {self.direction.upper()}"
        if self.amount == 0 and not self.open:
            return "CURRENT ROW"
        return f"{shown_amount(self.amount, self.unit)}{' OPEN' if self.open else ''} {self.direction.upper()}"


CURRENT_ROW = Bound("preceding", 0)


@dataclass(frozen=True)
class WindowFrame(Clause):
    """ROWS or ROWS_RANGE with its attributes, as written (docs/reference/windows.md, section 1).

    `peers`, which no statement writes: a range that ends at CURRENT ROW also holds the later rows of that time.
    """

    unit: Literal["rows", "range"]
    start: Bound
    end: Bound
    maxsize: int | None = None
    exclude_current_row: bool = False
    exclude_current_time: bool = False
    instance_not_in_window: bool = False
    peers: bool = False

    def resolve(self, order_dtype: str | None) -> Frame:
        """The operator's frame. Timestamps are counted in microseconds, dates in days, integers in their own units,
        in which a time unit (`3s`) means milliseconds."""
        ticks = ticks_of(order_dtype) if self.unit == "range" else ONES
        start = self.start.offset(ticks, is_start=True)
        end = self.end.offset(ticks, is_start=False)
        return Frame(
            unit=self.unit,
            start=start,
            end=end,
            start_following=self.start.direction == "following" and self.start.amount != 0,
            end_following=self.peers or (self.end.direction == "following" and self.end.amount != 0),
            maxsize=self.maxsize,
            exclude_current_row=self.exclude_current_row,
            exclude_current_time=self.exclude_current_time,
            instance_not_in_window=self.instance_not_in_window,
        )

    def __str__(self) -> str:
        words = ["ROWS" if self.unit == "rows" else "ROWS_RANGE", f"BETWEEN {self.start} AND {self.end}"]
        words += ["WITH PEERS"] if self.peers else []
        if self.maxsize is not None:
            words.append(f"MAXSIZE {self.maxsize}")
        words += ["EXCLUDE CURRENT_ROW"] if self.exclude_current_row else []
        words += ["EXCLUDE CURRENT_TIME"] if self.exclude_current_time else []
        words += ["INSTANCE_NOT_IN_WINDOW"] if self.instance_not_in_window else []
        return " ".join(words)
