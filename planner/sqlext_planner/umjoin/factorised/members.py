"""The inputs of a factorised aggregate: filtered, with semi and anti joins done, and how left inputs match."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction, conjuncts, is_movable
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import filtered
from sqlext_planner.umjoin.factorised.classes import Classes, NotFactorisedError


@dataclass(frozen=True)
class LeftMatch:
    """How a left input matches: `pairs` of equal columns (the row's, its own) and `outer`, terms over the row alone."""

    number: int
    pairs: tuple[tuple[Column, Column], ...]
    outer: tuple[Expression, ...]


@dataclass(frozen=True)
class Members:
    """The inner and left inputs by number, and the matches of the left ones in order."""

    plans: dict[int, LogicalPlan]
    lefts: tuple[LeftMatch, ...]


def members(classes: Classes) -> Members:
    """The inputs with all terms of the UMJoin's conditions applied, except the equalities between inputs.

    Raises NotFactorisedError for a term that looks at several inputs, or must be evaluated in its own place.
    """
    join = classes.join
    filters: dict[int, list[Expression]] = {number: [] for number in range(len(join.inputs))}
    for term in conjuncts(join.condition):
        if not classes.is_key(term):
            home, own = _home(classes, term)
            filters[home].append(own)
    for group in classes.members:
        _equal_within(classes, group, filters)
    lefts = []
    partial: list[tuple[int, int, Expression | None]] = []
    for number, (kind, match) in enumerate(zip(join.kinds, join.matches, strict=True)):
        if kind == "left":
            left, own_terms = _left_match(classes, number, match)
            lefts.append(left)
            filters[number] += own_terms
        elif kind in ("semi", "anti"):
            partial.append((*_host(classes, number, match),))
    plans = {
        number: filtered(filters[number], join.inputs[number])
        for number, kind in enumerate(join.kinds)
        if kind in ("inner", "left")
    }
    for host, number, condition in partial:
        kind = "semi" if join.kinds[number] == "semi" else "anti"
        plans[host] = Join(plans[host], join.inputs[number], kind, condition)
    return Members(plans, tuple(lefts))


def _equal_within(classes: Classes, group: tuple[Column, ...], filters: dict[int, list[Expression]]) -> None:
    """Adds filters for columns of one input in one class: they equal each other."""
    first: dict[int, Column] = {}
    for column in group:
        number = classes.owner[column]
        if number in first:
            filters[number].append(Compare("=", first[number], column))
        first.setdefault(number, column)


def _home(classes: Classes, term: Expression) -> tuple[int, Expression]:
    """The inner input that a term of the condition filters, and the term in its columns."""
    if not is_movable(term):
        raise NotFactorisedError(f"the term {term} must be evaluated in its place")
    if any(not classes.is_inner(column) for column in term.references):
        raise NotFactorisedError(
            f"the term {term} reads a left input, so it is checked only after the matches are found"
        )
    homes = classes.homes(term)
    if not homes:
        raise NotFactorisedError(f"the term {term} needs rows of {classes.names(term)} together")
    return homes[0]


def _left_match(classes: Classes, number: int, match: Expression | None) -> tuple[LeftMatch, list[Expression]]:
    """How left input `number` matches, and the terms over it alone."""
    columns = set(classes.join.inputs[number].output_columns)
    pairs: list[tuple[Column, Column]] = []
    outer: list[Expression] = []
    inside: list[Expression] = []
    for term in conjuncts(match):
        if not is_movable(term):
            raise NotFactorisedError(f"the term {term} must be evaluated in its place")
        pair = _pair(term, columns)
        if pair is not None:
            pairs.append(pair)
        elif term.references and term.references <= columns:
            inside.append(term)
        elif not term.references & columns:
            outer.append(term)
        else:
            raise NotFactorisedError(f"the term {term} needs rows of {classes.names(term)} together")
    return LeftMatch(number, tuple(pairs), tuple(outer)), inside


def _pair(term: Expression, own: set[Column]) -> tuple[Column, Column] | None:
    match term:
        case Compare("=", Column() as left, Column() as right) if (left in own) != (right in own):
            return (right, left) if left in own else (left, right)
    return None


def _host(classes: Classes, number: int, match: Expression | None) -> tuple[int, int, Expression | None]:
    """The inner input whose rows semi or anti input `number` filters, the number, and the match in its columns."""
    own = set(classes.join.inputs[number].output_columns)
    name = relation_name(classes.join.inputs[number])
    if match is not None and not is_movable(match):
        raise NotFactorisedError(f"the match of {name} must be evaluated in its place")
    outer = frozenset[Column]() if match is None else match.references - own
    if any(not classes.is_inner(column) for column in outer):
        raise NotFactorisedError(f"{name} is looked up with columns of a left input")
    for home in sorted(classes.inner, key=lambda home: sum(classes.owner[column] != home for column in outer)):
        found = {column: classes.same(column, home) for column in outer}
        known = {column: partner for column, partner in found.items() if partner is not None}
        if len(known) == len(found):
            terms = [term.substitute(known) for term in conjuncts(match)]
            return home, number, conjunction(terms)
    raise NotFactorisedError(f"{name} is looked up with columns of several inputs")
