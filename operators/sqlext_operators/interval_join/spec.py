"""What an interval join has to compute: plain frozen data, picklable, with no SQL and no Spark in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from sqlext_operators.columns.empty_periods import Empty
from sqlext_operators.expressions.nodes import TaskExpression
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Pass, Side, pass_of_windows, passes_for

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["inner", "left", "right", "full", "semi", "anti", "count"]
PairAlgorithm = Literal["slices", "join-by-s", "lazy-join-by-s"]

#: The columns that tiles add to the output of every kind but `inner` (output.py).
ROW = "__sqlext_row"
MATCHES = "__sqlext_matches"
#: The column that the kind `count` adds.
COUNT = "__sqlext_count"


@dataclass(frozen=True)
class IntervalSide:
    """The columns of one side, by their names on the wire; a column may have several parts.

    `keys` are paired with the other side's. `values` are the columns that conditions compare, and the ends of
    `periods`; `payload` are passed on, in that order. `periods` are pairs (start, end) of values that must be a period
    [start, end) with start < end: a row matches nothing if one of its periods is not, or has a NULL end. `tested` are
    those that a residual reads.
    """

    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    periods: tuple[tuple[str, str], ...] = ()
    payload: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntervalJoinSpec:
    """A join of two sides on equal keys and on comparisons of their values.

    Rows match if their keys are equal (where `null_safe[i]`, NULL keys are too) and all conditions of one of the
    `alternatives` hold; no two alternatives hold for the same rows. The shifts are finite numbers in the unit of the
    columns: microseconds, days, the integer, the double; for a decimal the number itself, a whole multiple of its last
    place. Values that are compared have the same type on both sides; those compared with a shift are numbers or times.
    Values compare as in Spark: NaN is equal to itself and above every number, -0.0 equals 0.0, strings and binary go by
    their bytes. A NULL in a value matches nothing in the alternatives that compare it.

    `empty` says what a period of a side with start >= end (or a NaN end) does: "drop" matches nothing, "error" raises
    EmptyPeriodError, "point" takes start = end for the one instant [t, t + 1 unit of the type) and drops the others
    (docs/reference/periods.md, section 6).

    Output columns: left payload, right payload (inner, left, right, full; NULL where there is no match); left payload
    (semi: left rows with a match, anti: those without); left payload and the number of matches, int64 `COUNT`, of the
    left rows that have a match (count; without a payload, counts of several rows come as one row with their sum). Rows
    come in no particular order. Pairs for which all this holds are candidates; they match if the `residual`, over the
    `tested` columns, is true of them. With `candidates` someone else tests them further, and the output is that of
    output.py. `algorithm` says how to go through pairs,
    if there are any: window by window, or by a sweep of docs/sweeps.md over the same windows. Raises ValueError if
    parts do not fit.
    """

    kind: Kind
    left: IntervalSide
    right: IntervalSide
    null_safe: tuple[bool, ...]
    alternatives: tuple[tuple[Condition, ...], ...]
    empty: Empty = "drop"
    algorithm: PairAlgorithm = "slices"
    residual: TaskExpression | None = None
    candidates: bool = False

    def __post_init__(self) -> None:
        if not len(self.left.keys) == len(self.right.keys) == len(self.null_safe):
            raise ValueError("the keys of an interval join are pairs")
        if not self.alternatives or not all(self.alternatives):
            raise ValueError("an interval join has conditions")
        for item in (condition for conditions in self.alternatives for condition in conditions):
            if item.left not in self.left.values or item.right not in self.right.values:
                raise ValueError(f"not values of the two sides: {item}")
            if isinstance(item.shift, tuple) or not math.isfinite(item.shift):
                raise ValueError(f"a shift is a finite number: {item}")
        for side in (self.left, self.right):
            if any(name not in side.values for period in side.periods for name in period):
                raise ValueError("the ends of periods are values of their side")
        if not set(() if self.residual is None else self.residual.inputs()) <= {*self.left.tested, *self.right.tested}:
            raise ValueError("a residual reads the tested columns of the two sides")
        if set(self.left.tested) & set(self.right.tested):
            raise ValueError("tested columns have different names on the two sides")

    @cached_property
    def alternative_passes(self) -> tuple[tuple[Pass, ...], ...]:
        """For each alternative, the passes that find its pairs exactly once."""
        return tuple(passes_for(conditions, *self.alternative_periods(conditions)) for conditions in self.alternatives)

    def alternative_periods(self, conditions: Sequence[Condition]) -> tuple[tuple[str, str] | None, ...]:
        """The (left, right) periods that the conditions of an alternative are about."""
        return _period(self.left, "left", conditions), _period(self.right, "right", conditions)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes over all alternatives; their pairs are disjoint."""
        return tuple(item for passes in self.alternative_passes for item in passes)

    def window_passes(self, window: Side) -> tuple[Pass, ...]:
        """For each alternative, the pass that finds its pairs with windows of one side."""
        return tuple(
            pass_of_windows(window, conditions, *self.alternative_periods(conditions))
            for conditions in self.alternatives
        )

    def probes(self, side: Side) -> tuple[str, ...]:
        """The values of one side that windows of the other look at."""
        return tuple(dict.fromkeys(item.probe for item in self.passes if item.window != side))

    def side(self, side: Side) -> IntervalSide:
        """The columns of one side."""
        return self.left if side == "left" else self.right

    def keeps(self, side: Side) -> bool:
        """Whether rows of that side without a match are output."""
        return self.kind == "full" or self.kind == side or (self.kind == "anti" and side == "left")

    def decides(self, side: Side) -> bool:
        """Whether the output depends on all matches of a row of that side together."""
        return self.keeps(side) or (self.kind in ("semi", "count") and side == "left")

    @property
    def pairs(self) -> bool:
        """Whether the output has a row for each matching pair."""
        return self.kind in ("inner", "left", "right", "full")


def _period(side: IntervalSide, name: Side, conditions: Sequence[Condition]) -> tuple[str, str] | None:
    """The period of a side that these conditions are about, the first with most of its ends compared."""
    used = {getattr(item, name) for item in conditions}
    scored = [(len(used & set(period)), period) for period in side.periods]
    best = max(scored, key=lambda item: item[0], default=None)
    return best[1] if best is not None and best[0] else None


@dataclass(frozen=True)
class IntervalBroadcastSpec:
    """A join where every task has the whole `small` side; `columns` are those of the other side, by position, with the
    names and types that they have in the join. Raises ValueError if rows of the small side wait for all their matches:
    no task sees all of them."""

    join: IntervalJoinSpec
    small: Side
    columns: pa.Schema
    batch_rows: int = 262_144

    def __post_init__(self) -> None:
        if self.join.decides(self.small):
            raise ValueError(f"the {self.small} side of a {self.join.kind} join cannot be broadcast")
