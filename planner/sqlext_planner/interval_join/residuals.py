"""Where the residual of an interval join is tested: by the operator, or by Spark on the operator's candidate pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.expressions import nodes as operators

from sqlext_planner.expressions.arithmetic import arithmetic_type
from sqlext_planner.expressions.nodes import Column, Expression, conjunction, conjuncts
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.interval_join.nodes import IntervalJoin

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class SplitResidual:
    """The terms that the operator tests, as one expression, and those that Spark tests after it."""

    operator: operators.TaskExpression | None = None
    spark: Expression | None = None


def split_residual(
    residual: Expression | None,
    types: Mapping[Column, str | None],
    ansi: bool,
    computed: Callable[[Expression], tuple[str, str] | None],
) -> SplitResidual:
    """Who tests what; arguments as of `OperatorExpressions`.

    A term that may raise an error is not tested before one that stands in front of it: that may keep it from being
    computed.
    """
    translator = OperatorExpressions(types, ansi, computed)
    ours: list[operators.TaskExpression] = []
    theirs: list[Expression] = []
    for term in conjuncts(residual):
        found = translator.condition(term)
        if found is None or (theirs and found.may_fail):
            theirs.append(term)
        else:
            ours.append(found)
    joined = None if not ours else ours[0] if len(ours) == 1 else operators.TaskAnd(tuple(ours))
    return SplitResidual(joined, conjunction(theirs))


def residual_line(node: IntervalJoin) -> str | None:
    """Where the residual is tested, for EXPLAIN, as far as planning knows the types; None without one."""
    if node.residual is None:
        return None
    types = {**node.left.dtypes, **node.right.dtypes}
    if any(types.get(column) is None for column in node.residual.references):
        return f"{node.residual}: on each candidate pair, by the operator or by Spark, as its columns' types allow"

    def computed(expression: Expression) -> tuple[str, str] | None:
        dtype = expression.result_type(types) or arithmetic_type(expression, types)
        return (str(expression), dtype or "string")

    # division and % may raise errors in ANSI mode, and are Spark's there
    split = split_residual(node.residual, types, True, computed)
    if split.spark is None:
        return f"{node.residual}: by the operator, on each candidate pair"
    if split.operator is None:
        return f"{node.residual}: by Spark, on each candidate pair"
    return f"{node.residual}: on each candidate pair, {split.spark} by Spark, the rest by the operator"
