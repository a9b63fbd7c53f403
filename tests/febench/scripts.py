"""The scripts of FEBench (decis-bench/febench), beside the project, and small tables of their schemas.

Strings come from a few values, NULL and '' among them, so that keys meet; numbers are quarters, so that sums are exact;
times differ by the lengths of the scripts' windows, so that ends of frames are hit; everything repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlext_planner.expressions.types import to_arrow

from sqlext.catalog.ddl import read_ddl

from .values import Moment

QUERIES = (0, 1, 2, 3, 4, 5)

#: The ids of requests, by query: each once in `train`; other tables name some of them, some twice.
REQUEST_IDS = {0: ("id",), 1: ("id",), 2: (), 3: ("q3_col31",), 4: ("q4_col40", "q4_col2"), 5: ("q5_col100",)}

_HOUR = 3_600_000_000
_START = 1_577_880_000_000_000  # 2020-01-01 12:00:00 UTC
_HOURS = (0, 0, 1, 2, 9, 10, 11, 24, 47, 48, 49, 120, 168, 336, 1536, 1537)


@dataclass(frozen=True)
class Table:
    """A table in plain Python: columns in order with their Spark types, rows as tuples (times as Moment)."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_arrow(self) -> pa.Table:
        types = [to_arrow(dtype) for _, dtype in self.columns]
        arrays = [
            pa.array([None if row[i] is None else row[i] for row in self.rows], pa.int64() if _is_time(t) else t).cast(
                t
            )
            for i, t in enumerate(types)
        ]
        return pa.Table.from_arrays(arrays, names=[name for name, _ in self.columns])


def _is_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype))


@dataclass(frozen=True)
class Script:
    """One query of FEBench: its number, the schemas it needs and its text."""

    number: int
    schemas: dict[str, dict[str, str]]
    sql: str


def read_script(shared: Callable[[str], Path], number: int) -> Script:
    """The script of a query, or a skip where it is not beside the project."""
    create = shared(f"data/febench/Q{number}_create.sql").read_text(encoding="utf-8")
    deploy = shared(f"data/febench/Q{number}_deploy.sql").read_text(encoding="utf-8")
    return Script(number, read_ddl(create), deploy)


def generate(script: Script, seed: int, rows: int = 24) -> dict[str, Table]:
    """Tables of the script's schemas; `train` has `rows` rows, the others three times as many."""
    source = random.Random(seed)
    tables = {}
    for name, columns in script.schemas.items():
        count = rows if name.lower() == "train" else 3 * rows
        ids = REQUEST_IDS[script.number]
        made = [
            _ids(source, dtype, count, rows, unique=name.lower() == "train")
            if column.lower() in ids
            else [_value(source, dtype) for _ in range(count)]
            for column, dtype in columns.items()
        ]
        tables[name] = Table(tuple(columns.items()), tuple(zip(*made, strict=True)))
    return tables


def _ids(source: random.Random, dtype: str, count: int, requests: int, *, unique: bool) -> list[Any]:
    """Each request's id in random order, the first one missing; or any of them, and some that nobody asks for."""
    known: list[Any] = [i if dtype == "int" else f"r{i}" for i in range(requests + 3)]
    if unique:
        chosen = [None, *known[: count - 1]]
        source.shuffle(chosen)
        return chosen
    return [source.choice([None, *known]) for _ in range(count)]


def _value(source: random.Random, dtype: str) -> Any:
    if source.random() < 0.15:
        return None
    match dtype:
        case "string":
            return source.choice(["a", "b", "b", "", "C"])
        case "timestamp":
            return Moment(_START + source.choice(_HOURS) * _HOUR + source.choice((0, 0, 0, 1000)))
        case "int" | "bigint" | "smallint":
            return source.choice([-2, 0, 0, 1, 2, 7])
        case "double" | "float":
            return source.choice([-1.5, 0.0, 0.25, 0.5, 2.75, 10.0])
        case "date":
            return None
    raise AssertionError(f"no values of type {dtype}")
