"""The transforms table: which sweep finds a relation's pairs, and what is done to the endpoints of its active side; and
the residual of a sweep as a range: low <= (the probe's other endpoint) <= high, both from the active tuple's.

A sweep goes over the events of both sides in the order of time. The active side's tuples are in the active set from
their start event to their end event; each start (or end) of the other side, the probe, is paired with all that are in
it (docs/reference/sweeps.md, section 4). An expression of endpoint iterators gives the events of the active side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.conditions import MIRRORED, Condition, split_equalities
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.sweep.events import shift_times
from sqlext_operators.interval_join.sweep.expressions import (
    AMONG_ENDS,
    AT_END,
    AT_START,
    FROM_END,
    GENERAL_BEFORE,
    INDEX,
    P_END,
    P_START,
    EndpointExpression,
)
from sqlext_operators.interval_join.sweep.kernels.events import END, START


@dataclass(frozen=True)
class Algorithm:
    """A sweep: which endpoint of the other side probes, and whether active events come before probes of equal order.

    `events_first` is the comparison of JoinByS: `<=` where true, `<` where not.
    """

    name: str
    probe: int
    events_first: bool


START_PRECEDING = Algorithm("StartPreceding", START, True)
START_PRECEDING_STRICT = Algorithm("StartPrecedingStrict", START, False)
END_FOLLOWING = Algorithm("EndFollowing", END, False)
END_FOLLOWING_STRICT = Algorithm("EndFollowingStrict", END, True)


@dataclass(frozen=True)
class Sweep:
    """One sweep of a relation: its algorithm, the side that is active and that side's events.

    Where the active side is the right one, the paper runs the sweep with swapped inputs. `residual` are the
    conditions that the window does not imply: a starts sweep compares the ends, an ends sweep the starts.
    """

    algorithm: Algorithm
    active: Side
    events: EndpointExpression
    residual: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class SweepPlan:
    """How a relation's pairs are found: by one sweep, or by several with disjoint pairs.

    `by_ends` is used instead where only epsilon is given, `by_starts` where only delta is: the parameter then shortens
    windows, and fewer candidates meet the residual. A stream takes `by_ends` unless epsilon is given: its residual
    compares starts, which are known, and pairs are output with the end that probes.
    """

    sweeps: tuple[Sweep, ...]
    by_starts: Sweep | None = None
    by_ends: Sweep | None = None


def _row(
    algorithm: Algorithm, active: Side, events: EndpointExpression = INDEX, by_ends: Sweep | None = None
) -> SweepPlan:
    return SweepPlan((Sweep(algorithm, active, events),), by_ends=by_ends)


_LEFT_STARTS = Sweep(START_PRECEDING, "left", P_START)
_RIGHT_STARTS = Sweep(START_PRECEDING, "right", P_START)
_LEFT_ENDS = Sweep(END_FOLLOWING, "left", P_END)
_RIGHT_ENDS = Sweep(END_FOLLOWING, "right", P_END)
_LEFT_ENDS_STRICT = Sweep(END_FOLLOWING_STRICT, "left", INDEX)
_RIGHT_ENDS_STRICT = Sweep(END_FOLLOWING_STRICT, "right", INDEX)

#: A row for each relation of interval_join/relations.py.
ROWS: Mapping[str, SweepPlan] = {
    "allen_before": _row(START_PRECEDING_STRICT, "left", FROM_END),
    "allen_after": _row(START_PRECEDING_STRICT, "right", FROM_END),
    "allen_meets": _row(START_PRECEDING, "left", AT_END),
    "allen_met_by": _row(START_PRECEDING, "right", AT_END),
    "allen_overlaps": _row(START_PRECEDING_STRICT, "left", by_ends=_RIGHT_ENDS_STRICT),
    "allen_overlapped_by": _row(END_FOLLOWING_STRICT, "left"),
    "allen_starts": _row(START_PRECEDING, "left", AT_START),
    "allen_started_by": _row(START_PRECEDING, "left", AT_START),
    "allen_during": _row(START_PRECEDING_STRICT, "right", by_ends=_RIGHT_ENDS_STRICT),
    "allen_contains": _row(START_PRECEDING_STRICT, "left", by_ends=_LEFT_ENDS_STRICT),
    "allen_finishes": _row(END_FOLLOWING, "left", AMONG_ENDS),
    "allen_finished_by": _row(END_FOLLOWING, "left", AMONG_ENDS),
    "allen_equals": _row(START_PRECEDING, "left", AT_START),
    "iseql_before": _row(START_PRECEDING, "left", GENERAL_BEFORE),
    "iseql_after": _row(START_PRECEDING, "right", GENERAL_BEFORE),
    "iseql_start_preceding": _row(START_PRECEDING, "left", P_START),
    "iseql_start_preceded_by": _row(START_PRECEDING, "right", P_START),
    "iseql_end_following": _row(END_FOLLOWING, "left", P_END),
    "iseql_end_followed_by": _row(END_FOLLOWING, "right", P_END),
    "iseql_left_overlap": SweepPlan((_LEFT_STARTS,), by_ends=_RIGHT_ENDS),
    "iseql_right_overlap": SweepPlan((_LEFT_ENDS,), by_starts=_RIGHT_STARTS),
    "iseql_during": SweepPlan((_RIGHT_STARTS,), by_ends=_RIGHT_ENDS),
    "iseql_reverse_during": SweepPlan((_LEFT_STARTS,), by_ends=_LEFT_ENDS),
    "period_overlaps": SweepPlan(
        (Sweep(START_PRECEDING, "left", INDEX), Sweep(START_PRECEDING_STRICT, "right", INDEX))
    ),
    "period_contains": _row(START_PRECEDING, "left", by_ends=_LEFT_ENDS),
    "period_equals": _row(START_PRECEDING, "left", AT_START),
    "period_precedes": _row(START_PRECEDING, "left", FROM_END),
    "period_succeeds": _row(START_PRECEDING, "right", FROM_END),
    "period_immediately_precedes": _row(START_PRECEDING, "left", AT_END),
    "period_immediately_succeeds": _row(START_PRECEDING, "right", AT_END),
}

#: The values that a sweep's residual compares: the endpoints that do not probe.
_RESIDUAL: Mapping[int, set[str]] = {START: {"b", "d"}, END: {"a", "c"}}


def sweeps_of(
    relation: str, delta: float | None = None, epsilon: float | None = None, stream: bool = False
) -> tuple[Sweep, ...]:
    """The sweeps that find the relation's pairs, each pair once, with numbers for the parameters.

    A parameter that is None or infinite bounds nothing. Raises KeyError for an unknown relation, ValueError for a
    parameter that it does not take and for a negative one.
    """
    given = {name: value for name, value in (("delta", delta), ("epsilon", epsilon)) if value is not None}
    conditions = RELATIONS[relation].conditions(**given)
    finite = {name for name, value in given.items() if value != float("inf")}
    row = ROWS[relation]
    sweeps = row.sweeps
    if row.by_ends is not None and (finite == {"epsilon"} or (stream and "epsilon" not in finite)):
        sweeps = (row.by_ends,)
    elif row.by_starts is not None and finite == {"delta"}:
        sweeps = (row.by_starts,)
    return tuple(
        replace(sweep, events=sweep.events.given(given), residual=residual_of(sweep, conditions)) for sweep in sweeps
    )


def residual_of(sweep: Sweep, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Those of a relation's conditions that compare the endpoints that do not probe."""
    values = _RESIDUAL[sweep.algorithm.probe]
    return tuple(item for item in conditions if {item.left, item.right} == values)


def point_sweep(relation: str) -> Sweep:
    """The sweep for a right side of single values t, taken as [t, t]. Raises ValueError for a relation without one."""
    if not RELATIONS[relation].point:
        raise ValueError(f"the right side of {relation} is a period")
    return Sweep(START_PRECEDING, "left", INDEX)


class Fate(IntEnum):
    """What is known about a candidate when the first of its two tuples ends."""

    OPEN, MATCH, NONE = range(3)


@dataclass(frozen=True)
class ResidualBound:
    """The active tuple's value plus `shift`; the probe's value is not equal to it if `strict`."""

    shift: float
    strict: bool


@dataclass(frozen=True)
class Residual:
    """Bounds of the probe's value; -inf and inf shifts bound nothing."""

    low: ResidualBound = ResidualBound(-math.inf, False)
    high: ResidualBound = ResidualBound(math.inf, False)

    def ranges(self, values: Int64s) -> tuple[Int64s, Int64s]:
        """(lows, highs), both int64[n] and included, for active tuples with these values."""
        lows = shift_times(values, self.low.shift)
        highs = shift_times(values, self.high.shift)
        if self.low.strict:
            # nothing is above the greatest value: low and high exclude each other then
            none = lows == GREATEST
            lows = np.where(none, GREATEST, lows + 1 - none)
            highs = np.where(none, LEAST, highs)
        if self.high.strict:
            none = highs == LEAST
            highs = np.where(none, LEAST, highs - 1 + none)
            lows = np.where(none, GREATEST, lows)
        return lows, highs

    @property
    def probes_end_first(self) -> bool:
        """Whether probes come first among ends of one time, so that the end that may decide knows of the other."""
        return self.low.shift > -math.inf

    def fate(self, active_first: bool) -> Fate:
        """What is known when one tuple of a pair has ended and the other has not (both values are ends): the other's
        end is later, or at the same time if that is looked at afterwards."""
        later = active_first == self.probes_end_first
        above = self.low.shift < 0 or (self.low.shift == 0 and not self.low.strict)
        below = self.high.shift > 0 or (self.high.shift == 0 and not self.high.strict)
        if active_first:  # the probe's value only grows from here
            possible = self.high.shift > 0 if later else below
            sure = self.high.shift == math.inf and (self.low.shift <= 0 if later else above)
        else:
            possible = self.low.shift < 0 if later else above
            sure = self.low.shift == -math.inf and (self.high.shift >= 0 if later else below)
        if not possible:
            return Fate.NONE
        return Fate.MATCH if sure else Fate.OPEN


def residual_range(sweep: Sweep) -> Residual | None:
    """The residual of a sweep whose parameters have numbers; None if there is none."""
    if not sweep.residual:
        return None
    return Residual(*_bounds(sweep))


def _bounds(sweep: Sweep) -> tuple[ResidualBound, ResidualBound]:
    lows, highs = [Residual().low], [Residual().high]
    for item in split_equalities(sweep.residual):
        assert not isinstance(item.shift, tuple)
        # left + shift < right bounds an active left side's right value, right - shift > left the other way round
        operator = item.operator if sweep.active == "left" else MIRRORED[item.operator]
        bound = ResidualBound(item.shift if sweep.active == "left" else -item.shift, item.is_strict)
        (lows if operator in ("<", "<=") else highs).append(bound)
    return _tightest(lows, 1), _tightest(highs, -1)


def _tightest(bounds: Sequence[ResidualBound], sign: int) -> ResidualBound:
    return max(bounds, key=lambda bound: (sign * bound.shift, bound.strict))
