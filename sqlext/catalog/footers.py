"""Schemas from the footers of Parquet and ORC files, in the types that Spark gives the columns; statistics of keys from
those of Parquet files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlext_planner.catalog import KeyStatistics
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.expressions.types import from_arrow, normalize

from sqlext.catalog.memory import kept_by_files

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
