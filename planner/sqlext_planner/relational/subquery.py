"""Subqueries in expressions: the plan that rules look into, and the text that Spark gets where a subquery stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from sqlext_planner.errors import Span, UnsupportedError
from sqlext_planner.expressions.nodes import SUBQUERY, Column, Expression, SparkExpr

if TYPE_CHECKING:
    from sqlext_planner.relational.logical_plan import LogicalPlan

SubqueryKind = Literal["exists", "in", "scalar"]


@dataclass(frozen=True)
class SubqueryExpression(Expression):
    """``[NOT] EXISTS (...)``, ``x [NOT] IN (...)``, or ``(...)`` as a value.

    `plan` is the analysed query; columns in it that none of its nodes gives belong to the outer query
    (`LogicalPlan.free_columns`). It is not a child of the node that holds the expression. `operands` are the
    expressions before IN, one for each column of the plan. `text` is the whole expression as Spark SQL; subqueries are
    compared by it. `relation` is a name that no relation of the statement has, for columns of the plan that a join
    needs. `sweep` is what the hints SWEEP and NO_SWEEP say about that join. `refusal` is set if only we can run
    the text: unless a rule turns the subquery into a join, the statement cannot run. `ordered` is where SWEEP stands in
    the subquery itself.
    """

    kind: SubqueryKind
    operands: tuple[Expression, ...]
    negated: bool
    text: SparkExpr
    plan: LogicalPlan = field(compare=False, repr=False)
    relation: str = field(compare=False)
    sweep: bool | None = field(default=None, compare=False)
    refusal: UnsupportedError | None = field(default=None, compare=False, repr=False)
    ordered: Span | None = field(default=None, compare=False, repr=False)

    @property
    def own_traits(self) -> int:
        return SUBQUERY

    @property
    def atomic(self) -> bool:
        return self.kind == "scalar" or (self.kind == "exists" and not self.negated)

    @property
    def dtype(self) -> str | None:
        """The type of the value, where certain."""
        if self.kind != "scalar":
            return "boolean"
        return self.plan.output[0].dtype if self.plan.output else None

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return self.dtype

    @cached_property
    def references(self) -> frozenset[Column]:
        found = super().references
        if self.refusal is None:
            return found
        return found | self.plan.free_columns

    def substitute(self, mapping: Mapping[Column, Expression]) -> Expression:
        plan = self.plan.with_free(mapping)
        new = super().substitute(mapping)
        return new if plan is self.plan or not isinstance(new, SubqueryExpression) else replace(new, plan=plan)

    def sql(self) -> str:
        if self.refusal is not None:
            raise self.refusal
        return self.text.sql()

    def __str__(self) -> str:
        return str(self.text)


def own_subqueries(plan: LogicalPlan) -> Iterator[SubqueryExpression]:
    """Every subquery in the plan's expressions."""
    for node in plan.walk():
        for expression in node.expressions():
            if expression.traits & SUBQUERY:
                yield from (inner for inner in expression.walk() if isinstance(inner, SubqueryExpression))


def subqueries(plan: LogicalPlan) -> Iterator[SubqueryExpression]:
    """Every subquery in the plan's expressions, and in the expressions of the subqueries' own plans."""
    stack = [plan]
    while stack:
        for inner in own_subqueries(stack.pop()):
            yield inner
            stack.append(inner.plan)


def refuse_left_over(plan: LogicalPlan) -> None:
    """Raises UnsupportedError for a subquery that no rule has turned into a join and that Spark cannot run as text."""
    for item in subqueries(plan):
        if item.refusal is not None:
            raise item.refusal
