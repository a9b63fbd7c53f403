"""Windows over unions in plain Python, straight from docs/reference/windows.md, section 3: quadratic, obvious, slow.

A second reading of the specification, sharing no code with the product. A table is a list of rows (dicts) in
input order. NULL order keys are read as its section 4 says: they sort first, equal each other, and only an unbounded
end reaches them from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Row = dict[str, Any]
UNIT_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Bound:
    """`amount` None is UNBOUNDED; amount 0 without OPEN is CURRENT ROW."""

    amount: int | None
    following: bool = False
    open: bool = False
    unit: str = ""

    def __str__(self) -> str:
        side = "FOLLOWING" if self.following else "PRECEDING"
        if self.amount is None:
            return f"UNBOUNDED {side}"
        if self.amount == 0 and not self.open:
            return "CURRENT ROW"
        return f"{self.amount}{self.unit} {'OPEN ' if self.open else ''}{side}"

    def distance(self, *, is_start: bool, ticks: int) -> float:
        """Signed distance from the current row, in rows or in order units (`ticks` of them are a millisecond or
        a unit of an integer key); OPEN moves it inwards by one."""
        if self.amount is None:
            return math.inf if self.following else -math.inf
        distance = self.amount * UNIT_MS[self.unit] * ticks * (1 if self.following else -1)
        return distance + ((1 if is_start else -1) if self.open else 0)


@dataclass(frozen=True)
class WindowDef:
    """A window specification that prints as SQL and is evaluated by `frame_rows`."""

    unit: Literal["ROWS", "ROWS_RANGE"]
    start: Bound
    end: Bound
    partition_by: tuple[str, ...] = ("k",)
    order_by: str | None = "ts"
    unions: tuple[str, ...] = ()
    maxsize: int | None = None
    exclude_current_row: bool = False
    exclude_current_time: bool = False
    instance_not_in_window: bool = False
    ticks: int = 1  # 1000 where `order_by` is a timestamp, whose values are microseconds in the rows

    def __str__(self) -> str:
        words = [f"UNION {', '.join(self.unions)}"] if self.unions else []
        words.append(f"PARTITION BY {', '.join(self.partition_by)}")
        words += [f"ORDER BY {self.order_by}"] if self.order_by else []
        words.append(f"{self.unit} BETWEEN {self.start} AND {self.end}")
        words += [f"MAXSIZE {self.maxsize}"] if self.maxsize is not None else []
        words += ["EXCLUDE CURRENT_TIME"] if self.exclude_current_time else []
        words += ["EXCLUDE CURRENT_ROW"] if self.exclude_current_row else []
        words += ["INSTANCE_NOT_IN_WINDOW"] if self.instance_not_in_window else []
        return "(" + " ".join(words) + ")"

    @property
    def limits(self) -> tuple[float, float]:
        ticks = self.ticks if self.unit == "ROWS_RANGE" else 1
        return self.start.distance(is_start=True, ticks=ticks), self.end.distance(is_start=False, ticks=ticks)

    @property
    def is_legal(self) -> bool:
        """The lower bound is not above the upper one, and each end is on a side that can be written."""
        start, end = self.limits
        return start <= end and start != math.inf and end != -math.inf


@dataclass(frozen=True)
class Entry:
    """A row at its place in the sequence. `order` is None for a NULL order key; `position` counts FROM rows."""

    order: float | None
    is_from: bool
    row: Row
    position: int = -1


def evaluate(
    base: Sequence[Row],
    unions: Sequence[Sequence[Row]],
    window: WindowDef,
    function: Callable[[list[Row], list[Row]], Any],
    wanted: Container[int] | None = None,
) -> list[Any]:
    """For each FROM row, in input order, `function(rows of the frame, history)`, both newest first.

    `history` is the current row and what stands before it in the sequence (what lag walks along). With `wanted`, only
    the FROM rows at these places are evaluated.
    """
    results: list[Any] = [None] * len(base)
    for sequence in _sequences(base, unions, window):
        for place, entry in enumerate(sequence):
            if entry.is_from and (wanted is None or entry.position in wanted):
                earlier = [e for e in reversed(sequence[:place]) if _is_candidate(e, entry, window)]
                later = [e for e in sequence[place + 1 :] if _is_candidate(e, entry, window)]
                frame = frame_rows(window, entry, earlier, later)
                history = [entry.row] + [e.row for e in earlier]
                results[entry.position] = function(frame, history)
    return results


def _sequences(base: Sequence[Row], unions: Sequence[Sequence[Row]], window: WindowDef) -> list[list[Entry]]:
    """One sequence a partition: by order key, at equal keys the last union first, then ..., then FROM."""
    groups: dict[tuple[Any, ...], list[Entry]] = {}

    def add(row: Row, is_from: bool, position: int) -> None:
        order = row[window.order_by] if window.order_by else 0
        key = tuple(("null",) if row[c] is None else ("value", row[c]) for c in window.partition_by)
        groups.setdefault(key, []).append(Entry(order, is_from, row, position))

    for union in reversed(unions):
        for row in union:
            add(row, False, -1)
    for position, row in enumerate(base):
        add(row, True, position)
    # the rows were added in tie order and sorted() is stable
    return [
        sorted(group, key=lambda e: (e.order is not None, e.order if e.order is not None else 0, e.is_from))
        for group in groups.values()
    ]


def _is_candidate(entry: Entry, current: Entry, window: WindowDef) -> bool:
    if window.instance_not_in_window and entry.is_from:
        return False
    return not (window.exclude_current_time and entry.order == current.order)


def frame_rows(window: WindowDef, current: Entry, earlier: list[Entry], later: list[Entry]) -> list[Row]:
    """The rows in the frame of `current`, newest first; `earlier` is newest first, `later` oldest first."""
    start, end = window.limits
    if window.unit == "ROWS":
        indexed = [*reversed(list(enumerate(later, 1))), (0, current)]
        indexed += [(-i, e) for i, e in enumerate(earlier, 1)]
        found = [e for i, e in indexed if start <= i <= end]
    else:
        reaches_later = window.end.following and window.end.amount != 0
        at_current = end == 0 and not reaches_later
        candidates = later[::-1] if reaches_later else []
        # a frame that ends before the current time holds history only (docs/reference/windows.md, section 3)
        candidates = candidates + ([current] if start <= 0 and (at_current or reaches_later) else []) + earlier
        found = [e for e in candidates if e is current or _in_range(e, current, start, end)]
    if window.exclude_current_row:
        found = [e for e in found if e is not current]
    rows = [e.row for e in found]
    return rows if window.maxsize is None else rows[: window.maxsize]


def _in_range(entry: Entry, current: Entry, start: float, end: float) -> bool:
    if entry.order is None:
        return current.order is None or start == -math.inf
    if current.order is None:
        return end == math.inf
    return start <= entry.order - current.order <= end
