"""The brute-force twin of the LAST JOIN operator, in plain Python. Tests compare the two.

The rules are those of docs/reference/last-join.md, sections 2 to 4. Rows are dicts of plain Python values; timestamps
are anything that compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlext_operators.last_join.spec import LastJoinSpec, RightSide

from tests.operators.columns.reference import compare

Row = Mapping[str, Any]


def last_join(spec: LastJoinSpec, left: Sequence[Row], rights: Sequence[Sequence[Row]]) -> list[tuple[Any, ...]]:
    """One output row for each left row, in order."""
    result = []
    for row in left:
        values = [row[name] for name in spec.payload]
        for side, candidates in zip(spec.rights, rights, strict=True):
            match = winner(spec.keys, side, row, candidates)
            values += [None if match is None else match[name] for name in side.payload]
        result.append(tuple(values))
    return result


def winner(keys: Sequence[str], side: RightSide, left: Row, candidates: Sequence[Row]) -> Row | None:
    """The last matching row of a right side; None without a match."""
    best: Row | None = None
    for row in candidates:
        if matches(keys, side, left, row) and (best is None or not loses(side, row, best)):
            best = row
    return best


def matches(keys: Sequence[str], side: RightSide, left: Row, right: Row) -> bool:
    """Whether the left row's condition, all equalities and all comparisons hold."""
    if side.condition is not None and left[side.condition] is not True:
        return False
    equalities = zip(keys, side.keys, side.null_safe, strict=True)
    return all(compare(left[a], "<=>" if safe else "=", right[b]) for a, b, safe in equalities) and all(
        compare(left[item.left], item.operator, right[item.right]) for item in side.comparisons
    )


def loses(side: RightSide, later: Row, earlier: Row) -> bool:
    """Whether the row that comes later in the input loses against the earlier one."""
    for name, descending in zip(side.order, side.descending, strict=True):
        new, old = later[name], earlier[name]
        if new is None or old is None:
            if (new is None) != (old is None):
                return new is None
        elif compare(new, "<>", old):
            return bool(compare(new, ">" if descending else "<", old))
    return False
