"""Whether two results are the same rows: exact, but doubles to a relative 1e-9; as multisets, or in order."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
Row = tuple[Any, ...]


def rows_of(table: pa.Table) -> list[Row]:
    """The rows in plain terms: instants as microseconds, whole decimals as ints."""
    columns = [_column(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _column(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        tag = "instant" if column.type.tz else "local"
        unit = pa.timestamp("us", column.type.tz)
        values = column.cast(unit).cast(pa.int64()).to_pylist()
        return [None if v is None else (tag, v) for v in values]
    return [plain(v) for v in column.to_pylist()]


def plain(value: Any) -> Any:
    """A value whose equality is that of SQL's `IS NOT DISTINCT FROM`, and no boolean that is equal to a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    return value


def same_value(got: Any, expected: Any) -> bool:
    if got is None or expected is None:
        return got is expected
    if isinstance(got, float | int | Decimal) and isinstance(expected, float | int | Decimal):
        if isinstance(got, float) or isinstance(expected, float):
            # a mean of decimals has a rounded last digit
            loose = 1e-6 if isinstance(got, Decimal) or isinstance(expected, Decimal) else 1e-9
            return math.isclose(float(got), float(expected), rel_tol=1e-9, abs_tol=loose)
        return got == expected
    return bool(got == expected)


def same_row(got: Row, expected: Row) -> bool:
    return all(same_value(g, e) for g, e in zip(got, expected, strict=True))


def _sort_key(row: Row) -> tuple[str, ...]:
    return tuple("" if v is None else f"{v:.6g}" if isinstance(v, float | int) else repr(v) for v in row)


def difference(got: Sequence[Row], expected: Sequence[Row], *, ordered: bool) -> str | None:
    """What differs, or None."""
    if len(got) != len(expected):
        kind = f"{len(got)} rows instead of {len(expected)}"
    elif ordered:
        kind = "other rows, or another order"
        if all(map(same_row, got, expected)):
            return None
    else:
        kind = "other rows"
        pairs = zip(sorted(got, key=_sort_key), sorted(expected, key=_sort_key), strict=True)
        if all(same_row(g, e) for g, e in pairs):
            return None
    missing, surplus = _unmatched(got, expected)
    if not missing and not surplus and not ordered:
        return None
    return f"{kind}\nmissing ({len(missing)}): {missing[:5]}\nsurplus ({len(surplus)}): {surplus[:5]}"


def _unmatched(got: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of each side without a partner on the other; exact partners first, as matching near ones is slow."""
    counts: dict[Row, int] = {}
    for row in got:
        counts[row] = counts.get(row, 0) + 1
    missing = []
    for row in expected:
        if counts.get(row, 0):
            counts[row] -= 1
        else:
            missing.append(row)
    surplus = [row for row, n in counts.items() for _ in range(n)]
    if len(missing) * len(surplus) > 4_000_000:
        return missing, surplus
    left = []
    for row in missing:
        place = next((i for i, other in enumerate(surplus) if same_row(other, row)), None)
        if place is None:
            left.append(row)
        else:
            surplus.pop(place)
    return left, surplus
