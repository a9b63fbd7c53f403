"""Period predicates as expressions: rules look inside them, everywhere else they are plain Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_planner.expressions import Column, Expression
from sqlext_planner.interval_relations import RELATIONS, Condition, Relation

#: What an empty or reversed period does: match nothing, stop the job, or (``[t, t)`` only) count as one instant.
EmptyPeriods = Literal["drop", "error", "point"]


@dataclass(frozen=True)
class Amount:
    """A bound of a distance: a whole number or fraction in the unit of the ends (`interval` False), or microseconds."""

    value: int | float
    interval: bool

    def sql(self) -> str:
        """Spark SQL text."""
        return f"INTERVAL '{self.value / 1_000_000:.6f}' SECOND" if self.interval else str(self.value)


@dataclass(frozen=True)
class Period(Expression):
    """``PERIOD(start, end)``: [start, end). A point t is ``Period(t, t)``, taken as [t, t]."""

    start: Expression
    end: Expression

    @cached_property
    def references(self) -> frozenset[Column]:
        return self.start.references | self.end.references

    def __str__(self) -> str:
        return f"PERIOD({self.start}, {self.end})"


@dataclass(frozen=True)
class PeriodPredicate(Expression):
    """``left relation right`` between two periods: true, false, or NULL where an end is NULL.

    False where a period is empty or reversed, as in a join (interval_predicates.md section 6); `empty` says what else
    may happen. `relation` is a name of the table; several names mean any of them (``allen_relation(...) IN (...)``;
    they are then disjoint). `point`: the right side is a single value.
    """

    relations: tuple[str, ...]
    left: Period
    right: Period
    delta: Amount | None = None
    epsilon: Amount | None = None
    empty: EmptyPeriods = "drop"
    point: bool = False

    @property
    def rows(self) -> tuple[Relation, ...]:
        """The relations' rows of the table."""
        return tuple(RELATIONS[name] for name in self.relations)

    def endpoint(self, name: str) -> Expression:
        """The expression of a, b, c or d."""
        return {"a": self.left.start, "b": self.left.end, "c": self.right.start, "d": self.right.end}[name]

    def terms(self, relation: Relation) -> tuple[Condition, ...]:
        """The formula of one of the relations, without distances that nothing bounds."""
        given = {"delta": self.delta, "epsilon": self.epsilon}
        kept = (
            term for term in relation.terms if not isinstance(term.shift, tuple) or given[term.shift[1]] is not None
        )
        if not self.point:
            return tuple(kept)
        return (Condition("a", "<=", "c"), Condition("b", ">", "c"))

    def __str__(self) -> str:
        words = " OR ".join(row.words[0] for row in self.rows)
        bounds = [f"{n} {v.sql()}" for n, v in (("START", self.delta), ("END", self.epsilon)) if v is not None]
        within = f" WITHIN ({', '.join(bounds)})" if bounds else ""
        return f"{self.left} {words} {self.right.start if self.point else self.right}{within}"
