"""Period predicates in conditions as sets of relations, where only true counts.

For two periods, predicates without distances are sets of Allen's relations and of "no relation", which is what an empty
or reversed period has (docs/reference/periods.md, section 6). All predicates over the same ends are NULL for the same
rows, so NOT is the complement, OR the union and AND the intersection, in three-valued logic too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from operator import eq, ge, gt, le, lt

from sqlext_operators.interval_join.conditions import Condition, Operator
from sqlext_operators.interval_join.passes import passes_for
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD

from sqlext_planner.expressions.nodes import Compare, Expression, Literal
from sqlext_planner.expressions.typed import Is
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunction
from sqlext_planner.periods.predicates import NO_RELATION, AllenRelation, PeriodPredicate, allen_names

#: The names that `allen_relation` gives, in the order of the table.
ALLEN = tuple(name.removeprefix("allen_") for name, row in RELATIONS.items() if row.strict)
EVERY = frozenset(ALLEN)

_COMPARED = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}
_OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", ">=", ">")
_PAIRS = (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"))


def allowed(terms: Sequence[Condition]) -> frozenset[str]:
    """The relations for which terms without distances hold."""
    return frozenset(name for name, ends in _cases().items() if all(_holds(term, ends) for term in terms))


def inverse(names: Collection[str]) -> frozenset[str]:
    """The relations with the two periods exchanged."""
    return frozenset((RELATIONS[f"allen_{name}"].inverse or "").removeprefix("allen_") for name in names)


@cache
def formulas(names: frozenset[str]) -> tuple[tuple[Condition, ...], ...]:
    """Formulas of which exactly one holds for each of the relations and none for the others: those with the fewest
    passes, then the fewest terms. () for no relation; for all of them, two that split all pairs."""
    mask = sum(1 << place for place, name in enumerate(ALLEN) if name in names)
    return _cover(mask)[1]


@cache
def _cases() -> dict[str, dict[str, int]]:
    """Ends for which each relation holds."""
    found: dict[str, dict[str, int]] = {}
    for c, d in combinations(range(8), 2):
        ends = {"a": 2, "b": 5, "c": c, "d": d}
        name = next(name for name in ALLEN if all(_holds(term, ends) for term in RELATIONS[f"allen_{name}"].terms))
        found.setdefault(name, ends)
    return found


def _holds(term: Condition, ends: dict[str, int]) -> bool:
    return bool(_COMPARED[term.operator](ends[term.left], ends[term.right]))


@cache
def _convex() -> dict[int, tuple[Condition, ...]]:
    """The sets that are a conjunction of comparisons of ends, with their shortest one. A relation is a bit of a set,
    in the order of ALLEN."""
    cases = [_cases()[name] for name in ALLEN]
    options: list[list[tuple[int, Condition | None]]] = []
    for left, right in _PAIRS:
        terms = [Condition(left, operator, right) for operator in _OPERATORS]
        masks = [sum(1 << place for place, ends in enumerate(cases) if _holds(term, ends)) for term in terms]
        options.append([((1 << len(ALLEN)) - 1, None), *zip(masks, terms, strict=True)])
    found: dict[int, tuple[Condition, ...]] = {}
    for chosen in product(*options):
        mask = chosen[0][0] & chosen[1][0] & chosen[2][0] & chosen[3][0]
        terms_of = tuple(term for _, term in chosen if term is not None)
        if mask and terms_of and (mask not in found or _length(terms_of) < _length(found[mask])):
            found[mask] = terms_of
    return found


def _length(terms: Sequence[Condition]) -> tuple[int, int]:
    return len(terms), sum(term.operator in ("<=", ">=") for term in terms)


@cache
def _passes(mask: int) -> int:
    return len(passes_for(_convex()[mask], LEFT_PERIOD, RIGHT_PERIOD))


@cache
def _cover(mask: int) -> tuple[tuple[int, int], tuple[tuple[Condition, ...], ...]]:
    """((passes, terms), formulas) of the best split of a set."""
    if not mask:
        return (0, 0), ()
    if mask in _convex():  # at most two passes, and what two sets take at least
        return (_passes(mask), len(_convex()[mask])), (_convex()[mask],)
    lowest = mask & -mask
    best: tuple[tuple[int, int], tuple[tuple[Condition, ...], ...]] | None = None
    for own, terms in _convex().items():
        if own & ~mask or not own & lowest:
            continue
        (passes, length), rest = _cover(mask & ~own)
        cost = passes + _passes(own), length + len(terms)
        if best is None or cost < best[0]:
            best = cost, (terms, *rest)
    assert best is not None  # each relation alone is such a set
    return best


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
    found: list[Expression] = []
    places: list[int] = []  # of the predicates; a list may have thousands of other terms
    for term in terms:
        joined = None
        for place in places if isinstance(term, PeriodPredicate) else ():
            joined = _joined(found[place], term, is_or)
            if joined is not None:
                found[place] = joined
                break
        if joined is None:
            places += [len(found)] if isinstance(term, PeriodPredicate) else []
            found.append(term)
    return found if len(found) < len(terms) else terms


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
