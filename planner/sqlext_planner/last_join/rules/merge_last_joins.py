"""A chain of LAST JOINs on the same left keys is one node with several right sides."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import NamedExpr
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project


@rule(order="bottom_up", on=(LastJoin,))
def merge_last_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(LastJoin(a, b), c)`` -> ``LastJoin(a, b, c)`` where both join on the same columns of a.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k LAST JOIN c ORDER BY c.ts ON a.k = c.k``::

        LastJoin: ORDER BY c.ts ON a.k = c.k             LastJoin: ORDER BY b.ts ON a.k = b.k,
          LastJoin: ORDER BY b.ts ON a.k = b.k     ->              ORDER BY c.ts ON a.k = c.k
            Scan: a                                        Scan: a
            Scan: b                                        Scan: b
          Scan: c                                          Scan: c

    One exchange of a instead of two. Legal if the left keys are the same expressions, in any order, if the outer match
    reads no column of the inner right sides (then it finds the same row for a row of a with or without b beside it),
    and if the right keys have the same types in both, all known: the keys of one exchange are compared
    as one type. ``<=>`` may be mixed with ``=``; residuals and order keys are each right side's own.

    Joins on other keys in between are skipped, because LAST JOINs that do not read each other's right sides commute;
    a Project above then restores the order of the columns.

    Not legal for ``a LAST JOIN b ON a.k = b.k LAST JOIN c ON b.j = c.j``: c's key is only known once b is joined; nor
    for an int key beside a string key: ``a.k = b.i AND a.k = c.s`` compares a.k as int here and as text there.
    """
    match node:
        case LastJoin(LastJoin() as inner) as outer:
            merged = _into(inner, outer)
            if merged is None or merged.output_columns == outer.output_columns:
                return merged
            return Project(tuple(NamedExpr(column, column) for column in outer.output_columns), merged)
    return None


def _into(inner: LastJoin, outer: LastJoin) -> LastJoin | None:
    """`inner` with the right sides of `outer` added to it, or to the first join of its chain that takes them."""
    if not all(_reads_nothing_of(match, inner.rights) for match in outer.matches):
        return None
    ordered = [_in_order_of(inner.matches[0], match) for match in outer.matches]
    types = _key_types(inner.matches[0], inner.rights[0])
    merged = tuple(match for match in ordered if match is not None)
    same = all(_key_types(match, right) == types for match, right in zip(merged, outer.rights, strict=False))
    if len(merged) == len(outer.matches) and None not in types and same:
        rights, matches = inner.rights + outer.rights, inner.matches + merged
        return replace(inner, rights=rights, matches=matches, span=outer.span)
    deeper = _into(inner.left, outer) if isinstance(inner.left, LastJoin) else None
    return None if deeper is None else replace(inner, left=deeper)


def _reads_nothing_of(match: LastMatch, rights: tuple[LogicalPlan, ...]) -> bool:
    return not any(column in match.references for right in rights for column in right.output_columns)


def _in_order_of(model: LastMatch, match: LastMatch) -> LastMatch | None:
    """`match` with its equalities in the order of the model's left keys; None if the left keys differ."""
    if match.left_keys == model.left_keys:
        return match
    left = list(enumerate(match.left_keys))
    places: list[int] = []
    for key in model.left_keys:
        found = next((item for item in left if item[1] == key), None)
        if found is None:
            return None
        left.remove(found)
        places.append(found[0])
    if left:
        return None
    return replace(
        match,
        left_keys=model.left_keys,
        right_keys=tuple(match.right_keys[i] for i in places),
        null_safe=tuple(match.null_safe[i] for i in places),
    )


def _key_types(match: LastMatch, right: LogicalPlan) -> tuple[str | None, ...]:
    return tuple(key.result_type(right.dtypes) for key in match.right_keys)
