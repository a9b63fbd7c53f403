"""Logic in conditions: OR, NOT, IS and the calls that wrap a condition become expressions of a known form.

Rules normalise them where only rows count for which the condition is true (`optimizer/rules/push.py`).
Elsewhere, in a select list, they stay the user's own text.

`factored` takes out the terms that all sides of an OR share: ``a = b AND x OR a = b AND y`` is ``a = b AND (x OR y)``.

Catalyst does the same later; rules need it when they look for equalities of a join or of a subquery (TPC-H Q19, TPC-DS
Q13, Q41 and Q48 write join conditions that way). It holds in SQL's three-valued logic too: AND distributes over OR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import And, Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.typed import Call, call, disjunction, is_value, negation
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


#: ``coalesce(condition, false)``, by any of its names.
COALESCE = frozenset(("coalesce", "ifnull", "nvl"))
_NULL_TESTS = {"isnull": False, "isnotnull": True}


def condition(builder: ExpressionBuilder, node: exp.Expr) -> Expression | None:
    """The expression of OR, NOT, IS, ``coalesce(condition, false)``, ``isnull(x)`` or ``isnotnull(x)``; None for any
    other node, and for one that holds a subquery."""
    if not is_logic(node) or (builder.context.openmldb and isinstance(node, exp.Anonymous)):
        return None
    if next(node.find_all(exp.Query), None) is not None:
        return None
    span = span_of(node)
    match node:
        case exp.Or():
            terms = flattened(node, exp.Or)
            return factored(node, builder) or disjunction([builder.build(term) for term in terms], span)
        case exp.Not(this=exp.Is(this=operand, expression=value)):
            return is_value(builder.build(operand), _name(value), negated=True, span=span)
        case exp.Not(this=operand):
            inner = builder.build(operand)
            plain = isinstance(operand, exp.Between) and not isinstance(inner, And)  # the text may be x NOT BETWEEN ...
            return None if plain else negation(inner, span)
        case exp.Is(this=operand, expression=value):
            return is_value(builder.build(operand), _name(value), span=span)
    if node.name.lower() in _NULL_TESTS:
        negated = _NULL_TESTS[node.name.lower()]
        return is_value(builder.build(node.expressions[0]), "null", negated=negated, span=span)
    return _coalesce(builder, node)


def is_logic(node: exp.Expr) -> bool:
    """Whether the node's form is one of those of `condition`."""
    match node:
        case exp.Or():
            return True
        case exp.Not(this=exp.Is() as inner):
            return is_logic(inner)
        case exp.Not(this=exp.Between() as inner):
            return not inner.args.get("symmetric")
        case exp.Not():  # x NOT IN (...) and the like are one piece of text
            return span_of(node).start < span_of(node.this).start
        case exp.Is(expression=exp.Null() | exp.Boolean()):
            return True
        case exp.Anonymous(expressions=[_]) if node.name.lower() in _NULL_TESTS:
            return True
        case exp.Anonymous(expressions=[_, *_, exp.Boolean()]):
            return node.name.lower() in COALESCE
    return False


def _name(value: exp.Expr) -> str:
    return "null" if isinstance(value, exp.Null) else "true" if value.this else "false"


def _coalesce(builder: ExpressionBuilder, node: exp.Expr) -> Call:
    name = node.name.lower()
    return call(name, *map(builder.build, node.expressions), dtype="boolean", span=span_of(node))
