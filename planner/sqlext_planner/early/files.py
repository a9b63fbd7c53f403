"""The columns that a replay needs, from a CSV or Parquet file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as types

from sqlext_planner.early.options import Columns
from sqlext_planner.errors import AnalysisError, ConfigurationError, DataError

_MOST_BLOCK = (1 << 31) - 1
_MOST_MICROS = 1 << 61
#: Squares and their sums have to be numbers
_MOST_VALUE = 1e100


@dataclass(frozen=True)
class FileRows:
    """Rows of a file in its order: keys (Arrow, without NULL), values, times and arrivals in microseconds or None.

    `timestamps`: the times are timestamps, not numbers.
    """

    path: Path
    keys: pa.Array
    values: np.ndarray[Any, np.dtype[np.float64]]
    times: np.ndarray[Any, np.dtype[np.int64]] | None
    arrivals: np.ndarray[Any, np.dtype[np.int64]] | None
    timestamps: bool = False

    def __len__(self) -> int:
        return len(self.keys)


def read_rows(path: Path, columns: Columns, unit: int) -> FileRows:
    """Read one side. `unit`: microseconds of one unit of times that are numbers.

    Rows without a key match nothing and rows without a value count for nothing: both are left out. Raises
    ConfigurationError for a file that cannot be read, AnalysisError for a missing column or one of a wrong type,
    DataError for times that are missing or out of range, and for a file without rows.
    """
    wanted = {"key": columns.key, "value": columns.value, "time": columns.time, "arrival": columns.arrival}
    names = {role: name for role, name in wanted.items() if name is not None}
    table = _read(path, list(dict.fromkeys(names.values())))
    if not table.num_rows:
        raise DataError(f"{path} has no rows", condition="replay-files")
    times = _times(path, columns.time, table, unit) if columns.time is not None else None
    arrivals = _times(path, columns.arrival, table, unit) if columns.arrival is not None else None
    values = _numbers(path, columns.value, table) if columns.value is not None else np.ones(table.num_rows)
    is_complete = np.logical_and.reduce(
        [table.column(names[role]).is_valid().to_numpy() for role in ("key", "value") if role in names]
    )
    if not is_complete.any():
        raise DataError(
            f"{path} has no rows with a key{' and a value' if columns.value is not None else ''}",
            condition="replay-files",
        )
    stamped = columns.time is not None and types.is_temporal(table.schema.field(columns.time).type)
    return FileRows(
        path,
        _single(table.column(columns.key)).filter(pa.array(is_complete)),
        values[is_complete],
        None if times is None else times[is_complete],
        None if arrivals is None else arrivals[is_complete],
        stamped,
    )


def same_codes(left: FileRows, right: FileRows) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Codes from 0 of the keys of both. Raises AnalysisError if their types cannot be equal."""
    kinds = left.keys.type, right.keys.type
    if kinds[0] != kinds[1]:
        if not all(types.is_integer(kind) for kind in kinds):
            raise AnalysisError(
                f"the keys are {kinds[0]} in {left.path} and {kinds[1]} in {right.path}",
                condition="replay-files",
                help="give both files keys of one type",
            )
        kinds = pa.int64(), pa.int64()
    both = pa.chunked_array([left.keys.cast(kinds[0]), right.keys.cast(kinds[0])])
    codes = both.dictionary_encode().unify_dictionaries()
    mine, other = (chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64) for chunk in codes.chunks)
    return mine, other


def _read(path: Path, names: list[str]) -> pa.Table:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ConfigurationError(
            f"{path} is neither .csv nor .parquet", condition="replay-files", help="convert it to one of these"
        )
    try:
        if suffix == ".parquet":
            known = pa.parquet.read_schema(path).names
            return pa.parquet.read_table(path, columns=_known(path, names, known))
        size = path.stat().st_size
        if not size:
            raise DataError(
                f"{path} is empty", condition="replay-files", help="the first line of a CSV file names its columns"
            )
        # one block, so that the types are those of all rows
        read = pa.csv.ReadOptions(block_size=min(max(size + 1, 1 << 16), _MOST_BLOCK))
        known = pa.csv.open_csv(path).schema.names
        convert = pa.csv.ConvertOptions(include_columns=_known(path, names, known), strings_can_be_null=True)
        return pa.csv.read_csv(path, read_options=read, convert_options=convert)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror or error}", condition="replay-files", help="check the path"
        ) from error
    except pa.ArrowException as error:
        raise DataError(f"cannot read {path}: {error}", condition="replay-files") from error


def _known(path: Path, names: list[str], known: list[str]) -> list[str]:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"its columns are {', '.join(known[:20])}"
            raise AnalysisError(f"{path} has no column '{name}'", condition="replay-files", help=hint)
    return names


def _single(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) and combined.num_chunks else combined


def _numbers(path: Path, name: str, table: pa.Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers; 0 for NULL."""
    column = table.column(name)
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)):
        raise AnalysisError(
            f"column '{name}' of {path} is {kind}, not a number", condition="replay-files", help="--value needs numbers"
        )
    filled = column.cast(pa.float64(), safe=False).fill_null(0.0)
    values: np.ndarray[Any, np.dtype[np.float64]] = filled.to_numpy()
    _finite(path, name, values)
    if np.abs(values).max(initial=0) > _MOST_VALUE:
        raise DataError(
            f"column '{name}' of {path} has values beyond {_MOST_VALUE:g}",
            condition="replay-files",
            help="use a larger unit",
        )
    return values


def _times(path: Path, name: str, table: pa.Table, unit: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    column = table.column(name)
    kind = column.type
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(
            f"{path} has no '{name}' in row {row + 1}", condition="replay-files", help="leave such rows out"
        )
    if types.is_timestamp(kind) or types.is_date(kind):
        stamps = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return np.asarray(stamps.cast(pa.int64()).to_numpy(), np.int64)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise AnalysisError(
            f"column '{name}' of {path} is {kind}, not a time",
            condition="replay-files",
            help="times are timestamps, or numbers with --unit",
        )
    numbers = column.cast(pa.float64(), safe=False).to_numpy() * float(unit)
    _finite(path, name, numbers)
    if np.abs(numbers).max(initial=0) > _MOST_MICROS:
        raise DataError(
            f"column '{name}' of {path} has times that are out of range", condition="replay-files", help="check --unit"
        )
    if types.is_integer(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64) * unit
    rounded: np.ndarray[Any, np.dtype[np.int64]] = np.rint(numbers).astype(np.int64)
    return rounded


def _finite(path: Path, name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise DataError(
            f"column '{name}' of {path} is {values[wrong[0]]} in row {wrong[0] + 1}",
            condition="replay-files",
            help="leave it out",
        )
