"""Windows of functions: ``fx.window(...)`` and what ``window_union`` takes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from sqlext_planner.errors import AnalysisError

from sqlext.builders.expressions import Expr, Value, expression, several
from sqlext.builders.text import Source, Writer, python_value

_wrong_frame = partial(AnalysisError, condition="window-frame")

#: The end of a frame. None is UNBOUNDED; a number counts as in PySpark: -5 is 5 PRECEDING, 0 CURRENT ROW, 5 is 5
#: FOLLOWING; text is as in SQL, ``"1h preceding"``. The first end may be an amount alone, which is PRECEDING.
Bound: TypeAlias = str | int | datetime.timedelta | None
#: The units of times in a frame, the largest first.
_UNITS = (
    (datetime.timedelta(days=1), "d"),
    (datetime.timedelta(hours=1), "h"),
    (datetime.timedelta(minutes=1), "m"),
    (datetime.timedelta(seconds=1), "s"),
    (datetime.timedelta(milliseconds=1), "ms"),
    (datetime.timedelta(microseconds=1), " MICROSECONDS"),
)
_DIRECTION = re.compile(r"\b(preceding|following|current\s+row)\s*$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Window:
    """A window. Each method gives a new one. `name` is its name in the text."""

    partition_by: tuple[Expr, ...]
    order_by: Expr | None = None
    sources: tuple[Source, ...] = ()
    frame: str | None = None
    attributes: tuple[str, ...] = ()
    name: str = "w"
    by_name: bool | None = None

    def union(self, *sources: Source, by_name: bool | None = None) -> Window:
        """Also the rows of other tables, DataFrames or queries with the same columns. At equal times the first
        listed is the newest.

        by_name  for all sources of the window, those of other calls too: True finds their columns by name, in any
                 order, and what a source or the query's own table lacks is NULL in its rows. False is the default.
        Raises AnalysisError if two calls say opposite things.
        """
        if None not in (by_name, self.by_name) and by_name is not self.by_name:
            raise AnalysisError(
                "union is called with by_name=True and with by_name=False, which is for all sources of a window",
                condition="python-call",
                help="say it once; sources with the same columns in the same order may be BY NAME too",
            )
        named = self.by_name if by_name is None else by_name
        return replace(self, sources=(*self.sources, *sources), by_name=named)

    def rows(self, start: Bound, end: Bound = 0) -> Window:
        """The rows between two places: ``rows(-9, 0)`` is ROWS BETWEEN 9 PRECEDING AND CURRENT ROW."""
        return replace(self, frame=f"ROWS {_between(start, end)}")

    def rows_range(self, start: Bound, end: Bound = 0, *, maxsize: int | None = None) -> Window:
        """The rows between two times: ``rows_range("1h")`` is ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW.

        maxsize  keeps the newest rows of these, the current row counted
        """
        size = "" if maxsize is None else f" MAXSIZE {maxsize}"
        return replace(self, frame=f"ROWS_RANGE {_between(start, end)}{size}")

    def exclude_current_row(self) -> Window:
        """Without the row itself."""
        return replace(self, attributes=(*self.attributes, "EXCLUDE CURRENT_ROW"))

    def exclude_current_time(self) -> Window:
        """Without all other rows of the row's time."""
        return replace(self, attributes=(*self.attributes, "EXCLUDE CURRENT_TIME"))

    def instance_not_in_window(self) -> Window:
        """Without all other rows of the query's own table: only those of `union` are counted."""
        return replace(self, attributes=(*self.attributes, "INSTANCE_NOT_IN_WINDOW"))

    def named(self, name: str) -> Window:
        """The window under another name."""
        return replace(self, name=name)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Its keys and its order."""
        return (*self.partition_by, *(() if self.order_by is None else (self.order_by,)))

    def write(self, writer: Writer) -> None:
        """The window in its parentheses."""
        writer.write("(")
        if self.sources:
            writer.write("UNION ")
            for number, source in enumerate(self.sources):
                writer.write(", " if number else "")
                with writer.argument("the union of the window"):
                    writer.source(source, self)
            writer.write(" BY NAME " if self.by_name else " ")
        writer.write("PARTITION BY ")
        with writer.argument("partition_by of the window"):
            writer.list(self.partition_by)
        if self.order_by is not None:
            writer.write(" ORDER BY ")
            with writer.argument("order_by of the window"):
                writer.write(self.order_by)
        if self.frame is not None:
            writer.write(" ")
            with writer.argument("the frame of the window"):
                writer.write(self.frame)
        for attribute in self.attributes:
            writer.write(f" {attribute}")
        writer.write(")")


def window(partition_by: Value | Sequence[Value], order_by: Value | None = None, *, name: str = "w") -> Window:
    """A window of the rows with equal keys, in the order of a time: the start of ``.union(...)``, ``.rows(...)`` and
    ``.rows_range(...)``.

    partition_by  a column or expression, or several
    order_by      the time column; without one, input order
    name          the window's name in the text
    """
    return Window(several(partition_by), None if order_by is None else expression(order_by), name=name)


def _between(start: Bound, end: Bound) -> str:
    return f"BETWEEN {_bound(start, is_start=True)} AND {_bound(end, is_start=False)}"


def _bound(bound: Bound, *, is_start: bool) -> str:
    bound = python_value(bound)
    match bound:
        case None:
            return f"UNBOUNDED {'PRECEDING' if is_start else 'FOLLOWING'}"
        case int():
            direction = "PRECEDING" if bound < 0 else "FOLLOWING"
            return f"{abs(bound)} {direction}" if bound else "CURRENT ROW"
        case str() if _DIRECTION.search(bound):
            return bound
    if not is_start:
        raise _wrong_frame(
            f"the end of a frame, {bound!r}, has no direction",
            help="write for example '5m preceding', '5m following' or 'current row'; 0 is the current row",
        )
    return f"{bound if isinstance(bound, str) else _time(bound)} PRECEDING"


def _time(bound: datetime.timedelta) -> str:
    if not isinstance(bound, datetime.timedelta):
        raise _wrong_frame(f"a frame cannot begin at {bound!r}", help="give a whole number, a time or text")
    for unit, word in _UNITS:
        count, rest = divmod(bound, unit)
        if not rest and count >= 0:
            return f"INTERVAL {count}{word}" if word.startswith(" ") else f"{count}{word}"
    raise _wrong_frame(f"a frame cannot begin {bound!s} before a row", help="give 0 or more")
