"""Key classes of a UMJoin's inner inputs, and what can be expressed in the columns of another input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from sqlext_planner.expressions.arithmetic import INTEGERS
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts, is_exact
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.umjoin.nodes import UMJoin


class NotFactorisedError(Exception):
    """Why an aggregate is not factorised; users never see it as an error, but as the reason in EXPLAIN."""


@dataclass(frozen=True)
class Classes:
    """Which input each column belongs to, and which columns of inner inputs are equal in every joined row.

    Columns of left inputs are in no class: they are NULL in rows without a match.
    """

    join: UMJoin
    inner: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        inner = tuple(i for i, kind in enumerate(self.join.kinds) if kind == "inner")
        object.__setattr__(self, "inner", inner)

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
        match term:
            case Compare("=", Column() as left, Column() as right):
                return self.is_inner(left) and self.is_inner(right) and self.owner[left] != self.owner[right]
        return False

    @cached_property
    def members(self) -> tuple[tuple[Column, ...], ...]:
        """The classes, each in order of the inputs.

        Raises NotFactorisedError if columns that equal a third one need not equal each other: 1 = '1' and
        1 = '1.0'. Just two columns may have any types, since they are compared as before.
        """
        class_of: dict[Column, list[Column]] = {}
        for term in filter(self.is_key, conjuncts(self.join.condition)):
            assert isinstance(term, Compare)
            assert isinstance(term.left, Column)
            assert isinstance(term.right, Column)
            left, right = class_of.setdefault(term.left, [term.left]), class_of.setdefault(term.right, [term.right])
            if left is not right:
                left.extend(right)
                class_of.update(dict.fromkeys(right, left))
        place = {column: n for n, column in enumerate(self.owner)}
        groups = {id(group): tuple(sorted(group, key=place.__getitem__)) for group in class_of.values()}
        for group in groups.values():
            kinds = {self.dtypes[column] for column in group}
            if len(group) > 2 and (None in kinds or (len(kinds) > 1 and not kinds <= set(INTEGERS))):
                names = ", ".join(map(str, group))
                raise NotFactorisedError(
                    f"the types of {names} differ: what equals one of them need not equal the others"
                )
        return tuple(sorted(groups.values(), key=lambda group: place[group[0]]))

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
