"""Comparisons between the rows of two sides, and what follows from them. Loads neither numpy nor numba.

A condition compares one value of a left row with one of a right row: `left + shift operator right`. The values are
names: the endpoints a, b (left period [a, b)) and c, d (right period [c, d)) in the table of relations, wire columns
in a join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Operator = Literal["<", "<=", "=", ">=", ">"]

MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}
NEGATED: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">=": "<", ">": "<="}

#: A number in a join; in the table of relations a parameter's name and sign: (1, "delta"), (-1, "epsilon"); or 0.
Shift = int | float | tuple[int, str]


@dataclass(frozen=True)
class Condition:
    """``left + shift operator right``. Additions saturate: a shift never wraps around. NULL matches nothing."""

    left: str
    operator: Operator
    right: str
    shift: Shift = 0

    @property
    def is_lower(self) -> bool:
        """Whether it bounds the right value from below (so the left one from above)."""
        return self.operator in ("<", "<=")

    @property
    def is_strict(self) -> bool:
        """Whether equality is excluded."""
        return self.operator in ("<", ">")

    def __str__(self) -> str:
        if not self.shift:
            return f"{self.left} {self.operator} {self.right}"
        sign, amount = self.shift if isinstance(self.shift, tuple) else (-1 if self.shift < 0 else 1, abs(self.shift))
        return f"{self.left} {'-' if sign < 0 else '+'} {amount} {self.operator} {self.right}"


def split_equalities(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions with every ``=`` as ``<=`` and ``>=``."""
    inequalities: list[Condition] = []
    for condition in conditions:
        if condition.operator == "=":
            inequalities += [replace(condition, operator="<="), replace(condition, operator=">=")]
        else:
            inequalities.append(condition)
    return tuple(inequalities)


def consequences(
    conditions: Sequence[Condition], left: tuple[str, str] | None, right: tuple[str, str] | None
) -> tuple[Condition, ...]:
    """The conditions, and those that follow from them where periods (start, end) are known not to be empty.

    From ``c <= a`` and the left period ``a < b`` follows ``c < b``. Only conditions without a shift are combined. A
    consequence that is weaker than a condition on the same values is left out.
    """
    below: dict[tuple[str, str], bool] = {}  # (x, y): x < y (True), x <= y (False)
    for pair in (left, right):
        if pair is not None:
            below[pair] = True
    for item in split_equalities(conditions):
        if not item.shift:
            pair = (item.left, item.right) if item.is_lower else (item.right, item.left)
            below[pair] = below.get(pair, False) or item.is_strict
    changed = True
    while changed:
        changed = False
        for (x, y), first in list(below.items()):
            for (z, w), second in list(below.items()):
                if y == z and x != w and not below.get((x, w), False) and (first or second or (x, w) not in below):
                    below[(x, w)] = first or second
                    changed = True
    lefts = {item.left for item in conditions} | set(left or ())
    rights = {item.right for item in conditions} | set(right or ())
    implied = [item for item in split_equalities(conditions) if item.shift]
    for (x, y), strict in below.items():
        if x in lefts and y in rights:
            implied.append(Condition(x, "<" if strict else "<=", y))
        elif x in rights and y in lefts:
            implied.append(Condition(y, ">" if strict else ">=", x))
    return tuple(implied)
