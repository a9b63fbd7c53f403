"""Conditions where only rows count for which they are true (WHERE, HAVING, ON): NOT is pushed to the comparisons, and
what only tells false from NULL goes.

SQL's logic has three values, so each rewrite says for which rows an expression is true or false; for all others it is
NULL. ``NOT x`` is true where x is false, and false where x is true. An AND is true where all its terms are, and false
where one of them is; an OR the other way round. A comparison is NULL where an operand is, so ``NOT (x < y)`` is true
exactly where ``x >= y`` is: Spark's order is total, NaN included. ``x IS TRUE`` is true where x is, but false also
where x is NULL, so it stays under NOT, and so does ``coalesce(x, false)``.

For two periods, predicates without distances are sets of Allen's relations and of "no relation", which is what an empty
or reversed period has (docs/reference/periods.md, section 6). All predicates over the same ends are NULL for the same
rows, so NOT is the complement, OR the union and AND the intersection, in three-valued logic too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sqlext_planner.expressions.nodes import (
    And,
    Column,
    Compare,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    is_movable,
)
from sqlext_planner.expressions.typed import FunctionCall, Is, Not, Or, Paren, disjunction, is_value, negation
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunction
from sqlext_planner.periods.predicates import NO_RELATION, AllenRelation, PeriodPredicate, allen_names
from sqlext_planner.periods.relation_sets import EVERY, inverse

#: The literal for which ``condition = literal`` and the like are true where the condition is.
_SAME = {"=": True, "<=>": True, "<>": False}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_COALESCE = frozenset(("coalesce", "ifnull", "nvl"))


@dataclass(frozen=True)
class Truth:
    """Simplifies conditions over columns of `known` types."""

    known: Mapping[Column, str | None]

    def simplified(self, condition: Expression, truth: bool = True) -> Expression:
        """An expression that is true for the rows for which the condition is true, or false where `truth` is not
        wanted; the condition itself if there is nothing to simplify."""
        found = _period_form(condition, truth)
        if found is not None:
            return found
        match condition:
            case And() | Or():
                return self._connected(condition, truth)
            case Not(operands=(inner,)):
                return self.simplified(inner, not truth)
            case Paren(operands=(inner,)) if _is_condition(inner):
                return self.simplified(inner, truth)
            case Is(operands=(inner,), value="null", negated=negated) if not truth:
                return self.simplified(is_value(inner, "null", negated=not negated, span=condition.span), True)
            case Is(operands=(inner,), value="true" | "false", negated=negated) if negated != truth:
                return self.simplified(inner, condition.value == "true")
            case FunctionCall() if condition.name in _COALESCE and _ends_with(condition, not truth):
                return self.simplified(condition.arguments[0], truth)
            case Compare():
                return self._compared(condition, truth)
        return condition if truth else negation(condition, condition.span)

    def _connected(self, condition: And | Or, truth: bool) -> Expression:
        """AND and OR; where they are wanted false, each is the other."""
        terms = condition.terms if isinstance(condition, And) else condition.operands
        is_or = isinstance(condition, Or) == truth
        found = [inner for term in terms for inner in _terms(self.simplified(term, truth), is_or)]
        merged = _merged_periods(found, is_or)
        if truth and len(merged) == len(terms) and all(new is old for new, old in zip(merged, terms, strict=True)):
            return condition
        joined = disjunction(merged, condition.span) if is_or else conjunction(list(merged))
        assert joined is not None
        return joined

    def _compared(self, condition: Compare, truth: bool) -> Expression:
        """A comparison: of a condition with TRUE or FALSE, of extremes, or any other that is wanted false."""
        for inner, value in ((condition.left, condition.right), (condition.right, condition.left)):
            literal = _literal(value)
            if literal is None or condition.op not in _SAME or not _is_condition(inner):
                continue
            if truth or condition.op != "<=>":  # which is false also where the condition is NULL
                return self.simplified(inner, (literal == _SAME[condition.op]) == truth)
        if truth:
            return self._extremes(condition) or condition
        if condition.op not in _OPPOSITE:
            return negation(condition, condition.span)
        opposite = Compare(_OPPOSITE[condition.op], condition.left, condition.right, span=condition.span)
        return self._extremes(opposite) or opposite

    def _extremes(self, condition: Compare) -> Expression | None:
        """``greatest(x, y) < least(z, w)`` as comparisons of each value with each; None for another comparison.

        Both functions skip NULLs and are NULL only if all their arguments are. So a pair with a NULL says nothing:
        ``(x < z OR x IS NULL OR z IS NULL) AND ... AND (x IS NOT NULL OR y IS NOT NULL) AND (z IS NOT NULL OR ...)``.
        Values of several types would be compared in another type alone than together.
        """
        if condition.op not in ("<", "<=", ">", ">=") or not is_movable(condition):
            return None
        highest, lowest = ("greatest", "least") if condition.op in ("<", "<=") else ("least", "greatest")
        lefts, rights = _arguments(condition.left, highest), _arguments(condition.right, lowest)
        ours, theirs = lefts or (condition.left,), rights or (condition.right,)
        types = {value.result_type(self.known) for value in (*ours, *theirs)}
        if not (lefts or rights) or len(types) > 1 or types & {None, "void"}:
            return None
        terms: list[Expression] = []
        for left, right in product(ours, theirs):
            nulls = [is_value(item, "null") for item, given in ((left, lefts), (right, rights)) if given]
            terms.append(disjunction([Compare(condition.op, left, right, span=condition.span), *nulls], condition.span))
        for given in (lefts, rights):
            if given:
                terms.append(disjunction([is_value(item, "null", negated=True) for item in given], condition.span))
        return conjunction(terms)


def _terms(expression: Expression, is_or: bool) -> tuple[Expression, ...]:
    """The terms of an OR (or of an AND), the expression alone if it is none."""
    if is_or:
        return expression.operands if isinstance(expression, Or) else (expression,)
    return conjuncts(expression)


def _ends_with(call: FunctionCall, value: bool) -> bool:
    """Whether the call is ``coalesce(x, value)``: where the opposite is wanted, the value counts like NULL."""
    return len(call.arguments) == 2 and _literal(call.arguments[1]) is value


def _arguments(expression: Expression, name: str) -> tuple[Expression, ...] | None:
    """The arguments of a call of that name, each once; None for anything else."""
    if isinstance(expression, FunctionCall) and expression.name == name and len(expression.arguments) > 1:
        return tuple(dict.fromkeys(expression.arguments))
    return None


def _is_condition(expression: Expression) -> bool:
    """Whether an expression is known to be a condition, whatever its columns are."""
    if isinstance(expression, Paren):
        return _is_condition(expression.operands[0])
    return isinstance(expression, (And, Compare)) or expression.result_type({}) == "boolean"


def _literal(expression: Expression) -> bool | None:
    text = expression.text.lower() if isinstance(expression, Literal) else ""
    return {"true": True, "false": False}.get(text)


def _period_form(condition: Expression, truth: bool) -> Expression | None:
    """A predicate that is wanted false as the one that is true there, and ``period_intersect(p, q) IS NOT NULL`` as the
    predicate of the function's condition; ``allen_relation(...) <> 'meets'`` likewise; None for anything else."""
    match condition:
        case PeriodPredicate():
            return condition if truth else _complement(condition)
        case Compare("=" | "<>" as op, AllenRelation() as call, Literal(text)):
            named = _named(call, text.strip("'"))
            return named if named is None or (op == "=") == truth else _complement(named)
        case Is(operands=(PeriodFunction(right=right) as function,), value="null", negated=negated) if (
            right is not None
        ):
            if negated != truth:
                return None
            names = allen_names(sorted(PERIOD_FUNCTIONS[function.name].relations))
            return PeriodPredicate(
                names, function.left, right, empty=function.empty, dtype=function.dtype, span=condition.span
            )
    return None


def _merged_periods(terms: Sequence[Expression], is_or: bool) -> Sequence[Expression]:
    """The terms of an OR, or of an AND, with one predicate for all those over the same two periods, at the place of the
    first; the terms themselves if there is nothing to merge."""
    merged: list[Expression] = []
    places: list[int] = []  # of the predicates; a list may have thousands of other terms
    for term in terms:
        joined = None
        for place in places if isinstance(term, PeriodPredicate) else ():
            joined = _joined(merged[place], term, is_or)
            if joined is not None:
                merged[place] = joined
                break
        if joined is None:
            places += [len(merged)] if isinstance(term, PeriodPredicate) else []
            merged.append(term)
    return merged if len(merged) < len(terms) else terms


def _named(call: AllenRelation, name: str) -> PeriodPredicate | None:
    """``allen_relation(...) = 'meets'``; None for a text that is no relation."""
    if name not in (*EVERY, NO_RELATION):
        return None
    relations, or_empty = allen_names([name]), name == NO_RELATION
    found = PeriodPredicate(relations, call.left, call.right, empty=call.empty, dtype=call.dtype, span=call.span)
    return _of_set(found, frozenset(() if or_empty else (name,)), or_empty)


def _complement(predicate: PeriodPredicate) -> PeriodPredicate | None:
    """The predicate that is true where the given one is false; None if it cannot be one."""
    if predicate.allen is None:
        return None
    return _of_set(predicate, EVERY - predicate.allen, not predicate.or_empty)


def _joined(one: Expression, other: Expression, is_or: bool) -> PeriodPredicate | None:
    """Two predicates over the same periods, in either order, as one; None for any other two."""
    if not (isinstance(one, PeriodPredicate) and isinstance(other, PeriodPredicate)):
        return None
    ours, theirs = one.allen, other.allen
    if ours is None or theirs is None or one.empty != other.empty or one.dtype != other.dtype:
        return None
    if (one.left, one.right) == (other.right, other.left):
        theirs = inverse(theirs)
    elif (one.left, one.right) != (other.left, other.right):
        return None
    if is_or:
        return _of_set(one, ours | theirs, one.or_empty or other.or_empty)
    return _of_set(one, ours & theirs, one.or_empty and other.or_empty)


def _of_set(predicate: PeriodPredicate, names: frozenset[str], or_empty: bool) -> PeriodPredicate | None:
    """The predicate of a set over the periods of another one; None for a set that nothing is in.

    Where an empty period stops the job, no row has one.
    """
    or_empty = or_empty and predicate.empty != "error"
    if not names and not or_empty:
        return None
    return replace(predicate, relations=allen_names(sorted(names)), or_empty=or_empty)
