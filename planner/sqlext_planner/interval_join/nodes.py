"""Joins on interval relations and on inequalities.

Periods of streams whose ends are not known yet: ``PERIOD(ts, te OPEN BY id)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Pass, Side, passes_for

from sqlext_planner.errors import AnalysisError, InternalError, Span, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.periods.predicates import Amount, EmptyPeriods, OpenEnd
from sqlext_planner.relational.joins import PartitionerHint
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, comma, reads, with_fields
from sqlext_planner.relational.streams import event_times

#: `count`: the left rows that have a match, with the number of their matches in the column `IntervalJoin.count`.
IntervalJoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "count"]

SIDES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True)
class IntervalJoin(LogicalPlan):
    """A join whose pairs are found by windows instead of by comparing all rows (docs/reference/sweeps.md, section 5).

    `left_keys[i] = right_keys[i]` (``<=>`` where `null_safe[i]`). `left_values` are called l0, l1, ... and
    `right_values` r0, r1, ... in `alternatives`: a pair matches if all conditions of one alternative hold (no two
    alternatives hold together) and `residual`, over both sides, is true. `left_periods` and `right_periods` name values
    (start, end) that must be a period: `empty` says what happens to rows for which one is empty or reversed.
    Plain inequalities have none, and match exactly as Spark compares them.

    A condition's shift is 0 or (sign, name) of one of the `amounts`. `condition` is the whole ON as one expression, for
    plans where Spark makes the join; `named` says that it holds a period predicate. `payload` are the columns
    passed on (None: all of the output's sides), `sweep` and `partitioner` are what hints asked for.
    """

    is_extension = True
    operator_name = "an interval join"

    left: LogicalPlan
    right: LogicalPlan
    kind: IntervalJoinKind
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    null_safe: tuple[bool, ...]
    left_values: tuple[Expression, ...]
    right_values: tuple[Expression, ...]
    alternatives: tuple[tuple[Condition, ...], ...]
    left_periods: tuple[tuple[str, str], ...] = ()
    right_periods: tuple[tuple[str, str], ...] = ()
    empty: EmptyPeriods = "drop"
    residual: Expression | None = None
    count: Column | None = None
    amounts: tuple[tuple[str, Amount], ...] = ()
    condition: Expression | None = None
    payload: tuple[Column, ...] | None = None
    named: bool = False
    sweep: bool | None = None
    partitioner: PartitionerHint | None = None

    def child_needs(self, needed: Set[Column]) -> Needs:
        columns = needed | reads(self.expressions())
        for name, side in zip(SIDES, (self.left, self.right), strict=True):
            if side.is_streaming and open_period(self, name) is not None:  # the event time tells which end is known
                columns |= event_times(side)
        return [(side, columns & set(side.output_columns)) for side in (self.left, self.right)]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        left, right = built(self.left), built(self.right)
        sides = left.output_columns + (() if self.kind in ("semi", "anti", "count") else right.output_columns)
        kept = tuple(column for column in self.output_columns if column in needed and column != self.count)
        kept = kept or (() if self.count is not None else sides[:1])
        return with_fields(self, left=left, right=right, payload=None if kept == sides else kept)

    def __post_init__(self) -> None:
        if not len(self.left_keys) == len(self.right_keys) == len(self.null_safe):
            raise InternalError("the keys of an interval join are pairs")
        if not self.alternatives or not all(self.alternatives):
            raise InternalError("an interval join has conditions")
        if (self.count is not None) != (self.kind == "count"):
            raise InternalError("only a counting interval join has a count")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        sides = self.left.output + (self.right.output if self.kind in ("inner", "left", "right", "full") else ())
        kept = sides if self.payload is None else tuple(item for item in sides if item.column in self.payload)
        return kept if self.count is None else (*kept, Field(self.count, "bigint"))

    @cached_property
    def passed_on(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """The columns that are passed on from the left and from the right side."""
        theirs = self.right.column_set if self.kind in ("inner", "left", "right", "full") else frozenset()
        kept = [column for column in self.output_columns if column != self.count]
        return tuple(c for c in kept if c not in theirs), tuple(c for c in kept if c in theirs)

    @property
    def place(self) -> Span | None:
        """The place of ON in the text."""
        return None if self.condition is None else self.condition.span

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """How the pairs are found, over all alternatives; distances by their names."""
        return tuple(item for terms in self.alternatives for item in passes_for(terms, *self.only_periods))

    def input_of(self, side: Side) -> LogicalPlan:
        """The input on a side."""
        return self.left if side == "left" else self.right

    def values_of(self, side: Side) -> dict[str, Expression]:
        """The values of a side by their names."""
        values = self.left_values if side == "left" else self.right_values
        return {f"{side[0]}{place}": value for place, value in enumerate(values)}

    def periods_of(self, side: Side) -> tuple[tuple[str, str], ...]:
        """The periods of a side."""
        return self.left_periods if side == "left" else self.right_periods

    @property
    def only_periods(self) -> list[tuple[str, str] | None]:
        """The period of each side; None for a side with none, or several."""
        return [found[0] if len(found) == 1 else None for found in map(self.periods_of, SIDES)]

    @property
    def key_terms(self) -> list[str]:
        """The equalities of the keys."""
        keys = zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        return [f"{left} {'<=>' if safe else '='} {right}" for left, right, safe in keys]

    def expressions(self) -> Iterator[Expression]:
        yield from (*self.left_keys, *self.right_keys, *self.left_values, *self.right_values)
        if self.residual is not None:
            yield self.residual
        if self.condition is not None:
            yield self.condition

    def missing_references(self) -> frozenset[Column]:
        ours, theirs = frozenset(self.left.output_columns), frozenset(self.right.output_columns)
        missing = {c for item in (*self.left_keys, *self.left_values) for c in item.references - ours}
        missing |= {c for item in (*self.right_keys, *self.right_values) for c in item.references - theirs}
        both = [item.references for item in (self.residual, self.condition) if item is not None]
        missing |= {c for found in both for c in found - ours - theirs}
        return frozenset(missing | (set(self.payload or ()) - ours - theirs))

    def label(self) -> str:
        values = {name: str(value) for side in SIDES for name, value in self.values_of(side).items()}
        amounts = dict(self.amounts)
        options = [" AND ".join(_named(item, values, amounts) for item in terms) for terms in self.alternatives]
        terms = self.key_terms + ([options[0]] if len(options) == 1 else [f"({' OR '.join(options)})"])
        terms += [str(self.residual)] if self.residual is not None else []
        periods = [f"PERIOD({values[a]}, {values[b]})" for a, b in (*self.left_periods, *self.right_periods)]
        suffix = f" [{self.empty} empty {comma(tuple(periods))}]" if periods else ""
        suffix += "" if self.payload is None else f" PAYLOAD [{comma(self.payload)}]"
        suffix += "" if self.count is None else f" AS {self.count}"
        return f"IntervalJoin: {self.kind} ON {' AND '.join(terms)}{suffix}"


def _named(condition: Condition, values: dict[str, str], amounts: dict[str, Amount]) -> str:
    shift = condition.shift
    if isinstance(shift, tuple) and shift[1] in amounts:
        shift = (shift[0], amounts[shift[1]].sql())
    return str(Condition(values[condition.left], condition.operator, values[condition.right], shift))


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


def open_period(join: IntervalJoin, side: Side) -> OpenPeriodOf | None:
    """The first period of a side whose end is written OPEN. Whether that means "not known yet" depends on the side:
    for a table it means "for ever"."""
    values = join.values_of(side)
    for start, end in join.periods_of(side):
        value = values[end]
        if isinstance(value, OpenEnd):
            return OpenPeriodOf((start, end), values[start], value)
    return None


def open_error(join: IntervalJoin, side: Side, kind: str, span: Span | None) -> SqlExtError | None:
    """Why open periods on a stream's side cannot be joined, as far as the text tells; None if they can."""
    values = join.values_of(side)
    wrapped = [value for value in values.values() if any(isinstance(inner, OpenEnd) for inner in value.walk())]
    period = open_period(join, side)
    if not wrapped:
        return None
    is_plain = period is not None and period.start in values.values() and not str(period.start).startswith("CASE WHEN ")
    if period is None or not is_plain or len(wrapped) > 1:
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
