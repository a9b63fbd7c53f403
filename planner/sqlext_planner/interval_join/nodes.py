"""Joins on interval relations and on inequalities."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Pass, Side, passes_for

from sqlext_planner.errors import InternalError, Span
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.interval_join.open_ends import open_period
from sqlext_planner.periods.predicates import Amount, EmptyPeriods
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
        ends = [sides[0] if len(sides) == 1 else None for sides in (self.left_periods, self.right_periods)]
        return tuple(item for terms in self.alternatives for item in passes_for(terms, ends[0], ends[1]))

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
        values = {f"l{i}": str(v) for i, v in enumerate(self.left_values)}
        values |= {f"r{i}": str(v) for i, v in enumerate(self.right_values)}
        keys = [
            f"{left} {'<=>' if safe else '='} {right}"
            for left, right, safe in zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        ]
        amounts = dict(self.amounts)
        options = [" AND ".join(_named(item, values, amounts) for item in terms) for terms in self.alternatives]
        terms = keys + ([options[0]] if len(options) == 1 else [f"({' OR '.join(options)})"])
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
