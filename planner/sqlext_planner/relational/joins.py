"""The binary join of the relational core, and the hints that a join carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from sqlext_planner.errors import InternalError, Span
from sqlext_planner.expressions.nodes import Column, Expression, conjunction, conjuncts, reads_only
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, Passed, comma
from sqlext_planner.relational.nodes import filtered

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]


@dataclass(frozen=True)
class UMJoinHint:
    """A hint UMJOIN, with the relations that it names (none: all that the block joins), or NO_UMJOIN."""

    names: tuple[str, ...] = ()
    wanted: bool = True
    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return ("UMJOIN" if self.wanted else "NO_UMJOIN") + (f"({comma(self.names)})" if self.names else "")


@dataclass(frozen=True)
class PartitionerHint:
    """A hint PARTITIONER: how the exchanges of a block's own operators spread their rows."""

    name: str
    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"PARTITIONER({self.name})"


class Drops(NamedTuple):
    """Whether a side's row is dropped where a term above the join rejects what it becomes, and where it fails ON."""

    above: bool
    on: bool


#: Of the left and of the right side. What follows for terms: `Join.filtered_below`, and the rule push_join_condition.
DROPS: Mapping[JoinKind, tuple[Drops, Drops]] = {
    "inner": (Drops(above=True, on=True), Drops(above=True, on=True)),
    "cross": (Drops(above=True, on=True), Drops(above=True, on=True)),
    "left": (Drops(above=True, on=False), Drops(above=False, on=True)),
    "right": (Drops(above=False, on=True), Drops(above=True, on=False)),
    "full": (Drops(above=False, on=False), Drops(above=False, on=False)),
    "semi": (Drops(above=True, on=True), Drops(above=False, on=True)),
    "anti": (Drops(above=True, on=False), Drops(above=False, on=True)),
}


@dataclass(frozen=True)
class Join(LogicalPlan):
    """A binary join. A semi or anti join outputs the left side's columns only.

    `sweep`: a hint asked for (True) or refused (False) an interval join. `umjoin`: a hint asked for this and other
    joins to be one operator, or refused that. `partitioner` is what a hint asked for, if it becomes one of ours.
    """

    is_join = True

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    condition: Expression | None
    sweep: bool | None = None
    umjoin: UMJoinHint | None = None
    partitioner: PartitionerHint | None = None

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        if self.condition is None:
            return self
        return replace(self, condition=self.condition.substitute(mapping))

    def __post_init__(self) -> None:
        if self.kind == "cross" and self.condition is not None:
            raise InternalError("a cross join has no condition")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.left.output if self.kind in ("semi", "anti") else self.left.output + self.right.output

    @cached_property
    def column_set(self) -> frozenset[Column]:
        return self.left.column_set if self.kind in ("semi", "anti") else self.left.column_set | self.right.column_set

    def label(self) -> str:
        hint = {None: "", True: " [SWEEP]", False: " [NO_SWEEP]"}[self.sweep]
        hint += "" if self.umjoin is None else f" [{self.umjoin}]"
        return f"Join: {self.kind}" + (f" ON {self.condition}" if self.condition is not None else "") + hint

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms that read a column, to the input that they read or into the condition:

        | join        | left only | right only | both sides | why                                             |
        |-------------|-----------|------------|------------|-------------------------------------------------|
        | inner cross | to left   | to right   | into ON    | a pair passes the filter or it does not         |
        | left        | to left   | stays      | stays      | the right side's NULL rows are made by the join |
        | right       | stays     | to right   | stays      | mirrored                                        |
        | full        | stays     | stays      | stays      | both sides have made-up NULL rows               |
        | semi anti   | to left   | -          | -          | the output is a subset of the left rows         |

        Counter-example for left: ``t LEFT JOIN u ON t.a = u.x WHERE u.y IS NULL`` finds the rows of t without a
        match; with ``u.y IS NULL`` moved to u, every row of t is without one.
        """
        left, right = DROPS[self.kind]
        read = [term for term in terms if term.references]
        to_left = [term for term in read if left.above and reads_only(term, self.left.column_set)]
        to_right = [term for term in read if right.above and reads_only(term, self.right.column_set)]
        one_sided = [*to_left, *to_right]
        into_on = [term for term in read if all((*left, *right)) and not holds(one_sided, term)]
        if not (one_sided or into_on):
            return None
        condition = conjunction([*conjuncts(self.condition), *into_on])
        kind = "inner" if self.kind == "cross" and condition is not None else self.kind
        sides = filtered(to_left, self.left), filtered(to_right, self.right)
        new = replace(self, left=sides[0], right=sides[1], kind=kind, condition=condition)
        return new, [*one_sided, *into_on]


def holds(terms: Iterable[Expression], term: Expression) -> bool:
    """Whether a term itself is among the terms; one that is written twice occurs as two."""
    return any(term is other for other in terms)
