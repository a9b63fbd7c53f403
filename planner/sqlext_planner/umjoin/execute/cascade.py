"""A multi-way join as Catalyst's binary joins, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, conjunction, conjuncts, is_movable
from sqlext_planner.relational.joins import Join, JoinKind
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Project
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.spark_exec import SparkExec, by_spark, filtered_by_spark
from sqlext_planner.umjoin.nodes import MemberKind, UMJoinGroup


@dataclass(frozen=True)
class _GroupExec(PhysicalPlan):
    """`child` computes the whole of a multi-way join, or of an aggregate over one."""

    strategy: ClassVar[str]
    way: ClassVar[str] = ""
    stands_for_child = True

    group: UMJoinGroup
    child: PhysicalPlan

    def label(self) -> str:
        return f"{type(self).__name__}: {self.group}"

    def details(self) -> dict[str, Any]:
        return {
            "runs": f"UMJoin ({self.way or self.strategy})",
            "strategy": self.strategy,
            **self.group.notes,
            **super().details(),
        }


class UMJoinCascadeExec(_GroupExec):
    """A multi-way join as the binary joins below it, which Catalyst orders and AQE adapts."""

    strategy, way = "cascade", "cascade: Spark's joins"


class FactorisedAggregateExec(_GroupExec):
    """An aggregate over a multi-way join, computed from aggregates of its inputs."""

    strategy = "factorised aggregate"
    is_extension = True


class JoinMembers(Protocol):
    """What the logical and the physical multi-way join both say about their inputs (umjoin/nodes.py)."""

    @property
    def kinds(self) -> tuple[MemberKind, ...]: ...

    @property
    def condition(self) -> Expression | None: ...

    @property
    def matches(self) -> tuple[Expression | None, ...]: ...

    @property
    def count(self) -> Column | None: ...

    @property
    def output(self) -> tuple[Field, ...]: ...


def cascade(node: JoinMembers, inputs: Sequence[PhysicalPlan]) -> PhysicalPlan:
    """The rows of a multi-way join over `inputs` by binary joins.

    Inner inputs come first, in their order, but after the first one always the next that a term connects to those
    before it, as in Catalyst's ReorderJoin; if there is none, simply the next (a cross join). A term is part of the
    first join that has all its columns; a term over a single inner input filters that input. Then the other inputs
    follow, each as soon as the columns of its match are available. Terms that are left (over columns of left inputs,
    constant, or tied to their place, such as rand()) filter the result. With `count`, every row counts as one.
    """
    members = list(zip(inputs, node.kinds, node.matches, strict=True))
    terms = _Terms(conjuncts(node.condition))
    inner = terms.joined([child for child, kind, _ in members if kind == "inner"])
    plan = with_members(inner, [(child, kind, match) for child, kind, match in members if kind != "inner"])
    return with_columns(terms.filtering(plan), node)


def with_members(
    plan: PhysicalPlan, members: Sequence[tuple[PhysicalPlan, MemberKind, Expression | None]]
) -> PhysicalPlan:
    """The joins of a plan with left, semi and anti inputs, each as soon as the columns of its match are available.

    Raises InternalError if one reads columns that never become available.
    """
    waiting = list(members)
    while waiting:
        ready = (i for i, (child, _, match) in enumerate(waiting) if _reads_only(match, _columns(plan, child)))
        place = next(ready, None)
        if place is None:
            raise InternalError("the match of a UMJoin's input reads columns that are not joined")
        child, kind, match = waiting.pop(place)
        plan = _joined(plan, child, kind, match)
    return plan


def with_columns(plan: PhysicalPlan, node: JoinMembers) -> PhysicalPlan:
    """The plan with the columns of a multi-way join, in its order; rows that have no count yet count as one."""
    if plan.output_columns == tuple(item.column for item in node.output):
        return plan
    known = frozenset(plan.output_columns)
    one = Literal("1L", dtype="bigint")
    items = [
        NamedExpr(one if item.column == node.count and node.count not in known else item.column, item.column)
        for item in node.output
    ]
    return by_spark(lambda rows: Project(tuple(items), rows), plan)


class _Terms:
    """The terms of a condition, and which of them no join holds yet."""

    def __init__(self, terms: Sequence[Expression]) -> None:
        self._waiting = [term for term in terms if is_movable(term) and term.references]
        self._last = [term for term in terms if not (is_movable(term) and term.references)]

    def joined(self, inputs: list[PhysicalPlan]) -> PhysicalPlan:
        """The join of the inner inputs (one or more)."""
        rest = [self._filtered(child) for child in inputs]
        plan = rest.pop(0)
        while rest:
            place = next((i for i, child in enumerate(rest) if self._connects(plan, child)), 0)
            child = rest.pop(place)
            condition = conjunction(self._take(_columns(plan, child)))
            plan = _joined(plan, child, "cross" if condition is None else "inner", condition)
        return plan

    def filtering(self, plan: PhysicalPlan) -> PhysicalPlan:
        """The plan, filtered by the terms that are left."""
        return filtered_by_spark(conjunction([*self._waiting, *self._last]), plan)

    def _filtered(self, child: PhysicalPlan) -> PhysicalPlan:
        return filtered_by_spark(conjunction(self._take(_columns(child))), child)

    def _connects(self, plan: PhysicalPlan, child: PhysicalPlan) -> bool:
        columns = _columns(plan, child)
        return any(_reads_only(term, columns) for term in self._waiting)

    def _take(self, columns: frozenset[Column]) -> list[Expression]:
        """Removes and returns the waiting terms that read only these columns."""
        taken = [term for term in self._waiting if _reads_only(term, columns)]
        self._waiting = [term for term in self._waiting if not _reads_only(term, columns)]
        return taken


def _joined(left: PhysicalPlan, right: PhysicalPlan, kind: JoinKind, condition: Expression | None) -> SparkExec:
    return by_spark(lambda one, other: Join(one, other, kind, condition), left, right)


def _columns(*plans: PhysicalPlan) -> frozenset[Column]:
    return frozenset(column for plan in plans for column in plan.output_columns)


def _reads_only(term: Expression | None, columns: frozenset[Column]) -> bool:
    return term is None or term.references <= columns
