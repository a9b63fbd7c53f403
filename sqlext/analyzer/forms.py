"""Which syntax nodes become typed expressions, and what is known of each.

Logic in conditions: OR, NOT, IS and the calls that wrap a condition become expressions of a known form.

Rules normalise them where only rows count for which the condition is true (`optimizer/rules.py`).
Elsewhere, in a select list, they stay the user's own text, of which the words are known (`Operation`).

`factored` takes out the terms that all sides of an OR share: ``a = b AND x OR a = b AND y`` is ``a = b AND (x OR y)``.

Catalyst does the same later; rules need it when they look for equalities of a join or of a subquery (TPC-H Q19, TPC-DS
Q13, Q41 and Q48 write join conditions that way). It holds in SQL's three-valued logic too: AND distributes over OR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.expressions.nodes import And, Expression, SparkExpr, conjunction, conjuncts, is_movable
from sqlext_planner.expressions.typed import (
    MOST_OPTIONS,
    Arithmetic,
    Case,
    Cast,
    FunctionCall,
    In,
    Interval,
    Operation,
    Paren,
    call,
    disjunction,
    is_value,
    negation,
)
from sqlext_planner.periods.predicates import UNITS
from sqlglot import exp

from sqlext.analyzer.items import WRAPPERS
from sqlext.analyzer.types import type_name, written
from sqlext.syntax.spans import span_of

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import ExpressionBuilder


def factored(node: exp.Or, builder: ExpressionBuilder) -> Expression | None:
    """The conjunction of the shared terms and of what is left of the OR; None if nothing is. `node` has no subquery."""
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
    return call(node.name.lower(), *map(builder.build, node.expressions), dtype="boolean", span=span)


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


#: The signs of a chain, by the kinds of node that may be in it.
SUMS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-"}
PRODUCTS: dict[type[exp.Expr], str] = {exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
#: Chains of one word.
_CHAINS: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or", exp.DPipe: "||"}

#: The words between two operands.
_WORDS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.IntDiv: "div",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
}

#: What sqlglot counts as a function and Spark writes as an operator, or what has a form of its own.
_OPERATORS = (exp.Binary, exp.Case, exp.Cast, exp.Connector, exp.SubqueryPredicate)
_MODIFIERS = {exp.WithinGroup: "within group", exp.IgnoreNulls: "ignore nulls", exp.RespectNulls: "respect nulls"}
#: Parts of a call that are no values.
_NO_OPERANDS = (exp.Identifier, exp.Var, exp.DataType, exp.Star, exp.Query, exp.Order, exp.Func)
_MOST_AMOUNT = 10**9


@dataclass(frozen=True)
class Form:
    """The class of a syntax node's expression, and the values of its fields. `operands` is their number, None for a
    call, which may have any number."""

    kind: type[SparkExpr] = SparkExpr
    fields: Mapping[str, Any] = field(default_factory=dict)
    operands: int | None = None


#: A node of which nothing is known.
OPAQUE = Form()


def signs_of(node: exp.Expr) -> Mapping[type[exp.Expr], str] | None:
    """The signs of the chain that a node is the end of; None for a node that is in none."""
    kind = type(node)
    if kind in _CHAINS:
        return {kind: _CHAINS[kind]}
    return SUMS if kind in SUMS else PRODUCTS if kind in PRODUCTS else None


def chain_form(signs: tuple[str, ...]) -> Form:
    """What is known of a chain with these signs."""
    if signs[0] in _CHAINS.values():
        return Form(Operation, {"name": signs[0]}, len(signs) + 1)
    return Form(Arithmetic, {"signs": signs}, len(signs) + 1)


def is_call(node: exp.Expr) -> bool:
    """Whether the node is the call of a function, with FILTER and the like or without."""
    if _is_branch(node):
        return False
    return isinstance(node, WRAPPERS) or (isinstance(node, exp.Func) and not isinstance(node, _OPERATORS))


def form_of(node: exp.Expr, text: Callable[[exp.Expr], str]) -> Form:
    """What is known of a node other than a call and a chain of arithmetic; `text` returns a node's own text."""
    match node:
        case exp.Paren():
            return Form(Paren, {}, 1)
        case exp.Neg():
            return Form(Arithmetic, {"signs": ("-",)}, 1)
        case exp.Cast():
            to = type_name(node.to, written(node.to, text))
            return Form(Cast, {"to": to, "tries": text(node)[:8].lower() == "try_cast"}, 1)
        case exp.Case():
            has_subject, has_default = node.this is not None, node.args.get("default") is not None
            count = has_subject + has_default + 2 * len(node.args["ifs"])
            return Form(Case, {"has_subject": has_subject, "has_default": has_default}, count)
        case exp.In() if node.expressions and len(node.expressions) <= MOST_OPTIONS:
            return Form(In, {"negated": _is_negated(node)}, 1 + len(node.expressions))
        case exp.Interval(this=exp.Literal() as number) if number.name.isdigit() and int(number.name) < _MOST_AMOUNT:
            unit = node.args.get("unit")
            name = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
            if name in UNITS:
                return Form(Interval, {"number": int(number.name), "unit": name}, 0)
    return _operation(node)


def _operation(node: exp.Expr) -> Form:
    match node:
        case exp.Not(this=exp.Is(expression=exp.Null()) as inner) if _is_negated(inner):
            return Form(
                Operation, {"name": "is not null"}, 1
            )  # NULL has no place: the node inside is the operand alone
        case exp.Not(this=inner) if _is_negated(inner):
            return Form(Paren, {}, 1)  # the words are those of the node inside
        case exp.Is(expression=exp.Null()):
            return OPAQUE if _is_negated(node) else Form(Operation, {"name": "is null"}, 1)
        case exp.Not():
            return Form(Operation, {"name": "not"}, 1)
        case exp.Is(expression=exp.Boolean() as value):
            words = "is not" if _is_negated(node) else "is"
            return Form(Operation, {"name": f"{words} {_name(value)}"}, 1)
    before = "not " if _is_negated(node) or node.args.get("negate") else ""
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        return Form(Operation, {"name": f"{before}between"}, 3)
    words = _WORDS.get(type(node), "")
    plain = bool(words) and not isinstance(node.expression, (exp.Any, exp.All, exp.Tuple, exp.Query))
    return Form(Operation, {"name": f"{before}{words}"}, 2) if plain else OPAQUE


def _is_negated(node: exp.Expr) -> bool:
    """Whether the text is ``x NOT IN (1)`` or the like: sqlglot puts the NOT around it."""
    return isinstance(node.parent, exp.Not) and span_of(node.parent).start == span_of(node).start


def call_form(node: exp.Expr) -> Form:
    """What is known of a call."""
    fields: dict[str, Any] = {"filtered": isinstance(node, exp.Filter)}
    while isinstance(node, WRAPPERS):
        fields["modifier"] = _MODIFIERS.get(type(node), fields.get("modifier", ""))
        node = node.this
    if not isinstance(node, exp.Anonymous):
        return Form(FunctionCall, fields | {"name": node.key})
    is_path = isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
    fields["distinct"] = any(isinstance(item, exp.Distinct) for item in node.expressions)
    return Form(FunctionCall, fields | {"name": "" if is_path else node.name.lower()})


def _is_branch(node: exp.Expr) -> bool:
    """Whether a node is a WHEN of CASE; the function `if` is the same kind of node."""
    return isinstance(node, exp.If) and isinstance(node.parent, exp.Case) and node.arg_key == "ifs"


def is_operand(node: exp.Expr) -> bool:
    """Whether a part of a typed node is a value, and so an expression of its own."""
    if isinstance(node, exp.Column):
        return not node.is_star
    if isinstance(node.parent, exp.Is) and node.arg_key == "expression":
        return False
    return not isinstance(node, _NO_OPERANDS) or (isinstance(node, exp.Func) and not isinstance(node, exp.Query))


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """What stands in place of a part of a typed node: the branches of CASE, what DISTINCT and WHERE are before."""
    if _is_branch(node):
        return [node.this, node.args["true"]]
    if isinstance(node, exp.Distinct):
        return list(node.expressions)
    if isinstance(node, exp.Where):
        return [node.this]
    return [node]
