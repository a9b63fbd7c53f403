"""OpenMLDB's LAST JOIN. An ASOF JOIN is one whose order is in its condition."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts, is_movable, reads_only
from sqlext_planner.relational.joins import PartitionerHint
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, Passed, comma, with_fields
from sqlext_planner.relational.nodes import filtered


@dataclass(frozen=True)
class LastMatch(Expression):
    """Which rows of one right side match a left row, and which of them is the last.

    `left_keys[i] = right_keys[i]` are the equalities (``<=>`` where `null_safe[i]`): left ones read columns of the
    left side only, right ones of this right side only. `residual` is the rest of the condition, over both. Of the
    matching rows the one with the largest first key of `order_by` wins (smallest where it is `descending`, as OpenMLDB
    reads DESC); one with NULL only if there is no other. Among equals the next key says, and then, as without
    `order_by`, the last in the right side's own order wins. `title` is what the user wrote, for messages.
    """

    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    null_safe: tuple[bool, ...]
    residual: Expression | None = None
    order_by: tuple[Expression, ...] = ()
    descending: tuple[bool, ...] = ()
    title: str = field(default="a LAST JOIN", compare=False, kw_only=True, repr=False)

    @cached_property
    def references(self) -> frozenset[Column]:
        rest = () if self.residual is None else (self.residual,)
        parts = (*self.left_keys, *self.right_keys, *rest, *self.order_by)
        return frozenset().union(*(item.references for item in parts))

    def __str__(self) -> str:
        pairs = zip(self.left_keys, self.null_safe, self.right_keys, strict=True)
        terms = [f"{left} {'<=>' if safe else '='} {right}" for left, safe, right in pairs]
        terms += [str(self.residual)] if self.residual is not None else []
        keys = zip(self.order_by, self.descending, strict=True)
        order = ", ".join(f"{key}{' DESC' if descending else ''}" for key, descending in keys)
        return f"{f'ORDER BY {order} ' if order else ''}ON {' AND '.join(terms) or 'TRUE'}"


@dataclass(frozen=True)
class LastJoin(LogicalPlan):
    """Every left row once, with the last matching row of each right side, or NULLs (docs/reference/last-join.md).

    ``a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND a.ts >= b.ts`` is ``LastJoin(a, (b,), (match,))``. `matches[i]`
    belongs to `rights[i]`. Several right sides share the left keys, so that one exchange serves them all; no match
    reads another right side's columns. Outputs the left columns, then those of each right side. `partitioner` is what
    a hint asked for.
    """

    is_extension = True
    feeds_exchange = True
    operator_name = "a LAST JOIN"

    left: LogicalPlan
    rights: tuple[LogicalPlan, ...]
    matches: tuple[LastMatch, ...]
    partitioner: PartitionerHint | None = None

    def child_needs(self, needed: Set[Column]) -> Needs:
        kept = self._pruned(needed)
        columns = needed | {column for _, found in kept for column in found.references}
        return [(side, columns & set(side.output_columns)) for side in (self.left, *(right for right, _ in kept))]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        kept = self._pruned(needed)
        if not kept:
            return built(self.left)
        rights = tuple(built(right) for right, _ in kept)
        return with_fields(self, left=built(self.left), rights=rights, matches=tuple(found for _, found in kept))

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms over left columns: every left row gives exactly one row, with its own values and a match that does not
        depend on any other left row.

        Never legal for a term that reads the right side: ``WHERE b.v < 9`` keeps the rows whose *last* match has
        v < 9; with b filtered first, a row whose last match has v = 10 would get an older match instead, and a row
        without any match would stay with NULLs until the filter. A condition that chooses among the matches belongs in
        ON.
        """
        passed = [term for term in terms if reads_only(term, self.left.column_set)]
        return (with_fields(self, left=filtered(passed, self.left)), passed) if passed else None

    def _pruned(self, needed: Set[Column]) -> list[tuple[LogicalPlan, LastMatch]]:
        """The right sides of which any column is needed, with their matches."""
        pairs = zip(self.rights, self.matches, strict=True)
        return [(right, found) for right, found in pairs if needed & set(right.output_columns)]

    def __post_init__(self) -> None:
        if len(self.rights) != len(self.matches):
            raise InternalError("a LAST JOIN has one match for each right side")
        if any(match.left_keys != self.matches[0].left_keys for match in self.matches):
            raise InternalError("the right sides of one LAST JOIN node share the left keys")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.left.output + tuple(field for right in self.rights for field in right.output)

    def expressions(self) -> Iterator[Expression]:
        yield from self.matches

    def missing_references(self) -> frozenset[Column]:
        ours = frozenset(self.left.output_columns)
        missing: set[Column] = set()
        for right, match in zip(self.rights, self.matches, strict=True):
            theirs = frozenset(right.output_columns)
            missing |= match.references - ours - theirs
            for keys, known in ((match.left_keys, ours), (match.right_keys, theirs), (match.order_by, theirs)):
                missing |= {column for key in keys for column in key.references - known}
        return frozenset(missing)

    def label(self) -> str:
        hint = "" if self.partitioner is None else f" {self.partitioner}"
        return f"LastJoin: {comma(self.matches)}{hint}"


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
        for one in (term, term.mirrored):
            if all(c in left for c in one.left.references) and all(c in right for c in one.right.references):
                return "comparisons", one
    return "mixed", term
