"""Period predicates in conditions as sets of relations, where only true counts.

For two periods, predicates without distances are sets of Allen's relations and of "no relation", which is what an empty
or reversed period has (docs/reference/periods.md, section 6). All predicates over the same ends are NULL for the same
rows, so NOT is the complement, OR the union and AND the intersection, in three-valued logic too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlext_planner.expressions.nodes import Compare, Expression, Literal
from sqlext_planner.expressions.typed import Is
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunction
from sqlext_planner.periods.predicates import NO_RELATION, AllenRelation, PeriodPredicate, allen_names
from sqlext_planner.periods.relation_sets import EVERY, inverse


def period_form(condition: Expression, truth: bool) -> Expression | None:
    """A predicate that is wanted false as the one that is true there, and ``period_intersect(p, q) IS NOT NULL`` as the
    predicate of the function's condition (`expressions.truth.Form`); ``allen_relation(...) <> 'meets'`` likewise."""
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


def merged_periods(terms: Sequence[Expression], is_or: bool) -> Sequence[Expression]:
    """The terms with one predicate for all those over the same two periods, at the place of the first
    (`expressions.truth.Merge`)."""
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
