"""The brute-force twin of the multi-way join operator, in plain Python over all combinations of rows. Tests compare
the two.

Rows are dicts of plain Python values: int, float, str, bytes, bool, date, datetime, Decimal, None.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec

from tests.operators.columns.reference import compare

Row = Mapping[str, Any]


def multiway_join(spec: MultiwayJoinSpec, tables: Sequence[Sequence[Row]]) -> list[tuple[Any, ...]]:
    """The joined rows as payload tuples, one for each row of the result, in no particular order."""
    inputs = list(zip(spec.inputs, tables, strict=True))
    inner = [(item, rows) for item, rows in inputs if item.kind == "inner"]
    result = []
    for chosen in itertools.product(*(rows for _, rows in inner)):
        binding = _binding([item for item, _ in inner], chosen)
        if binding is None:
            continue
        matches = [[row for row in rows if _matches(item, row, binding)] for item, rows in inputs]
        if any(item.kind == "semi" and not matching for (item, _), matching in zip(inputs, matches, strict=True)):
            continue
        if any(item.kind == "anti" and matching for (item, _), matching in zip(inputs, matches, strict=True)):
            continue
        rest = iter(chosen)
        parts: list[Sequence[Row | None]] = []
        for (item, _), matching in zip(inputs, matches, strict=True):
            if item.kind == "inner":
                parts.append([next(rest)])
            elif item.kind == "left":
                parts.append(matching or [None])
            else:
                parts.append([None])
        for combination in itertools.product(*parts):
            result.append(
                tuple(
                    None if row is None else row[name]
                    for item, row in zip(spec.inputs, combination, strict=True)
                    for name in item.payload
                )
            )
    return result


def counted(rows: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows with their numbers; NaN equals NaN."""
    return Counter(tuple("NaN" if isinstance(x, float) and math.isnan(x) else x for x in row) for row in rows)


def _binding(items: Sequence[MultiwayInput], rows: Sequence[Row]) -> dict[int, Any] | None:
    """The value of each class that all these rows have; None if they differ or one is NULL."""
    binding: dict[int, Any] = {}
    for item, row in zip(items, rows, strict=True):
        for place, name in zip(item.classes, item.keys, strict=True):
            if not compare(binding.setdefault(place, row[name]), "=", row[name]):
                return None
    return binding


def _matches(item: MultiwayInput, row: Row, binding: Mapping[int, Any]) -> bool:
    keys = zip(item.classes, item.keys, strict=True)
    return all(compare(binding[place], "=", row[name]) for place, name in keys)
