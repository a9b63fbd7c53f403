"""Schemas from ORC footers, in the types that Spark gives the columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.expressions.types import from_arrow, normalize

from sqlext.catalog.memory import kept_by_files

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
    return tuple((field.name, _type(field, files[0])) for field in schema), rows, size


def _element_type(field: pa.Field) -> str:
    if field.type in (pa.int32(), pa.int64()):
        raise UnsupportedError(
            "whole numbers, or times or intervals that ORC stores as such", condition="unsupported-type"
        )
    return _spark_type(field)


def _type(field: pa.Field, file: Path) -> str:
    try:
        return _spark_type(field)
    except UnsupportedError:
        raise ConfigurationError(
            f"Spark's type of column '{field.name}' ({field.type}) of '{file}' cannot be told without Spark",
            condition="needs-spark",
            help="describe the tables of the statement with --schema FILE",
        ) from None


def _spark_type(field: pa.Field) -> str:
    """Spark takes both of ORC's timestamps for instants, if it did not write another name beside them.

    Inside lists and maps pyarrow does not show such a name, so that whole numbers may be something else there."""
    stored = (field.metadata or {}).get(_SPARK_TYPE)
    if stored is not None:
        return normalize(stored.decode())
    kind = field.type
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_list(kind):
        return f"array<{_element_type(kind.value_field)}>"
    if pa.types.is_map(kind):
        return f"map<{_element_type(kind.key_field)},{_element_type(kind.item_field)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{part.name}:{_spark_type(part)}" for part in kind) + ">"
    return from_arrow(kind)
