"""Expressions of endpoint iterators: what is done to the endpoints of a side before a sweep.

docs/reference/sweeps.md, section 3; Piatov et al. 2021, section 6.2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from sqlext_operators.interval_join.conditions import Shift
from sqlext_operators.interval_join.sweep.iterators import (
    EndpointIterator,
    FilteringIterator,
    FirstEndIterator,
    IndexIterator,
    MergingIterator,
    SecondStartIterator,
    ShiftingIterator,
)
from sqlext_operators.interval_join.sweep.kernels.events import EARLY_START, END, LATE_END, START

Values = Mapping[str, float | None]

CODE_NAMES = {EARLY_START: "early start", END: "end", START: "start", LATE_END: "late end"}


class EndpointExpression(ABC):
    """An expression of endpoint iterators."""

    def given(self, values: Values) -> EndpointExpression:
        """The expression with numbers for parameters; one without a value is infinite."""
        parts = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        sources = {n: part.given(values) for n, part in parts.items() if isinstance(part, EndpointExpression)}
        return replace(self, **sources)  # type: ignore[type-var]

    @abstractmethod
    def open(self) -> EndpointIterator:
        """The iterator, at its beginning; the expression has numbers for its parameters."""


@dataclass(frozen=True)
class AllEndpoints(EndpointExpression):
    """All endpoints."""

    def open(self) -> EndpointIterator:
        return IndexIterator()

    def __str__(self) -> str:
        return "Index"


@dataclass(frozen=True)
class EndpointFilter(EndpointExpression):
    """Endpoints of one type."""

    source: EndpointExpression
    code: int

    def open(self) -> EndpointIterator:
        return FilteringIterator(self.source.open(), self.code)

    def __str__(self) -> str:
        return f"Filter({self.source}, {CODE_NAMES[self.code]})"


@dataclass(frozen=True)
class Shifted(EndpointExpression):
    """Endpoints that come `amount` later and are of type `code`.

    Where the paper shifts by delta + 1 to an end, this shifts by delta to a LATE_END, which comes after the starts of
    its time: the same in whole numbers, and correct even where delta + 1 or time + delta leaves int64.
    """

    source: EndpointExpression
    amount: Shift
    code: int

    def given(self, values: Values) -> Shifted:
        amount = self.amount
        if isinstance(amount, tuple):
            sign, name = amount
            value = values.get(name)
            amount = sign * (float("inf") if value is None else value)
        return replace(self, source=self.source.given(values), amount=amount)

    def open(self) -> EndpointIterator:
        assert not isinstance(self.amount, tuple)
        return ShiftingIterator(self.source.open(), self.amount, self.code)

    def __str__(self) -> str:
        if isinstance(self.amount, tuple):
            amount = f"{'+' if self.amount[0] > 0 else '-'}{self.amount[1]}"
        else:
            amount = f"{self.amount:+}" if self.amount else "0"
        return f"Shift({self.source}, {amount}, {CODE_NAMES[self.code]})"


@dataclass(frozen=True)
class Merge(EndpointExpression):
    """The endpoints of two expressions."""

    first: EndpointExpression
    second: EndpointExpression

    def open(self) -> EndpointIterator:
        return MergingIterator(self.first.open(), self.second.open())

    def __str__(self) -> str:
        return f"Merge({self.first}, {self.second})"


@dataclass(frozen=True)
class _Bounded(EndpointExpression):
    """The index with a bound; the index itself where the bound is infinite."""

    bound: Shifted

    def given(self, values: Values) -> EndpointExpression:
        bound = self.bound.given(values)
        return INDEX if bound.amount in (float("inf"), float("-inf")) else replace(self, bound=bound)

    def __str__(self) -> str:
        return f"{type(self).__name__}(Merge(Index, {self.bound}))"


@dataclass(frozen=True)
class FirstEnd(_Bounded):
    """Tuples that end where `bound` has an end, if that is before their own."""

    def open(self) -> EndpointIterator:
        return FirstEndIterator(MergingIterator(IndexIterator(), self.bound.open()))


@dataclass(frozen=True)
class SecondStart(_Bounded):
    """Tuples that start where `bound` has a start, if that is after their own."""

    def open(self) -> EndpointIterator:
        return SecondStartIterator(MergingIterator(IndexIterator(), self.bound.open()))


INDEX = AllEndpoints()
STARTS = EndpointFilter(INDEX, START)
ENDS = EndpointFilter(INDEX, END)

#: [a, min(b, a + delta]] and (max(a, b - epsilon[, b]: the parameterised start preceding and end following joins.
P_START = FirstEnd(Shifted(STARTS, (1, "delta"), LATE_END))
P_END = SecondStart(Shifted(ENDS, (-1, "epsilon"), EARLY_START))
#: [b, b + delta] and [b, infinity): the general before join.
GENERAL_BEFORE = Merge(Shifted(ENDS, 0, START), Shifted(ENDS, (1, "delta"), LATE_END))
FROM_END = Merge(Shifted(ENDS, 0, START), Shifted(ENDS, float("inf"), LATE_END))
#: [b, b], [a, a], and [b, b] among ends.
AT_END = Merge(Shifted(ENDS, 0, START), Shifted(ENDS, 0, LATE_END))
AT_START = Merge(STARTS, Shifted(STARTS, 0, LATE_END))
AMONG_ENDS = Merge(Shifted(ENDS, 0, EARLY_START), ENDS)
