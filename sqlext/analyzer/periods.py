"""Period predicates, infix or as functions: both become the same `PeriodPredicate`; and functions of periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.expressions.typed import negation
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunction
from sqlext_planner.periods.predicates import AllenRelation, Amount, Period, PeriodPredicate, allen_names
from sqlext_planner.periods.relation_sets import ALLEN
from sqlext_planner.periods.types import check_period_types
from sqlglot import exp

from sqlext.analyzer.amounts import amount
from sqlext.analyzer.context import did_you_mean, suggest
from sqlext.analyzer.period_operands import Operand, operand
from sqlext.syntax.calls import WRITTEN, allen_relation_names, compares_allen_relation, is_period_call, nearest_function
from sqlext.syntax.nodes import ALLEN_RELATION, PeriodComparison, PeriodOperand
from sqlext.syntax.spans import mistake, span_of

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import ExpressionBuilder


def predicate(builder: ExpressionBuilder, node: exp.Expr) -> Expression | None:
    """The expression of a period predicate or of `allen_relation`; None for any other node. Raises AnalysisError."""
    if isinstance(node, PeriodComparison):
        found = _infix(builder, node)
        return negation(found, span_of(node)) if node.args.get("negated") else found
    if is_period_call(node):
        return _call(builder, node)
    if compares_allen_relation(node):
        return _set(builder, node)
    if isinstance(node, PeriodOperand):
        raise _alone(node)
    return None


def _alone(node: exp.Expr) -> AnalysisError:
    """The error for a written period that no relation compares."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, (exp.EQ, exp.NullSafeEQ)):
        help = "write EQUALS between two periods: PERIOD(a, b) EQUALS PERIOD(c, d)"
    elif isinstance(parent, exp.NEQ):
        help = "write NOT EQUALS between two periods: PERIOD(a, b) NOT EQUALS PERIOD(c, d)"
    elif isinstance(parent, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
        help = "write PRECEDES or SUCCEEDS between two periods"
    else:
        help = "compare it: PERIOD(a, b) OVERLAPS PERIOD(c, d); a value of two fields is struct(a, b)"
    return mistake("period-ends", node, "a period cannot stand alone", help)


def _infix(builder: ExpressionBuilder, node: PeriodComparison) -> PeriodPredicate:
    relation = RELATIONS[node.args["relation"]]
    left, right = operand(builder, node.this), operand(builder, node.args["expression"])
    for item, place in ((left, node.this), (right, node.args["expression"])):
        if item.end is None and not (relation.point and item is right):
            raise _no_period(builder, item, place, relation)
    bounds = {
        name: amount(builder.context, node.args[name], name)
        for name in relation.parameters
        if node.args.get(name) is not None
    }
    return _predicate(builder, (relation.name,), left, right, bounds, span_of(node))


def _no_period(builder: ExpressionBuilder, item: Operand, node: exp.Expr, relation: PeriodRelation) -> AnalysisError:
    text = " ".join(builder.context.slice(span_of(node)).split())
    dtype = item.start.type.dtype
    what = f"{text!r} is of type {dtype}, which is not a period" if dtype else f"the type of {text!r} is unknown here"
    help = "write PERIOD(start, end), or use a column that is a struct of the two"
    help += "" if dtype else "; or say its type: CAST(... AS STRUCT<a: DATE, b: DATE>)"
    if relation.name in ("iseql_during", "allen_during"):
        help += "; to test whether a period contains a point, write PERIOD(a, b) CONTAINS t"
    return mistake("period-ends", node, what, help)


def _call(builder: ExpressionBuilder, node: exp.Expr) -> Expression:
    name = node.name.lower()
    if name == ALLEN_RELATION:
        return _allen_relation(builder, node)
    if name in PERIOD_FUNCTIONS:
        return _function(builder, node)
    if name == WRITTEN:
        raise _alone(node)
    relation = RELATIONS.get(name)
    if relation is None:
        near = nearest_function(name) or suggest(name, RELATIONS)
        known = ", ".join(row for row in RELATIONS if row.split("_")[0] == name.split("_")[0])
        raise mistake(
            "unknown-function",
            node,
            f"unknown relation of periods: {node.name}",
            f"did you mean {near}?" if near else f"relations: {known}",
        )
    ends = [item for item in node.expressions if not isinstance(item, exp.Kwarg)]
    named = [item for item in node.expressions if isinstance(item, exp.Kwarg)]
    left, right = _sides(builder, ends, node, relation)
    return _predicate(builder, (name,), left, right, _named_amounts(builder, named, relation), span_of(node))


def _function(builder: ExpressionBuilder, node: exp.Expr) -> PeriodFunction:
    """``period_intersect(p, q)``, ``period_length(p)`` and the like."""
    name, empty = node.name.lower(), builder.context.options.empty
    row = PERIOD_FUNCTIONS[name]
    plain = not any(isinstance(item, (exp.Star, exp.Kwarg)) for item in node.expressions)
    sides = _paired(builder, node.expressions) if plain else []
    if len(sides) != row.periods or any(side.end is None for side in sides):
        ends = "start, end, start2, end2" if row.periods > 1 else "start, end"
        raise mistake(
            "function-arguments",
            node,
            f"{name}() does not take these {len(node.expressions)} arguments",
            f"write {name}({ends}), or a PERIOD or a struct for two ends",
        )
    dtype = check_period_types([end.type for side in sides for end in side.ends], (), empty)
    if dtype is None and not row.condition:
        raise mistake(
            "period-ends",
            node,
            f"{name}() needs the types of the ends, and one of them is unknown here",
            "CAST(... AS its type)",
        )
    left, *others = (_period(side, dtype) for side in sides)
    return PeriodFunction(name, left, others[0] if others else None, empty, dtype=dtype, span=span_of(node))


def _paired(builder: ExpressionBuilder, arguments: Sequence[exp.Expr]) -> list[Operand]:
    """The periods that arguments make, one or two arguments each; an end that finds no other one stays a point."""
    given = [operand(builder, item) for item in arguments]
    sides: list[Operand] = []
    while given:
        first = given.pop(0)
        if first.end is None and given and given[0].end is None:
            first = Operand(first.start, given.pop(0).start)
        sides.append(first)
    return sides


def _named_amounts(
    builder: ExpressionBuilder, named: Sequence[exp.Kwarg], relation: PeriodRelation
) -> dict[str, Amount | None]:
    amounts: dict[str, Amount | None] = {}
    for item in named:
        name = item.this.name.lower()
        if name not in relation.parameters:
            takes = " and ".join(relation.parameters) or "only periods"
            near = f"; did you mean {relation.parameters[0]} => ...?" if relation.parameters else ""
            raise mistake(
                "function-arguments",
                item,
                f"{relation.name}() does not take {item.this.name}",
                f"it takes {takes}{near}",
            )
        if name in amounts:
            raise mistake("function-arguments", item, f"{name} is given twice", "remove one of them")
        amounts[name] = amount(builder.context, item.expression, name)
    return amounts


def _sides(
    builder: ExpressionBuilder, arguments: Sequence[exp.Expr], node: exp.Expr, relation: PeriodRelation | None
) -> tuple[Operand, Operand]:
    """The two operands of a call: separate ends, or one argument for each period."""
    sides = _paired(builder, [item for item in arguments if not isinstance(item, exp.Star)])
    point = relation is not None and relation.point
    fits = len(sides) == 2 and sides[0].end is not None and (sides[1].end is not None or point)
    if not fits or any(isinstance(item, exp.Star) for item in arguments):
        name = node.name.lower()
        bounds = "".join(f"[, {item} => ...]" for item in (relation.parameters if relation is not None else ()))
        more = f", or {name}(start, end, point)" if point else ""
        raise mistake(
            "function-arguments",
            node,
            f"{name}() does not take these {len(arguments)} arguments",
            f"write {name}(start, end, start2, end2{bounds}), or a PERIOD or a struct for two ends{more}",
        )
    return sides[0], sides[1]


def _predicate(
    builder: ExpressionBuilder,
    relations: tuple[str, ...],
    left: Operand,
    right: Operand,
    bounds: dict[str, Amount | None],
    span: Span,
) -> PeriodPredicate:
    point = right.end is None
    empty = builder.context.options.empty
    given = [item for item in bounds.values() if item is not None]
    dtype = check_period_types([end.type for side in (left, right) for end in side.ends], given, empty)
    return PeriodPredicate(
        relations,
        _period(left, dtype),
        _period(right, dtype),
        bounds.get("delta"),
        bounds.get("epsilon"),
        empty,
        point,
        dtype=dtype,
        span=span,
    )


def _period(side: Operand, dtype: str | None) -> Period:
    start = side.start.cast(dtype)
    return Period(start, start if side.end is None else side.end.cast(dtype), span=side.start.type.span)


def _allen_relation(builder: ExpressionBuilder, node: exp.Expr) -> AllenRelation:
    left, right = _sides(builder, node.expressions, node, None)
    empty = builder.context.options.empty
    dtype = check_period_types([end.type for side in (left, right) for end in side.ends], (), empty)
    return AllenRelation(_period(left, dtype), _period(right, dtype), empty, dtype=dtype, span=span_of(node))


def _set(builder: ExpressionBuilder, node: exp.Expr) -> Expression:
    inner = node.this if isinstance(node, exp.Not) else node
    found = allen_relation_names(inner)
    assert found is not None
    call, names = found
    for item in names:
        if item.name not in ALLEN:
            raise mistake(
                "unknown-function",
                item,
                f"unknown relation of periods: '{item.name}'",
                did_you_mean(item.name.replace(" ", "_"), ALLEN, f"relations: {', '.join(ALLEN)}"),
            )
    relation = _allen_relation(builder, call)
    span = span_of(node)
    related = PeriodPredicate(
        allen_names([item.name for item in names]),
        relation.left,
        relation.right,
        empty=relation.empty,
        dtype=relation.dtype,
        span=span,
    )
    return negation(related, span) if inner is not node else related
