"""Rows of Python values and of Arrow: what is pushed and asked, and the answers, with PySpark's conversions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from sqlext_planner.errors import AnalysisError, ConfigurationError

#: Spark's zones that are no region: `+01:00`, `UTC+1`, `GMT-05:30`.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def to_batch(
    rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch, schema: pa.Schema, table: str
) -> pa.RecordBatch:
    """Rows as one batch with a table's columns and types. Columns that a row lacks are NULL.

    Raises AnalysisError for an unknown column and for a value that does not fit its column's type.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _arrow_batch(rows, schema, table)
    listed = list(rows)
    known = {name.lower(): name for name in schema.names}
    columns: dict[str, list[Any]] = {name: [None] * len(listed) for name in schema.names}
    for place, row in enumerate(listed):
        for name, value in row.items():
            column = name if name in columns else known.get(str(name).lower())
            if column is None:
                raise unknown_column(str(name), schema, table)
            columns[column][place] = value
    arrays = [_array(columns[item.name], item, table) for item in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def parquet_rows(path: str | Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, or of the files of a folder by their names, with some columns.

    Raises AnalysisError if there are none, or if a column is missing.
    """
    import pyarrow.dataset as files

    try:
        source = files.dataset(str(path), format="parquet", partitioning="hive")
    except (OSError, pa.ArrowInvalid) as error:
        raise AnalysisError(
            f"{path} cannot be read: {error}", condition="table-files", help="name Parquet files"
        ) from None
    missing = next((name for name in columns if name not in source.schema.names), None)
    if missing is not None:
        raise AnalysisError(
            f"{path} has no column '{missing}'",
            condition="unknown-column",
            help=f"it has {', '.join(source.schema.names)}",
        )
    return (batch for batch in source.to_batches(columns=list(columns)) if batch.num_rows)


def unknown_column(name: str, schema: pa.Schema, table: str) -> AnalysisError:
    """The error of a column that a table lacks."""
    return AnalysisError(
        f"the table '{table}' has no column '{name}'",
        condition="unknown-column",
        help=f"it has {', '.join(schema.names)}",
    )


def _array(values: Sequence[Any], item: pa.Field, table: str) -> pa.Array:
    if pa.types.is_timestamp(item.type) and item.type.tz is not None:
        # As in PySpark, a datetime without a zone is of the machine's zone.
        values = [_instant(value) if isinstance(value, datetime) else value for value in values]
    try:
        return pa.array(values, item.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError) as error:
        wrong = next((value for value in values if not _fits(value, item.type)), None)
        raise AnalysisError(
            f"{wrong!r} is no value of the column '{item.name}' of '{table}', which is {item.type}",
            condition="row-value",
            help=f"give a value of this type, or None ({str(error).splitlines()[0]})",
        ) from None


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        return False
    return True


def _instant(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _arrow_batch(rows: pa.Table | pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    known = {name.lower(): name for name in schema.names}
    given: dict[str, Any] = {}
    for name in rows.schema.names:
        if name.lower() not in known:
            raise unknown_column(name, schema, table)
        given[known[name.lower()]] = rows.column(name)
    arrays = []
    for item in schema:
        column = given.get(item.name)
        column = pa.nulls(rows.num_rows, item.type) if column is None else column
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
            column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        try:
            arrays.append(column if column.type == item.type else column.cast(item.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise AnalysisError(
                f"the column '{item.name}' of '{table}' is {item.type}, and the rows have {column.type}",
                condition="row-value",
                help=f"cast the column to {item.type} before ({str(error).splitlines()[0]})",
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def with_zone(rows: pa.Table | pa.RecordBatch, schema: pa.Schema, zone: tzinfo) -> pa.Table | pa.RecordBatch:
    """Rows in which times without a zone are of `zone` where a table's columns are instants."""
    times = {item.name.lower() for item in schema if pa.types.is_timestamp(item.type) and item.type.tz is not None}
    places = [
        place
        for place, item in enumerate(rows.schema)
        if item.name.lower() in times and pa.types.is_timestamp(item.type) and item.type.tz is None
    ]
    if not places:
        return rows
    offset = datetime.now(zone).strftime("%z")
    name = zone.key if isinstance(zone, ZoneInfo) else f"{offset[:3]}:{offset[3:]}"
    columns = list(rows.columns)
    for place in places:
        columns[place] = pc.assume_timezone(columns[place], name, ambiguous="earliest", nonexistent="latest")
    return type(rows).from_arrays(columns, names=rows.schema.names)


def to_rows(batch: pa.RecordBatch, names: Sequence[str]) -> list[dict[str, Any]]:
    """Dicts as `Row.asDict()` gives them, by the names of the columns; of two with one name the last one."""
    columns = [_values(column) for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return [None if value is None else value.astimezone().replace(tzinfo=None) for value in values]
    return values


@cache
def zone_of(name: str) -> tzinfo:
    """A zone by Spark's name for it: a region or an offset. Raises ConfigurationError."""
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            minutes = int(offset[2]) * 60 + int(offset[3] or 0)
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        return UTC if name == "Z" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, malformed, a folder
        raise ConfigurationError(
            f"{name!r} is no time zone that this machine knows",
            condition="time-zone",
            help="write a region such as Europe/Berlin, or an offset such as +01:00",
        ) from error
