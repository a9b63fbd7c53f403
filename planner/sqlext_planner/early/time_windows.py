"""Spark's function window() in plans: ``window(ts, '10 seconds')``, written in a condition or computed below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.typed import FunctionCall
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Hint, Project, SubqueryAlias


@dataclass(frozen=True)
class TimeWindow:
    """Windows of `length` that begin at `offset` plus multiples of it, in microseconds, over the time in a column.

    `time` is None where the plan computes the window and does not pass the time on. A `slide` other than the length
    means windows that overlap.
    """

    time: Column | None
    length: int
    slide: int
    offset: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """What two windows have to share."""
        return self.length, self.offset % self.length


#: Microseconds of an interval's text; None for text that is none of a fixed length.
Microseconds = Callable[[str], int | None]


def time_window(expression: Expression, plan: LogicalPlan, micros: Microseconds) -> TimeWindow | None:
    """The windows that an expression over a plan's columns gives; None for any other expression."""
    if isinstance(expression, Column):
        return _below(expression, plan, micros)
    match expression:
        case FunctionCall(name="window", arguments=(Column() as time, first, *others)) if len(others) < 3:
            found = [micros(_plain(str(item))) for item in (first, *others)]
            known = [item for item in found if item is not None]
            if len(known) < len(found) or known[0] <= 0:
                return None
            slide = known[1] if len(known) > 1 else known[0]
            return TimeWindow(time, known[0], slide, known[2] if len(known) > 2 else 0)
    return None


def _plain(text: str) -> str:
    """What a string or an INTERVAL says."""
    return text[1:-1] if text[0] in "'\"" else text.lower().partition("interval")[2].strip()


def _below(column: Column, plan: LogicalPlan, micros: Microseconds) -> TimeWindow | None:
    """The windows that a column holds, with their time as a column of this plan."""
    match plan:
        case SubqueryAlias(child=child):
            names = dict(zip(child.output_columns, plan.output_columns, strict=True))
            source = next((inner for inner, outer in names.items() if outer == column), None)
            window = None if source is None else _below(source, child, micros)
            return window and replace(window, time=None if window.time is None else names.get(window.time))
        case Project(items=items, child=child):
            item = next((item for item in items if item.column == column), None)
            window = None if item is None else time_window(item.expression, child, micros)
            time = next((item.column for item in items if window is not None and item.expression == window.time), None)
            return window and replace(window, time=time)
        case Filter(child=child) | Hint(child=child):
            return _below(column, child, micros)
    return None
