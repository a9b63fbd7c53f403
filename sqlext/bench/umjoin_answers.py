"""What is compared of a fetched result: checksums that do not depend on the engine's types and on the order of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa

from sqlext.bench.suite import Answer, Number


def answer_of_table(table: pa.Table) -> Answer:
    """The rows of a result of few rows. Columns go by their place: engines name some of them differently.

    Whole numbers, texts, dates and NULLs are compared exactly, row by row through a hash of the row, whole numbers by
    their sum too. Other numbers (Spark has decimals where DuckDB has doubles) are summed up, each times a weight from 1
    to 2 that comes from the row's hash. One row with a column `n` counts as n rows: it is a COUNT(*).
    """
    exact = [place for place, field in enumerate(table.schema) if _is_exact(field.type)]
    columns = [column.to_pylist() for column in table.columns]
    hashes = [_hash(columns, exact, row) for row in range(table.num_rows)]
    sums: dict[str, Number] = {"rows": sum(hashes)}
    for place, field in enumerate(table.schema):
        name, values = f"c{place}", columns[place]
        if place not in exact:
            pairs = zip(values, hashes, strict=True)
            sums[name] = math.fsum(float(value) * (1 + row % 97 / 97) for value, row in pairs if value is not None)
        elif not (pa.types.is_string(field.type) or pa.types.is_date(field.type)):
            sums[name] = int(sum(value for value in values if value is not None))
    counted = table.num_rows == 1 and table.schema.names[0] == "n"
    return Answer(int(columns[0][0]) if counted else table.num_rows, sums)


def _is_exact(kind: pa.DataType) -> bool:
    """Whether all engines have the same value: not a float, and no decimal with a fraction."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale == 0)
    return not pa.types.is_floating(kind)


def _hash(columns: Sequence[Sequence[Any]], exact: Sequence[int], row: int) -> int:
    """Of a row's exact values, and of where it has NULLs."""
    cells = [str(columns[place][row]) for place in exact]
    holes = [str(place) for place, column in enumerate(columns) if column[row] is None]
    return crc32("|".join([*cells, "", *holes]).encode())
