"""The brute-force twin of the period algebra, in plain Python. Tests compare the two.

It cuts time at every end of every period, counts what covers each part, and joins parts again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlext_operators.columns.empty_periods import EmptyPeriodError
from sqlext_operators.period_algebra.spec import PeriodAlgebraSpec

Row = Mapping[str, Any]
#: (start, end, how many periods of input 0 and of input 1 cover all of it)
Stretch = tuple[Any, Any, int, int]


def period_algebra(spec: PeriodAlgebraSpec, inputs: Sequence[Sequence[Row]]) -> list[tuple[Any, ...]]:
    """The rows of the result, keys in order of first appearance. Ends with empty="point" are whole numbers."""
    periods: dict[tuple[Hashable, ...], tuple[list[Any], list[Any]]] = {}
    for number, rows in enumerate(inputs):
        for row in rows:
            ends = _period(spec, row)
            if ends is not None:
                key = tuple(row[name] for name in spec.keys)
                periods.setdefault(key, ([], []))[number].append(ends)
    return [(*key, *result) for key, both in periods.items() for result in _results(spec, list(_stretches(*both)))]


def _period(spec: PeriodAlgebraSpec, row: Row) -> tuple[Any, Any] | None:
    start, end = row[spec.start], row[spec.end]
    if start is None or end is None:
        return None
    if spec.empty == "point" and start == end:
        return start, end + 1
    if start < end and not (isinstance(end, float) and math.isnan(end)):
        return start, end
    if spec.empty == "error":
        raise EmptyPeriodError(f"[{start}, {end})")
    return None


def _stretches(left: Sequence[Any], right: Sequence[Any]) -> Iterator[Stretch]:
    times = sorted({time for period in (*left, *right) for time in period})
    for a, b in pairwise(times):
        yield a, b, *(sum(start <= a and b <= end for start, end in periods) for periods in (left, right))


def _results(spec: PeriodAlgebraSpec, stretches: Sequence[Stretch]) -> list[tuple[Any, ...]]:
    joined: list[tuple[Any, ...]] = []
    for start, end, left, right in stretches:
        kept = {"gaps": left == 0, "difference": left > 0 and right == 0}.get(spec.operation, left > 0)
        count = (left,) if spec.operation == "concurrent" else ()
        if not kept:
            continue
        if joined and joined[-1][1] == start and joined[-1][2:] == count:
            joined[-1] = (joined[-1][0], end, *count)
        else:
            joined.append((start, end, *count))
    return joined
