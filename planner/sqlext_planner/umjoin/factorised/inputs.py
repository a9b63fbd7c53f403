"""Key classes of a UMJoin's inner inputs, and what can be expressed in the columns of another input.

The inputs of a factorised aggregate: filtered, with semi and anti joins done, and how left inputs match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.expressions.arithmetic import INTEGERS
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction, conjuncts, is_exact, is_movable
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import filtered
from sqlext_planner.umjoin.nodes import UMJoin, equality, key_groups


class NotFactorisedError(Exception):
    """Why an aggregate is not factorised; users never see it as an error, but as the reason in EXPLAIN."""


@dataclass(frozen=True)
class Classes:
    """Which input each column belongs to, and which columns of inner inputs are equal in every joined row.

    Columns of left inputs are in no class: they are NULL in rows without a match.
    """

    join: UMJoin

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The inner inputs."""
        return tuple(i for i, kind in enumerate(self.join.kinds) if kind == "inner")

    @cached_property
    def owner(self) -> dict[Column, int]:
        """The input of each column."""
        return {column: i for i, child in enumerate(self.join.inputs) for column in child.output_columns}

    @cached_property
    def dtypes(self) -> dict[Column, str | None]:
        """The type of each column."""
        return {column: dtype for child in self.join.inputs for column, dtype in child.dtypes.items()}

    def is_inner(self, column: Column) -> bool:
        return self.join.kinds[self.owner[column]] == "inner"

    def is_key(self, term: Expression) -> bool:
        """True for ``column = column`` of two inner inputs."""
        pair = equality(term)
        return pair is not None and all(map(self.is_inner, pair)) and self.owner[pair[0]] != self.owner[pair[1]]

    @cached_property
    def members(self) -> tuple[tuple[Column, ...], ...]:
        """The classes, each in order of the inputs.

        Raises NotFactorisedError if columns that equal a third one need not equal each other: 1 = '1' and
        1 = '1.0'. Just two columns may have any types, since they are compared as before.
        """
        pairs = (equality(term) for term in conjuncts(self.join.condition) if self.is_key(term))
        groups = key_groups((pair for pair in pairs if pair is not None), self.owner)
        for group in groups:
            kinds = {self.dtypes[column] for column in group}
            if len(group) > 2 and (None in kinds or (len(kinds) > 1 and not kinds <= set(INTEGERS))):
                names = ", ".join(map(str, group))
                raise NotFactorisedError(
                    f"the types of {names} differ: what equals one of them need not equal the others"
                )
        return tuple(groups)

    @cached_property
    def of(self) -> dict[Column, int]:
        """The number of a column's class."""
        return {column: number for number, group in enumerate(self.members) for column in group}

    def numbers(self, number: int) -> frozenset[int]:
        """The classes of an inner input."""
        return self._numbers[number]

    def column(self, group: int, number: int) -> Column:
        """The first column of a class in an input that has one."""
        return self._columns[group, number]

    @cached_property
    def _numbers(self) -> tuple[frozenset[int], ...]:
        inputs = (child.output_columns for child in self.join.inputs)
        return tuple(frozenset(self.of[column] for column in columns if column in self.of) for columns in inputs)

    @cached_property
    def _columns(self) -> dict[tuple[int, int], Column]:
        found: dict[tuple[int, int], Column] = {}
        for group, columns in enumerate(self.members):
            for column in columns:
                found.setdefault((group, self.owner[column]), column)
        return found

    def equal(self, column: Column, number: int) -> Column | None:
        """A column of the input that is equal to `column` in every joined row; it may be another value of the type
        (0.0 and -0.0)."""
        if self.owner[column] == number:
            return column
        group = self.of.get(column)
        if group is None or group not in self.numbers(number):
            return None
        return self.column(group, number)

    def same(self, column: Column, number: int) -> Column | None:
        """A column of the input that has the value of `column` in every joined row."""
        found = self.equal(column, number)
        if found is None or found == column:
            return found
        return found if is_exact(self.dtypes[column]) and self.dtypes[found] == self.dtypes[column] else None

    def translated(self, expression: Expression, number: int) -> Expression | None:
        """The expression in columns of one input, with the same value in every joined row; None if it needs others."""
        found = {column: self.same(column, number) for column in expression.references}
        known = {column: partner for column, partner in found.items() if partner is not None}
        return expression.substitute(known) if len(known) == len(found) else None

    def homes(self, expression: Expression) -> tuple[tuple[int, Expression], ...]:
        """Every input that the expression can be computed on, with its text there; its own columns' input first."""
        owners = {self.owner[column] for column in expression.references}
        numbers: Iterable[int] = sorted(self.inner, key=lambda number: number not in owners)
        if any(not self.is_inner(column) for column in expression.references):
            numbers = owners if len(owners) == 1 else ()
        return tuple((i, text) for i in numbers if (text := self.translated(expression, i)) is not None)

    def names(self, expression: Expression) -> str:
        """The inputs that an expression reads, for messages."""
        owners = sorted({self.owner[column] for column in expression.references})
        return ", ".join(relation_name(self.join.inputs[number]) for number in owners)


@dataclass(frozen=True)
class LeftMatch:
    """How a left input matches: `pairs` of equal columns (the row's, its own) and `outer`, terms over the row alone."""

    number: int
    pairs: tuple[tuple[Column, Column], ...]
    outer: tuple[Expression, ...]


@dataclass(frozen=True)
class Members:
    """The inner and left inputs by number, and the matches of the left ones in order."""

    plans: dict[int, LogicalPlan]
    lefts: tuple[LeftMatch, ...]


def members(classes: Classes) -> Members:
    """The inputs with all terms of the UMJoin's conditions applied, except the equalities between inputs.

    Raises NotFactorisedError for a term that looks at several inputs, or must be evaluated in its own place.
    """
    join = classes.join
    filters: dict[int, list[Expression]] = {number: [] for number in range(len(join.inputs))}
    for term in conjuncts(join.condition):
        if not classes.is_key(term):
            home, own = _home(classes, term)
            filters[home].append(own)
    for group in classes.members:
        _equal_within(classes, group, filters)
    lefts = []
    partial: list[tuple[int, int, Expression | None]] = []
    for number, (kind, match) in enumerate(zip(join.kinds, join.matches, strict=True)):
        if kind == "left":
            left, own_terms = _left_match(classes, number, match)
            lefts.append(left)
            filters[number] += own_terms
        elif kind in ("semi", "anti"):
            partial.append((*_host(classes, number, match),))
    plans = {
        number: filtered(filters[number], join.inputs[number])
        for number, kind in enumerate(join.kinds)
        if kind in ("inner", "left")
    }
    for host, number, condition in partial:
        kind = "semi" if join.kinds[number] == "semi" else "anti"
        plans[host] = Join(plans[host], join.inputs[number], kind, condition)
    return Members(plans, tuple(lefts))


def _equal_within(classes: Classes, group: tuple[Column, ...], filters: dict[int, list[Expression]]) -> None:
    """Adds filters for columns of one input in one class: they equal each other."""
    first: dict[int, Column] = {}
    for column in group:
        number = classes.owner[column]
        if number in first:
            filters[number].append(Compare("=", first[number], column))
        first.setdefault(number, column)


def _home(classes: Classes, term: Expression) -> tuple[int, Expression]:
    """The inner input that a term of the condition filters, and the term in its columns."""
    if not is_movable(term):
        raise NotFactorisedError(f"the term {term} must be evaluated in its place")
    if any(not classes.is_inner(column) for column in term.references):
        raise NotFactorisedError(
            f"the term {term} reads a left input, so it is checked only after the matches are found"
        )
    homes = classes.homes(term)
    if not homes:
        raise NotFactorisedError(f"the term {term} needs rows of {classes.names(term)} together")
    return homes[0]


def _left_match(classes: Classes, number: int, match: Expression | None) -> tuple[LeftMatch, list[Expression]]:
    """How left input `number` matches, and the terms over it alone."""
    columns = set(classes.join.inputs[number].output_columns)
    pairs: list[tuple[Column, Column]] = []
    outer: list[Expression] = []
    inside: list[Expression] = []
    for term in conjuncts(match):
        if not is_movable(term):
            raise NotFactorisedError(f"the term {term} must be evaluated in its place")
        pair = _pair(term, columns)
        if pair is not None:
            pairs.append(pair)
        elif term.references and term.references <= columns:
            inside.append(term)
        elif not term.references & columns:
            outer.append(term)
        else:
            raise NotFactorisedError(f"the term {term} needs rows of {classes.names(term)} together")
    return LeftMatch(number, tuple(pairs), tuple(outer)), inside


def _pair(term: Expression, own: set[Column]) -> tuple[Column, Column] | None:
    match term:
        case Compare("=", Column() as left, Column() as right) if (left in own) != (right in own):
            return (right, left) if left in own else (left, right)
    return None


def _host(classes: Classes, number: int, match: Expression | None) -> tuple[int, int, Expression | None]:
    """The inner input whose rows semi or anti input `number` filters, the number, and the match in its columns."""
    own = set(classes.join.inputs[number].output_columns)
    name = relation_name(classes.join.inputs[number])
    if match is not None and not is_movable(match):
        raise NotFactorisedError(f"the match of {name} must be evaluated in its place")
    outer = frozenset[Column]() if match is None else match.references - own
    if any(not classes.is_inner(column) for column in outer):
        raise NotFactorisedError(f"{name} is looked up with columns of a left input")
    for home in sorted(classes.inner, key=lambda home: sum(classes.owner[column] != home for column in outer)):
        found = {column: classes.same(column, home) for column in outer}
        known = {column: partner for column, partner in found.items() if partner is not None}
        if len(known) == len(found):
            terms = [term.substitute(known) for term in conjuncts(match)]
            return home, number, conjunction(terms)
    raise NotFactorisedError(f"{name} is looked up with columns of several inputs")
