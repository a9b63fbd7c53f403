"""What the condition of a LAST JOIN reads, and in which types it compares its sides. Needs no Spark."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.last_join.nodes import LastMatch

_MIRRORED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class ResidualTerms:
    """The conjuncts of a match's residual by what they read.

    `comparisons` have their left operand over the left side and the right one over the right side; `left_only`
    includes constants; `mixed` is everything else, which only Spark evaluates.
    """

    comparisons: tuple[Compare, ...] = ()
    left_only: tuple[Expression, ...] = ()
    right_only: tuple[Expression, ...] = ()
    mixed: tuple[Expression, ...] = ()

    @classmethod
    def of(cls, match: LastMatch, left: Collection[Column], right: Collection[Column]) -> ResidualTerms:
        """The terms of `match` between sides with these columns."""
        found: dict[str, list[Expression]] = {"comparisons": [], "left_only": [], "right_only": [], "mixed": []}
        for term in conjuncts(match.residual):
            kind, sided = _kind(term, left, right)
            found[kind].append(sided)
        comparisons = tuple(term for term in found["comparisons"] if isinstance(term, Compare))
        return cls(comparisons, tuple(found["left_only"]), tuple(found["right_only"]), tuple(found["mixed"]))

    @property
    def is_empty(self) -> bool:
        """Whether the winner of a key is the same for all left rows."""
        return not (self.comparisons or self.left_only or self.mixed)


def _kind(term: Expression, left: Collection[Column], right: Collection[Column]) -> tuple[str, Expression]:
    if not is_movable(term):
        return "mixed", term
    if all(column in left for column in term.references):
        return "left_only", term
    if all(column in right for column in term.references):
        return "right_only", term
    if isinstance(term, Compare):
        for a, b, op in ((term.left, term.right, term.op), (term.right, term.left, _MIRRORED[term.op])):
            if all(column in left for column in a.references) and all(column in right for column in b.references):
                return "comparisons", Compare(op, a, b, span=term.span)
    return "mixed", term
