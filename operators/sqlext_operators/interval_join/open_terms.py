"""What follows from the conditions of a join where the end of a period is not known yet.

With the watermark W, an end that is not known is at least W. So a condition that bounds it from below (``c < b``) holds
for certain once W has passed the other value; one that bounds it from above (``b <= d``) never does before the end is
known. An alternative is *free* for a side if its conditions bound that side's end only from below: then rows of that
side find matches while they are open.

Every row has a number for each alternative, the watermark at which it is *ready*: for an open row the first that is
after its start (so that its period is not empty), for any row the first that is beyond all of its values that a free
alternative compares with an end on the other side. A pair with an open row is decided when both of its rows are
ready and what is left of the conditions holds. A pair of two closed rows is decided.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.codes import saturating_add
from sqlext_operators.interval_join.conditions import Condition, split_equalities
from sqlext_operators.interval_join.held import Search
from sqlext_operators.interval_join.passes import (
    SIDES,
    Side,
    is_free,
    other_side,
    pass_of_windows,
    pass_over,
    time_bounds,
)
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide
from sqlext_operators.interval_join.stream_sides import NEVER, StreamJoin, StreamRows


@dataclass(frozen=True)
class Way:
    """How rows of one side, as windows, find rows of the other: in one alternative, as open rows or not, and those that
    are ready or (waiting) those that are not yet."""

    alternative: int
    is_open: bool = False
    waiting: bool = False


class OpenTerms:
    """The conditions of a specification by what is known of the rows."""

    def __init__(self, spec: StreamJoin) -> None:
        self.spec = spec
        self._alternatives = [split_equalities(conditions) for conditions in spec.join.alternatives]

    @property
    def count(self) -> int:
        """How many alternatives there are."""
        return len(self._alternatives)

    def has_open(self, side: Side) -> bool:
        """Whether rows of a side may be open."""
        return self.spec.side(side).open is not None

    def is_free(self, side: Side, alternative: int) -> bool:
        """Whether open rows of a side find matches in an alternative."""
        period = self.spec.side(side).open
        return period is not None and is_free(side, period.end, self._alternatives[alternative])

    def columns(self, side: Side) -> pa.Schema:
        """The columns of a side that are kept."""
        spec = self.spec.side(side)
        own = self.spec.join.side(side)
        more = () if spec.open is None else (*spec.open.key, *spec.open.closing)
        return pa.schema(
            [spec.columns.field(name) for name in dict.fromkeys((*own.keys, *own.values, *own.payload, *more))]
        )

    def join(self, unknown: Set[Side]) -> IntervalJoinSpec:
        """The join for rows of which those on the sides `unknown` are open, with the columns `ready` and `now`."""
        sides = {side: self._side(side, side in unknown) for side in SIDES}
        return replace(self.spec.join, kind="inner", left=sides["left"], right=sides["right"], algorithm="slices")

    def searches(self, side: Side, is_open: bool) -> dict[Way, Search]:
        """How rows of a side that are open (or closed) are found by rows of the other side."""
        window = other_side(side)
        searches: dict[Way, Search] = {}
        for number, conditions in enumerate(self._alternatives):
            ways = [Way(number), Way(number, True)] if self.is_free(window, number) else [Way(number)]
            if is_open:
                searches |= {way: self._ready(side, way, {side}) for way in ways if self.is_free(side, number)}
                continue
            periods = self.join(set()).alternative_periods(conditions)
            searches[Way(number)] = conditions, pass_of_windows(window, conditions, *periods)
            if len(ways) > 1:
                waiting = (self._against_now(side, number, waiting=True), *conditions)
                item = pass_over(window, ready_column(side, number), waiting, *periods)
                searches[Way(number, waiting=True)] = waiting, item
                searches[ways[1]] = self._ready(side, ways[1], set())
        return searches

    def ready(self, side: Side, is_open: bool, rows: pa.RecordBatch) -> list[Int64s]:
        """For each alternative, when rows that are all open (or closed) are ready, int64[n]; NEVER where no pair with
        an open row is decided."""
        period = self.spec.side(side).open
        known = StreamRows(self.join({side} if is_open else set()), side, rows)
        ready_at = []
        for number in range(self.count):
            facing = self.is_free(other_side(side), number)
            least = np.full(len(known), -NEVER if (self.is_free(side, number) if is_open else facing) else NEVER)
            for item in self._facing(side, number) if facing else ():
                np.maximum(least, self._beyond(side, item, known), out=least)
            if is_open and period is not None:
                np.maximum(least, _after(known, period.start, 0, True), out=least)
            ready_at.append(np.minimum(least, NEVER))
        return ready_at

    def deaths(self, side: Side, rows: pa.RecordBatch) -> Int64s:
        """int64[n], the least watermark at which closed rows of a side find no new match: no row to come matches
        (`time_bounds`), and no open one of before, whose end is not below the watermark."""
        known = StreamRows(self.spec.join, side, rows)
        bounds, period = self.spec.bounds(side), self.spec.side(other_side(side)).open
        deaths = np.full(len(known), -NEVER) if bounds is None else known.deaths(bounds)
        if period is None:
            return deaths
        ready = self.ready(side, False, rows)
        for number, conditions in enumerate(self.spec.join.alternatives):
            if self.is_free(other_side(side), number):
                last = np.where(known.usable(conditions), ready[number], -NEVER)
            else:
                periods = self.spec.join.alternative_periods(conditions)
                last = known.death(conditions, time_bounds(side, conditions, (period.end,), *periods))
            np.maximum(deaths, last, out=deaths)
        return deaths

    def _side(self, side: Side, is_open: bool) -> IntervalSide:
        own, period = self.spec.join.side(side), self.spec.side(side).open
        more = [ready_column(side, number) for number in range(self.count)]
        kept = [ends for ends in own.periods if not is_open or period is None or ends != (period.start, period.end)]
        return IntervalSide(
            own.keys, (*own.values, *more, now_column(side)), tuple(kept), (*self.columns(side).names, *more)
        )

    def _about(self, side: Side, value: str, alternative: int) -> list[Condition]:
        """The conditions on a value of a side."""
        return [item for item in self._alternatives[alternative] if getattr(item, side) == value]

    def _facing(self, side: Side, alternative: int) -> list[Condition]:
        """The conditions of a side's values on the end of the other side's open period."""
        period = self.spec.side(other_side(side)).open
        return [] if period is None else self._about(other_side(side), period.end, alternative)

    def _beyond(self, side: Side, item: Condition, known: StreamRows) -> Int64s:
        """int64[n], the least watermark for which an end that is not below it meets a condition for certain."""
        assert isinstance(item.shift, int | float)
        return _after(known, getattr(item, side), item.shift if side == "left" else -item.shift, item.is_strict)

    def _ready(self, side: Side, way: Way, unknown: set[Side]) -> Search:
        """The search for rows that are ready, without the conditions on unknown ends."""
        window = other_side(side)
        if way.is_open:
            unknown = unknown | {window}
        ends = {one: period.end for one in unknown if (period := self.spec.side(one).open) is not None}
        kept = [
            item
            for item in self._alternatives[way.alternative]
            if not any(getattr(item, one) == end for one, end in ends.items())
        ]
        conditions = (self._against_now(side, way.alternative), *kept)
        return conditions, pass_of_windows(window, conditions, *self.join(unknown).alternative_periods(conditions))

    def _against_now(self, side: Side, alternative: int, *, waiting: bool = False) -> Condition:
        """That a row of a side is ready at the watermark of the other side's row, or not yet."""
        ready, now = ready_column(side, alternative), now_column(other_side(side))
        if side == "left":
            return Condition(ready, ">" if waiting else "<=", now)
        return Condition(now, "<" if waiting else ">=", ready)


def _after(known: StreamRows, value: str, shift: int | float, strict: bool) -> Int64s:
    """int64[n], the least number that is greater than a value with a shift added, or not below it unless `strict`;
    NEVER for NULL."""
    codes = known.codes(value, shift)
    return np.where(known.is_null(value), NEVER, saturating_add(codes, 1) if strict else codes)


def ready_column(side: Side, alternative: int) -> str:
    """The column of `OpenTerms.ready`."""
    return f"__sqlext_{side}_ready{alternative}"


def now_column(side: Side) -> str:
    """The column of the watermark that rows are compared with."""
    return f"__sqlext_{side}_now"
