"""The brute-force twin of the interval join operator, in plain Python over all pairs. Tests compare the two.

Rows are dicts of plain Python values: int, float, str, bytes, bool, date, datetime, Decimal, None.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlext_operators.columns.empty_periods import Empty, EmptyPeriodError
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide

from tests.operators.columns.reference import compare
from tests.operators.expressions.reference import value

Row = Mapping[str, Any]

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_EPOCH = datetime.datetime(1970, 1, 1)


def interval_join(spec: IntervalJoinSpec, left: Sequence[Row], rights: Sequence[Row]) -> list[tuple[Any, ...]]:
    """All output rows, in no particular order."""
    ours = [_prepared(spec.left, row, spec.empty) for row in left]
    theirs = [_prepared(spec.right, row, spec.empty) for row in rights]
    pairs = [
        (i, j)
        for i, one in enumerate(ours)
        for j, other in enumerate(theirs)
        if matches(spec, one, other) and _passes(spec, left[i], rights[j])
    ]
    lefts = [tuple(row[name] for name in spec.left.payload) for row in left]
    if not spec.pairs:
        found = [sum(1 for i, _ in pairs if i == row) for row in range(len(left))]
        if spec.kind == "count":
            return [(*values, count) for values, count in zip(lefts, found, strict=True) if count]
        return [values for values, count in zip(lefts, found, strict=True) if (count > 0) == (spec.kind == "semi")]
    right_values = [tuple(row[name] for name in spec.right.payload) for row in rights]
    result = [lefts[i] + right_values[j] for i, j in pairs]
    if spec.keeps("left"):
        nothing = (None,) * len(spec.right.payload)
        result += [lefts[i] + nothing for i in set(range(len(left))) - {i for i, _ in pairs}]
    if spec.keeps("right"):
        nothing = (None,) * len(spec.left.payload)
        result += [nothing + right_values[j] for j in set(range(len(rights))) - {j for _, j in pairs}]
    return result


def matches(spec: IntervalJoinSpec, left: Row | None, right: Row | None) -> bool:
    """Whether two prepared rows match; None is a row that matches nothing."""
    if left is None or right is None:
        return False
    keys = zip(spec.left.keys, spec.right.keys, spec.null_safe, strict=True)
    return all(compare(left[a], "<=>" if safe else "=", right[b]) for a, b, safe in keys) and any(
        all(holds(condition, left, right) for condition in conditions) for conditions in spec.alternatives
    )


def _passes(spec: IntervalJoinSpec, left: Row, right: Row) -> bool:
    return spec.residual is None or value(spec.residual, {**left, **right}) is True


def holds(condition: Condition, left: Row, right: Row) -> bool:
    """``left + shift operator right``."""
    own = left[condition.left]
    if own is not None and condition.shift:
        own = _add(own, condition.shift)
    return compare(own, condition.operator, right[condition.right])


def _prepared(side: IntervalSide, row: Row, empty: Empty) -> Row | None:
    """The row with numbers in place of times and with ends of points moved, None if a period is not valid."""
    moved = {name: _plain(row[name]) for name in {*side.values, *side.keys}}
    for first, second in side.periods:
        start, end = _plain(row[first]), _plain(row[second])
        if start is None or end is None:
            return None
        if compare(start, "<", end) and not _is_nan(start) and not _is_nan(end):
            continue
        if empty == "error":
            raise EmptyPeriodError(f"[{row[first]}, {row[second]})")
        if empty != "point" or not compare(start, "=", end):
            return None
        moved[second] = _next(end)
        if not compare(start, "<", moved[second]):
            return None
    return moved


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
    return value.toordinal() if isinstance(value, datetime.date) else value


def _add(value: Any, shift: Any) -> Any:
    if isinstance(value, float):
        return value + shift
    if isinstance(value, Decimal):
        return value + Decimal(str(shift))
    return min(max(value + int(shift), _LEAST), _GREATEST)


def _next(value: Any) -> Any:
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, Decimal):
        return value + Decimal(1).scaleb(value.as_tuple().exponent)  # type: ignore[arg-type]
    return min(value + 1, _GREATEST)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
