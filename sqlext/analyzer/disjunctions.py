"""Factors out the terms that all sides of an OR share: ``a = b AND x OR a = b AND y`` is ``a = b AND (x OR y)``.

Catalyst does the same later; rules need it when they look for equalities of a join or of a subquery (TPC-H Q19, TPC-DS
Q13, Q41 and Q48 write join conditions that way). It holds in SQL's three-valued logic too: AND distributes over OR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.typed import disjunction
from sqlglot import exp

from sqlext.syntax.spans import span_of

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import ExpressionBuilder


def factored(node: exp.Or, builder: ExpressionBuilder) -> Expression | None:
    """The conjunction of the shared terms and of what is left of the OR; None if nothing is shared. `node` holds no
    subquery."""
    sides: list[tuple[Expression, ...]] = []
    shared: list[Expression] = []
    for side in flattened(node, exp.Or):
        sides.append(conjuncts(builder.build(side)))
        shared = [term for term in (shared or sides[0]) if is_movable(term) and term in sides[-1]]
        if not shared:
            return None
    rests = [conjunction([term for term in side if term not in shared]) for side in sides]
    if any(rest is None for rest in rests):  # one side has only the shared terms: the others add nothing
        return conjunction(shared)
    return conjunction([*shared, disjunction([rest for rest in rests if rest is not None], span_of(node))])


def flattened(node: exp.Expr, kind: type[exp.And | exp.Or]) -> list[exp.Expr]:
    """The terms of a chain of AND or OR in the order of the text; long chains are walked without recursion."""
    terms: list[exp.Expr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        inner = top.this if isinstance(top, exp.Paren) and isinstance(top.this, kind) else top
        if isinstance(inner, kind):
            stack += [inner.right, inner.left]
        else:
            terms.append(top)
    return terms
