"""Conditions where only rows count for which they are true (WHERE, HAVING, ON): NOT is pushed to the comparisons, and
what only tells false from NULL goes.

SQL's logic has three values, so each rewrite says for which rows an expression is true (`when_true`) or false
(`when_false`); for all others it is NULL. ``NOT x`` is true where x is false, and false where x is true. An AND is true
where all its terms are, and false where one of them is; an OR the other way round. A comparison is NULL where an
operand is, so ``NOT (x < y)`` is true exactly where ``x >= y`` is: Spark's order is total, NaN included.
``x IS TRUE`` is true where x is, but false also where x is NULL, so it stays under NOT, and so does
``coalesce(x, false)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.typed import FunctionCall, Is, Not, Or, Paren, disjunction, is_value, negation

#: The literal for which ``condition = literal`` and the like are true where the condition is.
_SAME = {"=": True, "<=>": True, "<>": False}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_COALESCE = frozenset(("coalesce", "ifnull", "nvl"))

#: A form of conditions of its own: given the expression and whether it is wanted true, what is true there; None for any
#: other expression.
Form = Callable[[Expression, bool], Expression | None]
#: Makes fewer terms of those of an OR (True) or of an AND; returns them as they are if there is nothing to do.
Merge = Callable[[Sequence[Expression], bool], Sequence[Expression]]


@dataclass(frozen=True)
class Truth:
    """Simplifies conditions over columns of `known` types, with what is special to some of them."""

    known: Mapping[Column, str | None]
    form: Form = lambda condition, truth: None
    merge: Merge = lambda terms, is_or: terms

    def when_true(self, condition: Expression) -> Expression:
        """An expression that is true for the same rows; the condition itself if there is nothing to simplify."""
        return self._with_truth(condition, True)

    def when_false(self, condition: Expression) -> Expression:
        """An expression that is true for the rows for which the condition is false."""
        return self._with_truth(condition, False)

    def _with_truth(self, condition: Expression, truth: bool) -> Expression:
        found = self.form(condition, truth)
        if found is not None:
            return found
        match condition:
            case And() | Or():
                return self._connected(condition, truth)
            case Not(operands=(inner,)):
                return self._with_truth(inner, not truth)
            case Paren(operands=(inner,)) if _is_condition(inner):
                return self._with_truth(inner, truth)
            case Is(operands=(inner,), value="null", negated=negated) if not truth:
                return self._with_truth(is_value(inner, "null", negated=not negated, span=condition.span), True)
            case Is(operands=(inner,), value="true" | "false", negated=negated) if negated != truth:
                return self._with_truth(inner, condition.value == "true")
            case FunctionCall() if condition.name in _COALESCE and _ends_with(condition, not truth):
                return self._with_truth(condition.arguments[0], truth)
            case Compare():
                return self._compared(condition, truth)
        return condition if truth else negation(condition, condition.span)

    def _connected(self, condition: And | Or, truth: bool) -> Expression:
        """AND and OR; where they are wanted false, each is the other."""
        terms = condition.terms if isinstance(condition, And) else condition.operands
        is_or = isinstance(condition, Or) == truth
        found = [inner for term in terms for inner in _terms(self._with_truth(term, truth), is_or)]
        merged = self.merge(found, is_or)
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
                return self._with_truth(inner, (literal == _SAME[condition.op]) == truth)
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
