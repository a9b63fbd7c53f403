"""The alternatives of a join's condition: no two hold for one pair, whatever is NULL.

A pair has to be found once, so ``x OR y`` becomes the alternatives "x" and "y, and x is not true". A comparison is not
true where its opposite is, where its left value is NULL, and where only its right one is. What is about one side alone
is a guard: it goes into the values of that side, which are NULL for rows that have no part in an alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from sqlext_operators.interval_join.conditions import NEGATED, Condition, Operator
from sqlext_operators.interval_join.passes import Side

from sqlext_planner.expressions.nodes import And, Compare, Expression, conjunction
from sqlext_planner.expressions.nodes import Literal as Constant
from sqlext_planner.expressions.typed import call, case, is_value, negation

#: Sets of relations and of alternatives multiply; a statement with more keeps the set in the residual.
MOST_ALTERNATIVES = 64


@dataclass(frozen=True)
class Compared:
    """A condition between the two sides, and the expressions of its values."""

    condition: Condition
    left: Expression
    right: Expression

    @property
    def values(self) -> tuple[tuple[Side, Expression], tuple[Side, Expression]]:
        """Both values with their sides."""
        return ("left", self.left), ("right", self.right)


Says = Literal["null", "known", "true", "not true"]
_OPPOSITES: dict[Says, Says] = {"null": "known", "known": "null", "true": "not true", "not true": "true"}


@dataclass(frozen=True)
class Guard:
    """A term over one side: that a value is NULL or known, that a condition is true or not."""

    side: Side
    expression: Expression
    says: Says = "true"

    @property
    def opposite(self) -> Guard:
        """The term that is true where this one is not."""
        return replace(self, says=_OPPOSITES[self.says])

    def known(self) -> tuple[Expression, ...]:
        """The values that are not NULL where the term is true, as far as its form shows."""
        match self.expression:
            case Compare(op, left, right) if self.says == "true" and op != "<=>":
                return left, right
            case And(terms) if self.says == "true":
                return tuple(value for term in terms for value in replace(self, expression=term).known())
        return (self.expression,) if self.says == "known" else ()

    def text(self) -> Expression:
        """The term as a condition."""
        match self.says:
            case "true":
                return self.expression
            case "not true":
                return negation(call("coalesce", self.expression, Constant("false", dtype="boolean"), dtype="boolean"))
        return is_value(self.expression, "null", negated=self.says == "known")


Term = Compared | Guard


@dataclass(frozen=True)
class Alternative:
    """Terms that hold together: conditions between the sides, and what is about one of them."""

    conditions: tuple[Compared, ...] = ()
    guards: tuple[Guard, ...] = ()

    @property
    def is_rare(self) -> bool:
        """Whether it is about rows with a NULL."""
        return any(guard.says == "null" for guard in self.guards)

    def guarded(self, side: Side) -> tuple[Expression, ...]:
        """The terms over a side that its conditions do not imply."""
        compared = self._compared(side)
        return tuple(
            guard.text()
            for guard in dict.fromkeys(self.guards)
            if guard.side == side and not (guard.says == "known" and guard.expression in compared)
        )

    def _compared(self, side: Side) -> set[Expression]:
        """The values that are compared, and so not NULL."""
        return {item.left if side == "left" else item.right for item in self.conditions}

    def _known(self, side: Side) -> set[Expression]:
        return self._compared(side).union(*(guard.known() for guard in self.guards if guard.side == side))

    def extended(self, term: Term) -> Alternative | None:
        """The alternative with one term more; None if both cannot hold."""
        if isinstance(term, Guard):
            if term.opposite in self.guards or (term.says == "null" and term.expression in self._known(term.side)):
                return None
            nulls = any(Guard(term.side, value, "null") in self.guards for value in term.known())
            return None if nulls else replace(self, guards=(*self.guards, term))
        if any(Guard(side, value, "null") in self.guards for side, value in term.values):
            return None
        new = term.condition  # another one over the same values may exclude it: "<=" allows "<" and "="
        for old in (item.condition for item in self.conditions):
            same = (old.left, old.right, old.shift) == (new.left, new.right, new.shift)
            if same and not set(old.operator) & set(new.operator):
                return None
        return replace(self, conditions=(*self.conditions, term))


def either(known: Iterable[Alternative], options: Sequence[Sequence[Term]]) -> list[Alternative] | None:
    """Each of the `known` alternatives with one of the options, whose terms hold together; each option where no earlier
    one is true. None if these are too many, or none is left."""
    alternatives: list[Alternative] = []
    for start in known:
        rest = [start]
        for option in options:
            alternatives += _all_of(rest, option)
            rest = [item for before in rest for item in _none_of(before, option)]
            if len(rest) > MOST_ALTERNATIVES:
                return None
    return alternatives if 0 < len(alternatives) <= MOST_ALTERNATIVES else None


def _all_of(known: Iterable[Alternative], option: Sequence[Term]) -> list[Alternative]:
    """The known alternatives with terms that hold together, as far as they may."""
    extended: list[Alternative] = []
    for item in known:
        longer: Alternative | None = item
        for term in option:
            longer = None if longer is None else longer.extended(term)
        extended += [] if longer is None else [longer]
    return extended


def _none_of(known: Alternative, option: Sequence[Term]) -> list[Alternative]:
    """The known alternative where not all terms of the option are true: the first is not, or it is and the second is
    not, and so on."""
    alternatives: list[Alternative] = []
    before: Alternative | None = known
    for term in option:
        for other in _not_true(term):
            alternatives += [] if before is None else _all_of([before], other)
        before = None if before is None else before.extended(term)
    return alternatives


def _not_true(term: Term) -> list[list[Term]]:
    """Where a term is false or NULL: alternatives, each a list of terms."""
    if isinstance(term, Guard):
        return [[term.opposite]]
    condition = term.condition
    opposite: tuple[Operator, ...] = ("<", ">") if condition.operator == "=" else (NEGATED[condition.operator],)
    others: list[list[Term]] = [[replace(term, condition=replace(condition, operator=op))] for op in opposite]
    left, right = Guard("left", term.left, "null"), Guard("right", term.right, "null")
    return [*others, [left], [left.opposite, right]]


def finished(
    alternatives: Sequence[Alternative], value: Callable[[Side, Expression], str], moving: Set[str]
) -> list[tuple[Condition, ...]]:
    """The conditions of each alternative, between values that are NULL where its guards are not true; `value` returns
    the name of a value of a side. The values `moving` are ends of periods that may be one instant: they get no guard,
    because a value made of one would not move."""
    return [_guarded(item, value, moving) for item in alternatives]


def _guarded(item: Alternative, value: Callable[[Side, Expression], str], moving: Set[str]) -> tuple[Condition, ...]:
    sides: tuple[Side, Side] = ("left", "right")
    names: dict[str, str] = {}
    rest: dict[Side, Expression] = {}
    for side in sides:
        when = conjunction(item.guarded(side))
        own = (getattr(compared.condition, side) for compared in item.conditions)
        place = next((i for i, name in enumerate(own) if name not in moving), None)
        if when is not None and place is not None:
            compared = item.conditions[place]
            names[getattr(compared.condition, side)] = value(side, case(when, getattr(compared, side)))
        elif when is not None:
            rest[side] = when
    conditions = tuple(
        replace(one, left=names.get(one.left, one.left), right=names.get(one.right, one.right))
        for one in (compared.condition for compared in item.conditions)
    )
    if not rest:
        return conditions
    one = Constant("0", dtype="int")  # the same value for all rows that the guards leave
    left, right = (value(side, case(rest[side], one) if side in rest else one) for side in sides)
    return (*conditions, Condition(left, "<=", right))
