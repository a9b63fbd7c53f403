"""Parquet and ORC files: schemas from their footers, in the types that Spark gives the columns; of Parquet also
statistics of keys, and samples of rows from a part of the row groups."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlext_planner.catalog import SAMPLED_ROWS, KeyStatistics
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.expressions.types import from_arrow, normalize

from sqlext.catalog.locations import kept_by_files

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    Group = tuple[pq.ParquetFile, int]

#: Spark writes its own schema here, and trusts it before anything else.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"

Columns = tuple[tuple[str, str], ...]


@kept_by_files(256)
def parquet_columns(files: Sequence[Path]) -> tuple[Columns, int, int]:
    """Columns of the first file; rows and uncompressed bytes of all. Raises ConfigurationError, ArrowException."""
    import pyarrow.parquet as pq

    footers = [pq.read_metadata(file) for file in files]
    rows = sum(footer.num_rows for footer in footers)
    size = sum(footer.row_group(i).total_byte_size for footer in footers for i in range(footer.num_row_groups))
    return _columns(footers[0], files[0]), rows, size


def _columns(footer: Any, file: Path) -> Columns:
    stored = (footer.metadata or {}).get(_SPARK_SCHEMA)
    if stored is not None:
        try:
            return tuple((field["name"], _from_json(field["type"])) for field in json.loads(stored)["fields"])
        except (ValueError, KeyError, TypeError, RecursionError, UnsupportedError):
            pass  # Spark cannot read the text either: it then uses the file's own schema
    leaves = _top_level_leaves(footer)
    columns = []
    for field in footer.schema.to_arrow_schema():
        leaf = leaves.get(field.name)
        try:
            dtype = from_arrow(field.type) if leaf is None else _leaf_type(leaf) or from_arrow(field.type)
        except UnsupportedError:
            dtype = None
        if dtype is None:
            raise ConfigurationError(
                f"column '{field.name}' of '{file}' has type {field.type}, which Spark cannot read",
                condition="unsupported-type",
                help="write the file with another type, for example timestamps in microseconds",
            )
        columns.append((field.name, dtype))
    return tuple(columns)


def _top_level_leaves(footer: Any) -> dict[str, Any]:
    """Primitive columns that are not part of a list, map or struct, by name."""
    schema = footer.schema
    leaves = [schema.column(i) for i in range(footer.num_columns)]
    nested = {field.name for field in schema.to_arrow_schema() if pa.types.is_nested(field.type)}
    return {leaf.name: leaf for leaf in leaves if leaf.path == leaf.name and leaf.name not in nested}


def _leaf_type(leaf: Any) -> str | None:
    """Spark's type from the file's own annotations, where Arrow's stored schema would mislead; None to ask Arrow.

    Raises UnsupportedError for a type that Spark refuses.
    """
    logical = json.loads(leaf.logical_type.to_json())
    kind = logical.get("Type")
    if kind == "Timestamp":
        if logical["timeUnit"] == "nanoseconds":
            raise UnsupportedError("nanoseconds", condition="unsupported-type")
        return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    if leaf.physical_type == "INT96":
        return "timestamp"
    if kind == "None":  # Spark reads an Arrow duration as INT64, an Arrow date64 as INT64 or DATE
        plain = {"BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double"}
        return plain.get(leaf.physical_type, "binary")
    if kind in ("String", "Enum", "JSON"):
        return "string"
    if kind in ("Interval", "Float16"):
        raise UnsupportedError(str(kind), condition="unsupported-type")
    return None


def _from_json(dtype: Any) -> str:
    """A type from the JSON that Spark stores, as a simple string."""
    if isinstance(dtype, str):
        return normalize(dtype)
    match dtype["type"]:
        case "struct":
            return "struct<" + ",".join(f"{f['name']}:{_from_json(f['type'])}" for f in dtype["fields"]) + ">"
        case "array":
            return f"array<{_from_json(dtype['elementType'])}>"
        case "map":
            return f"map<{_from_json(dtype['keyType'])},{_from_json(dtype['valueType'])}>"
        case _:  # a user-defined type is stored with the SQL type below it
            return _from_json(dtype["sqlType"])


#: Keys with more gaps than this are not dense: their range does not show how often they occur.
_DENSE = 1.1


@kept_by_files(512)
def file_statistics(files: Sequence[Path], columns: tuple[str, ...]) -> KeyStatistics | None:
    """Rows and numbers of values of the columns (names ignore case); None if a file lacks one, or cannot be read."""
    import pyarrow.parquet as pq

    try:
        footers = [pq.read_metadata(file) for file in files]
        places = [leaf_places(footer.schema.names, columns) for footer in footers]
    except (OSError, ValueError):
        return None
    rows = sum(footer.num_rows for footer in footers)
    parts = [
        (footer.row_group(group), found)
        for footer, found in zip(footers, places, strict=True)
        for group in range(footer.num_row_groups)
    ]
    distinct = [
        _distinct([group.column(found[i]).statistics for group, found in parts if group.num_rows], rows)
        for i in range(len(columns))
    ]
    return KeyStatistics(rows, tuple(distinct))


def leaf_places(names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """The positions of top-level columns among a file's leaves. Raises ValueError for a name that is not there."""
    lowered = [name.lower() for name in names]
    return [lowered.index(column.lower()) for column in columns]


def _distinct(statistics: Sequence[Any], rows: int) -> int | None:
    """The number of values between the least and the greatest one; None if there are more of them than rows: then it is
    unknown how many occur."""
    if not all(item is not None and item.has_min_max for item in statistics):
        return None
    ends = [(item.min, item.max) for item in statistics]
    if not ends:
        return 0
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if type(low) is datetime.date:
        between = int((high - low).days) + 1
    elif isinstance(low, int):
        between = int(high) - int(low) + 1
    else:
        return None
    return between if between <= _DENSE * rows else None


#: An attribute with Spark's own name of a type, where ORC has no type of its own.
_SPARK_TYPE = b"spark.sql.catalyst.type"


@kept_by_files(256)
def orc_columns(files: Sequence[Path]) -> tuple[tuple[tuple[str, str], ...], int, int]:
    """Columns of the first file; rows and bytes of all (as stored). Raises ConfigurationError, ArrowException."""
    from pyarrow import orc

    rows = size = 0
    for file in files:
        opened = orc.ORCFile(file)
        rows, size = rows + opened.nrows, size + opened.content_length
    schema = orc.ORCFile(files[0]).schema
    return tuple((field.name, _orc_type(field, files[0])) for field in schema), rows, size


def _element_type_in_orc(field: pa.Field) -> str:
    if field.type in (pa.int32(), pa.int64()):
        raise UnsupportedError(
            "whole numbers, or times or intervals that ORC stores as such", condition="unsupported-type"
        )
    return _type_in_orc(field)


def _orc_type(field: pa.Field, file: Path) -> str:
    try:
        return _type_in_orc(field)
    except UnsupportedError:
        raise ConfigurationError(
            f"Spark's type of column '{field.name}' ({field.type}) of '{file}' cannot be told without Spark",
            condition="needs-spark",
            help="describe the tables of the statement with --schema FILE",
        ) from None


def _type_in_orc(field: pa.Field) -> str:
    """Spark takes both of ORC's timestamps for instants, if it did not write another name beside them.

    Inside lists and maps pyarrow does not show such a name, so that whole numbers may be something else there."""
    stored = (field.metadata or {}).get(_SPARK_TYPE)
    if stored is not None:
        return normalize(stored.decode())
    kind = field.type
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_list(kind):
        return f"array<{_element_type_in_orc(kind.value_field)}>"
    if pa.types.is_map(kind):
        return f"map<{_element_type_in_orc(kind.key_field)},{_element_type_in_orc(kind.item_field)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{part.name}:{_type_in_orc(part)}" for part in kind) + ">"
    return from_arrow(kind)


#: Its multiples spread evenly between whole numbers, however many there are.
_GOLDEN = 0.618033988749895
#: The widest range that values are moved in or out of: offsets in it are exact as doubles.
_WIDEST = 1 << 53


@kept_by_files(64)
def file_sample(
    files: Sequence[Path], columns: tuple[str, ...], rows: int, read: int = 0, spread: str | None = None
) -> pa.Table | None:
    """About `rows` rows, spread evenly over row groups that are spread evenly over the files and have about `read`
    rows, or only as many as are wanted; None if they cannot be read.

    Files are often sorted by time, so that row groups that were not read would be gaps in the times. Each row group
    that was read stands for those that follow it: values of the column `spread` are moved into their ranges.
    """
    import pyarrow.parquet as pq

    try:
        opened = [pq.ParquetFile(file) for file in files]
        names = opened[0].schema_arrow.names
        selected = [names[place] for place in leaf_places(names, columns)]
        groups = [(file, group) for file in opened for group in range(file.num_row_groups)]
        total = sum(file.metadata.num_rows for file in opened)
        count = min(len(groups), max(1, round(len(groups) * max(rows, read) / max(1, total))))
        ends = [place * len(groups) // count for place in range(count + 1)] if groups else []
        chosen = [groups[start:end] for start, end in pairwise(ends)]
        step = max(1, sum(_rows(near[0]) for near in chosen) // max(1, rows))
        parts = []
        for near in chosen:
            file, group = near[0]
            part = file.read_row_group(group, columns=selected, use_threads=False)
            part = part if step == 1 else part.take(pa.array(np.arange(step // 2, part.num_rows, step)))
            part = part.select(selected)
            part = part.rename_columns(list(columns))
            parts.append(part if spread is None or len(near) == 1 else _spread(part, spread, near))
        parts = parts or [opened[0].schema_arrow.empty_table().select(selected).rename_columns(list(columns))]
        return pa.concat_tables(parts).replace_schema_metadata({SAMPLED_ROWS: str(total)})
    except (OSError, ValueError):
        return None


def _rows(group: Group) -> int:
    file, number = group
    found: int = file.metadata.row_group(number).num_rows
    return found


def _spread(part: pa.Table, column: str, groups: Sequence[Group]) -> pa.Table:
    """Rows of the first of some row groups, dealt to all of them by their sizes, with the values of a column moved as
    far as its range differs. Nothing is moved where a range is not known."""
    place = part.schema.get_field_index(column)
    kind = part.schema.field(place).type
    ranges = [_range(group, column, kind) for group in groups]
    if ranges[0] is None or not part.num_rows:
        return part
    shares = np.cumsum([_rows(group) for group in groups], dtype=np.float64)
    dealt = np.searchsorted(shares / shares[-1], np.arange(part.num_rows) * _GOLDEN % 1.0, side="right")
    numbers = _integers(part.column(place).combine_chunks())
    low, high = ranges[0]
    values = numbers.fill_null(low).to_numpy(zero_copy_only=False)
    part_of = (values - low) / max(1, high - low)
    moved = values.copy()
    for number, found in enumerate(ranges):
        if number and found is not None:
            own = dealt == number
            moved[own] = found[0] + np.round(part_of[own] * (found[1] - found[0])).astype(np.int64)
    result = pa.array(moved, mask=numbers.is_null().to_numpy(zero_copy_only=False)).cast(_integer_type(kind)).cast(kind)
    return part.set_column(place, part.schema.field(place), result)


def _range(group: Group, column: str, kind: pa.DataType) -> tuple[int, int] | None:
    """The least and the greatest value of a column in a row group; None if unknown, no numbers, or too far apart."""
    file, number = group
    metadata = file.metadata.row_group(number)
    place = leaf_places(file.metadata.schema.names, [column])[0]
    found = metadata.column(place).statistics
    if found is None or not found.has_min_max or _integer_type(kind) is None:
        return None
    try:
        low, high = _integers(pa.array([found.min, found.max], kind)).to_pylist()
    except (pa.ArrowException, TypeError, OverflowError):
        return None
    return (low, high) if high - low <= _WIDEST else None


def _integer_type(kind: pa.DataType) -> pa.DataType | None:
    """The integers that a type's values are stored as; None for other types."""
    if pa.types.is_signed_integer(kind):
        return kind
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else None


def _integers(values: pa.Array) -> pa.Array:
    """As int64."""
    return values.cast(_integer_type(values.type)).cast(pa.int64())
