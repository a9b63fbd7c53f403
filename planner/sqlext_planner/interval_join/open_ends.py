"""Periods of streams whose ends are not known yet: ``PERIOD(ts, te OPEN BY id)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side

from sqlext_planner.errors import AnalysisError, Span, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.periods.predicates import OpenEnd

if TYPE_CHECKING:
    from sqlext_planner.interval_join.nodes import IntervalJoin


@dataclass(frozen=True)
class OpenPeriodOf:
    """The open period of a side: the names of its two values, its start and its end."""

    names: tuple[str, str]
    start: Expression
    end: OpenEnd

    @property
    def closing(self) -> frozenset[Column]:
        """The columns that a closing row says something new about."""
        return self.end.value.references - self.start.references


def values_of(join: IntervalJoin, side: Side) -> Mapping[str, Expression]:
    """The values of a side by name."""
    values: Sequence[Expression] = join.left_values if side == "left" else join.right_values
    return {f"{side[0]}{place}": value for place, value in enumerate(values)}


def open_period(join: IntervalJoin, side: Side) -> OpenPeriodOf | None:
    """The first period of a side whose end is written OPEN. Whether that means "not known yet" depends on the side:
    for a table it means "for ever"."""
    values = values_of(join, side)
    for start, end in join.left_periods if side == "left" else join.right_periods:
        value = values[end]
        if isinstance(value, OpenEnd):
            return OpenPeriodOf((start, end), values[start], value)
    return None


def open_error(join: IntervalJoin, side: Side, kind: str, span: Span | None) -> SqlExtError | None:
    """Why open periods on a stream's side cannot be joined, as far as the text tells; None if they can."""
    values = values_of(join, side)
    wrapped = [value for value in values.values() if any(isinstance(inner, OpenEnd) for inner in value.walk())]
    period = open_period(join, side)
    if not wrapped:
        return None
    if period is None or period.start not in values.values() or len(wrapped) > 1 or _is_guarded(period.start):
        return UnsupportedError(
            f"the {side} side of this join over streams needs one period with an OPEN end, compared as it is",
            condition="open-period",
            span=span,
            help="compare one OPEN period only; put conditions on one side into a subquery of FROM, with WHERE",
        )
    where = period.end.span or span
    keeps = {"left": ("left",), "right": ("right",), "full": ("left", "right"), "anti": ("left",)}.get(kind, ())
    if side in keeps:
        what = "LEFT ANTI" if kind == "anti" else kind.upper()
        return UnsupportedError(
            f"{what} JOIN gives the rows of the {side} side without a match, and their ends are not known yet (OPEN)",
            condition="open-period",
            span=where,
            help="use INNER or LEFT SEMI JOIN, or put the side with open periods on the other side",
        )
    others = [value for name, value in values.items() if name not in period.names]
    read = frozenset().union(*(value.references for value in others)) & period.closing
    if read:
        return UnsupportedError(
            f"a condition reads {min(map(str, read))} outside of the OPEN period, where it may be not known yet",
            condition="open-period",
            span=where,
            help="compare the period only: PERIOD(ts, te OPEN)",
        )
    if not all(isinstance(key, Column) for key in period.end.key):
        return AnalysisError(
            "on a stream, BY takes columns",
            condition="open-period",
            span=where,
            help="compute it in a subquery of FROM, and name its column",
        )
    return None


def _is_guarded(value: Expression) -> bool:
    return str(value).startswith("CASE WHEN ")
