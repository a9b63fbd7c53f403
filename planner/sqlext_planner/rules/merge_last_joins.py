"""A chain of LAST JOINs on the same left keys is one node with several right sides."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.logical import LastJoin, LastMatch, LogicalPlan
from sqlext_planner.logical.relational import expression_dtype
from sqlext_planner.rules import rule


@rule(order="bottom_up")
def merge_last_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(LastJoin(a, b), c)`` -> ``LastJoin(a, b, c)`` where both join on the same columns of a.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k LAST JOIN c ORDER BY c.ts ON a.k = c.k``::

        LastJoin: ORDER BY c.ts ON a.k = c.k             LastJoin: ORDER BY b.ts ON a.k = b.k,
          LastJoin: ORDER BY b.ts ON a.k = b.k     ->              ORDER BY c.ts ON a.k = c.k
            Scan: a                                        Scan: a
            Scan: b                                        Scan: b
          Scan: c                                          Scan: c

    One exchange of a instead of two. Legal if the left keys are the same expressions, in any order, if the outer match
    reads no column of the inner right sides (then it finds the same row for a row of a whether b stands beside it or
    not), and if the right keys have the same types in both, all known: the keys of one exchange are compared
    as one type. ``<=>`` may stand beside ``=``; residuals and order keys are each right side's own.

    Not legal for ``a LAST JOIN b ON a.k = b.k LAST JOIN c ON b.j = c.j``: c's key is only known once b is joined; nor
    for an int key beside a string key: ``a.k = b.i AND a.k = c.s`` compares a.k as int here and as text there.
    """
    match node:
        case LastJoin(LastJoin(left, inner_rights, inner_matches), rights, matches) as outer:
            if not all(_reads_nothing_of(match, inner_rights) for match in matches):
                return None
            model, right_side = inner_matches[0], inner_rights[0]
            ordered = [_in_order_of(model, match) for match in matches]
            types = _key_types(model, right_side)
            merged = [match for match in ordered if match is not None]
            same = all(_key_types(match, right) == types for match, right in zip(merged, rights, strict=False))
            if len(merged) < len(matches) or None in types or not same:
                return None
            return LastJoin(left, inner_rights + rights, inner_matches + tuple(merged), span=outer.span)
    return None


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
    return tuple(expression_dtype(key, right.dtypes) for key in match.right_keys)
