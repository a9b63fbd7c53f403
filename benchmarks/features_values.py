"""What the generators of the suite `features` share: keys and times, values of any column, and the Parquet files.

In every table in a script's FROM, (key, time) is unique for each of its window keys, and no window holds more rows than
its MAXSIZE: then Spark's RANGE frames hold the same rows as ROWS_RANGE ... MAXSIZE, and the contestants need not spell
out what the extension adds. More rows mean more keys (for the two taxi vendors, more time): window sizes stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlext_operators.arrays import Float64s, Int64s

from sqlext.catalog.ddl import read_ddl

#: Small enough that a scan of a million rows is split over a few cores.
ROW_GROUP = 125_000
DAY = 86_400_000
HOUR = 3_600_000


def timestamps(milliseconds: Int64s | Float64s) -> pa.Array:
    """Spark's TIMESTAMP (microseconds, UTC) from milliseconds since the epoch."""
    return pa.array(milliseconds.astype(np.int64) * 1_000, pa.timestamp("us", "UTC"))


def distinct_times(milliseconds: Int64s | Float64s, step: int = 1) -> Int64s:
    """Ascending times cut to multiples of `step` ms, each at least one step after the one before it."""
    steps = np.sort(milliseconds.astype(np.int64)) // step
    places = np.arange(len(steps))
    return (np.maximum.accumulate(steps - places) + places) * step


def spread_times(random: np.random.Generator, counts: Int64s, days: int) -> tuple[Int64s, Int64s]:
    """(key, ms since the start), sorted: `counts[k]` distinct whole seconds of key k, evenly spread and jittered."""
    key = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = (place + random.random(len(key))) / counts[key] * days * DAY
    return key, _distinct_by_key(key, spread, days)


def random_times(random: np.random.Generator, counts: Int64s, days: int) -> tuple[Int64s, Int64s]:
    """(key, ms since the start), sorted: `counts[k]` distinct whole seconds of key k, anywhere in the days."""
    key = np.repeat(np.arange(len(counts)), counts)
    return key, _distinct_by_key(key, random.random(len(key)) * days * DAY, days)


def _distinct_by_key(key: Int64s, elapsed: Float64s, days: int) -> Int64s:
    # One line of times for all keys, each key a span apart, keeps them distinct in one pass.
    span = (days + 1) * DAY
    return distinct_times(key * span + elapsed.astype(np.int64), 1_000) - key * span


def by_time(table: pa.Table, time: Int64s) -> pa.Table:
    """The rows in the order of their times."""
    return table.take(pa.array(np.argsort(time, kind="stable")))


def category(random: np.random.Generator, size: int, count: int, nulls: float = 0.0) -> pa.Array:
    """Strings v0, v1, ... of which the first are the most frequent."""
    numbers = (size * random.random(count) ** 2).astype(np.int64)
    places = pa.array(numbers, mask=random.random(count) < nulls if nulls else None)
    return numbered("v", np.arange(size)).take(places)


def schemas(script: str) -> dict[str, dict[str, str]]:
    """The columns of a script's tables, with their Spark types, as FEBench creates them."""
    return read_ddl(sql_file(f"{script}_create"))


def sql_file(name: str) -> str:
    """The text of a file in `benchmarks/sql/features`."""
    return files("benchmarks").joinpath("sql", "features", f"{name}.sql").read_text()


def filled(
    random: np.random.Generator, columns: Mapping[str, str], count: int, known: Mapping[str, pa.Array]
) -> pa.Table:
    """A table of `count` rows with these columns: the known ones, and values of their types in the others.

    The others have 2 to 42 strings or integers, amounts of -20 to 100 with two decimals, or times of three years; a
    fiftieth of them is NULL.
    """
    found = {}
    for place, (name, kind) in enumerate(columns.items()):
        found[name] = known[name] if name in known else _values(random, kind, 2 + 8 * (place % 6), count)
    return pa.table(found)


def _values(random: np.random.Generator, kind: str, size: int, count: int) -> pa.Array:
    if kind == "string":
        return category(random, size, count, 0.02)
    absent = random.random(count) < 0.02
    numbers = random.random(count) ** 2
    match kind:
        case "double":
            return pa.array(np.round(120 * numbers - 20, 2), mask=absent)
        case "int" | "bigint":
            return pa.array((size * numbers).astype(np.int32 if kind == "int" else np.int64), mask=absent)
        case "timestamp":
            times = timestamps(np.floor(1_546_300_800 + numbers * 3 * 365 * 86_400) * 1_000)
            return pc.if_else(pa.array(absent), pa.scalar(None, times.type), times)
    raise ValueError(f"no values of type {kind}")


def numbered(prefix: str, numbers: Int64s) -> pa.Array:
    """The strings prefix + number."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def write_tables(tables: Mapping[str, pa.Table], folder: Path) -> dict[str, Path]:
    """One Parquet file for each table; an interrupted run leaves no partial file under its name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        partial = paths[name].with_suffix(".partial")
        pq.write_table(table, partial, row_group_size=ROW_GROUP)
        partial.replace(paths[name])
    return paths


def stored_tables(names: Sequence[str], folder: Path) -> dict[str, Path] | None:
    """The paths that `write_tables` wrote; None if one is missing."""
    paths = {name: folder / f"{name}.parquet" for name in names}
    return paths if all(path.exists() for path in paths.values()) else None
