"""Strings with a collation where functions are checked.

Arrow has no collations: on the wire such a string is text like any other, whose bytes say nothing about which strings
are equal or which one is less. So a function over them may hand values on, and must not compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from sqlext_planner.spark.session import spark_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

#: What to write instead, for help texts.
BY_BYTES = "write x COLLATE UTF8_BINARY, or lower(x) COLLATE UTF8_BINARY, which takes no notice of case"


class CollatedType(pa.ExtensionType):  # type: ignore[misc]
    """Represents a Spark type that is a string with a collation or holds one; `name` is its simple string.

    No type rule of a function that compares takes it, as it is neither text nor anything else that has an order.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(pa.null(), "sqlext.collated")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> CollatedType:
        return cls(serialized.decode())

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


def has_collation(kind: DataType) -> bool:
    """Whether a Spark type is a string with a collation other than UTF8_BINARY, or holds one."""
    return " collate " in kind.simpleString().lower()


def stand_in(kind: DataType, arrow: pa.DataType) -> pa.DataType:
    """The type that functions are checked with, for a column of a Spark type that travels as an Arrow type."""
    return CollatedType(kind.simpleString()) if has_collation(kind) else arrow


def result_of(result: pa.DataType, kinds: Mapping[pa.DataType, DataType]) -> DataType:
    """The Spark type of a function's result; `kinds` are the Spark types of the stand-ins among its arguments."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if (found := kinds.get(result)) is not None:
        return found
    if kinds and pa.types.is_list(result):
        return ArrayType(result_of(result.value_type, kinds))
    if kinds and pa.types.is_struct(result):
        return StructType([StructField(item.name, result_of(item.type, kinds)) for item in result])
    return spark_type(result)
