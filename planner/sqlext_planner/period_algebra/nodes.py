"""Operations over the periods of rows with equal keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import AnalysisError, InternalError, Span
from sqlext_planner.expressions.arithmetic import decimal_shape
from sqlext_planner.expressions.nodes import Column, Expression, is_exact, reads_only
from sqlext_planner.expressions.types import common_type
from sqlext_planner.periods.functions import PeriodInput
from sqlext_planner.periods.predicates import EmptyPeriods, Period
from sqlext_planner.periods.types import PeriodEnd, check_period_types
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, Needs, Passed, comma, with_fields
from sqlext_planner.relational.nodes import filtered

#: Digits of a decimal whose values are int64 codes.
_WORD_DIGITS = 18


def common_types(node: PeriodAlgebra, types: Sequence[Sequence[str]]) -> list[str]:
    """The type of each of the node's columns, from those of each input. Raises AnalysisError."""
    keys = list(types[0][:-2])
    for row in types[1:]:
        keys = [
            common_key_type(str(key), own, their, key.span)
            for key, own, their in zip(node.keys, keys, row, strict=False)
        ]
    places = [column.span for column in node.columns[-2:]]
    ends = [PeriodEnd(dtype, span) for row in types for dtype, span in zip(row[-2:], places, strict=True)]
    return [*keys, *(_end_type(node, ends),) * 2]


def common_key_type(key: str, own: str, their: str, span: Span | None) -> str:
    """The type in which keys of two inputs compare. Raises AnalysisError if there is none."""
    common = own if own == their else common_type(own, their)
    if common is None:
        raise AnalysisError(
            f"the keys of EXCEPT have different types, {own} and {their}: {key}",
            condition="key-type",
            span=span,
            help="cast one of them",
        )
    return common


def _end_type(node: PeriodAlgebra, ends: Sequence[PeriodEnd]) -> str:
    """The common type of all ends. Raises AnalysisError."""
    dtype = check_period_types(ends, (), node.empty)
    span = node.columns[-1].span
    if dtype is None:
        raise AnalysisError(
            "the ends of the periods have no type", condition="period-ends", span=span, help="CAST(... AS their type)"
        )
    if (decimal_shape(dtype) or (0, 0))[0] > _WORD_DIGITS:
        raise AnalysisError(
            f"an operation over periods does not take ends of type {dtype}",
            condition="period-ends",
            span=span,
            help=f"cast the ends to a decimal of at most {_WORD_DIGITS} digits",
        )
    return dtype


#: As in the operators' specification; "difference" has two inputs.
Operation = Literal["normalize", "gaps", "concurrent", "difference"]


@dataclass(frozen=True)
class PeriodAlgebra(LogicalPlan):
    """For each key, new periods made of the periods [start, end) of its rows (docs/period-algebra.md).

    ``FROM NORMALIZE(t PARTITION BY k PERIOD (ts, te))`` is ``PeriodAlgebra("normalize", [t.k, t.ts, t.te], ...)``
    over t. `columns` are those of the source: the keys, then both ends. `removed` is what EXCEPT takes away: one input,
    with the same columns by position. Outputs the keys, then `start` and `end`, then `count` for "concurrent". `empty`
    says what an empty or reversed period does; one with a NULL end covers nothing.
    """

    is_extension = True
    feeds_exchange = True
    operator_name = "an operation over periods"

    operation: Operation
    columns: tuple[Column, ...]
    start: Column
    end: Column
    count: Column | None
    source: LogicalPlan
    removed: tuple[LogicalPlan, ...] = ()
    empty: EmptyPeriods = "drop"

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns whose values tell which periods belong together."""
        return self.columns[:-2]

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(child, child.column_set) for child in (self.source, *self.removed)]

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms over keys, into every input: they drop all periods of a key, and no key's periods change another's.

        ``SELECT * FROM GAPS(t PARTITION BY k PERIOD (ts, te)) WHERE k = 7`` filters t. Keys must be of a type whose
        equal values are the same value.

        Not legal for ends: ``SELECT * FROM NORMALIZE(t PARTITION BY k PERIOD (ts, te)) WHERE ts >= 5`` drops the
        result [1, 9), while a filter below would leave [6, 9) of the periods [1, 7) and [6, 9).
        """
        known = self.dtypes
        passed = [term for term in terms if reads_only(term, {key for key in self.keys if is_exact(known.get(key))})]
        if not passed:
            return None
        removed = tuple(self._filtered_removed(plan, passed) for plan in self.removed)
        return with_fields(self, source=filtered(passed, self.source), removed=removed), passed

    def _filtered_removed(self, plan: LogicalPlan, terms: Sequence[Expression]) -> LogicalPlan:
        names = dict(zip(self.source.output_columns, plan.output_columns, strict=True))
        return filtered([term.substitute(names) for term in terms], plan)

    def period_inputs(self) -> list[PeriodInput]:
        """The periods of each input, for counts of those that cover nothing."""
        found = []
        for plan in (self.source, *self.removed):
            start, end = plan.output_columns[-2:]
            found.append(PeriodInput(Period(start, end), plan.dtypes[start], self.empty, plan, "cover nothing"))
        return found

    def __post_init__(self) -> None:
        if len(self.removed) != (self.operation == "difference"):
            raise InternalError("a difference has two inputs, and nothing else has")
        if (self.count is not None) != (self.operation == "concurrent"):
            raise InternalError("only concurrent periods are counted")
        if self.source.output_columns != self.columns or any(
            len(plan.output) != len(self.columns) for plan in self.removed
        ):
            raise InternalError("the inputs of an operation over periods have its keys and the ends")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        known = self.source.dtypes
        dtype = known[self.columns[-2]]
        fields = [Field(key, known[key]) for key in self.keys] + [Field(self.start, dtype), Field(self.end, dtype)]
        return tuple(fields) + (() if self.count is None else (Field(self.count, "bigint"),))

    def expressions(self) -> Iterator[Expression]:
        yield from self.columns

    def label(self) -> str:
        keys = f" PARTITION BY {comma(self.keys)}" if self.keys else ""
        count = "" if self.count is None else f" COUNT {self.count}"
        period = f"PERIOD({self.columns[-2]}, {self.columns[-1]}) AS ({self.start}, {self.end})"
        return f"PeriodAlgebra: {self.operation.upper()}{keys} {period}{count} [{self.empty} empty]"
