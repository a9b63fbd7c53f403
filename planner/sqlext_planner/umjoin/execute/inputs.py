"""What a multi-way join ships: the keys of each input in types that compare, and the columns that are passed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.umjoin.spec import COUNT, MultiwayInput, MultiwayJoinSpec

from sqlext_planner.exchange.wire import WireColumns, as_months, is_shippable
from sqlext_planner.expressions.nodes import Column, Compare, Literal
from sqlext_planner.expressions.types import as_type
from sqlext_planner.relational.physical_plan import spark_column
from sqlext_planner.umjoin.execute.keys import KeyLayout, class_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

    from sqlext_planner.umjoin.execute.execution import UMJoinExec

#: Where Spark records that a text is a CHAR(n): it pads the shorter of two lengths when it compares them.
_CHAR_METADATA = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class TypedInputs:
    """A multi-way join over real DataFrames: what the operator computes, and the inputs with their wire columns.

    `result` has the output's fields, the count under the operator's name for it; year-month intervals travel as months.
    """

    spec: MultiwayJoinSpec
    frames: tuple[DataFrame, ...]
    result: StructType

    @classmethod
    def of(
        cls, node: UMJoinExec, frames: Sequence[DataFrame], extra: Sequence[Sequence[Column]] = ()
    ) -> TypedInputs | None:
        """None if the operator does not compare as Spark does, or Spark does not hand a column's type to Python.

        `extra` are columns of each input that the operator reads besides."""
        types = _key_types(node, frames)
        classes = _class_types(node.layout, types)
        if classes is None:
            return None
        also = extra or [()] * len(frames)
        parts = [_Part.of(node, i, frame, types, classes, also[i]) for i, frame in enumerate(frames)]
        if not all(is_shippable(part.frame) for part in parts):
            return None
        spec = MultiwayJoinSpec(tuple(part.item for part in parts), node.layout.count, node.count is not None)
        return cls(spec, tuple(as_months(part.frame) for part in parts), _result_schema(node, frames))


@dataclass(frozen=True)
class _Part:
    """One input on the wire."""

    item: MultiwayInput
    frame: DataFrame

    @classmethod
    def of(
        cls,
        node: UMJoinExec,
        i: int,
        frame: DataFrame,
        types: Mapping[Column, str],
        classes: Sequence[str],
        extra: Sequence[Column],
    ) -> _Part:
        wire = WireColumns()
        names = []
        for held, kind in zip(node.layout.columns[i], classes, strict=True):
            keys = [as_type(column, types[column], kind) for column in held]
            names += [wire.name(key) for key in keys[:1]]
            for other in keys[1:]:
                frame = frame.filter(spark_column(Compare("=", keys[0], other)))
        payload = node.payload[i]
        if not names and not payload:
            wire.name(Literal("TRUE", dtype="boolean"))  # without a column, rows cannot be counted
        columns = tuple(column.spark_name for column in payload)
        item = MultiwayInput(node.kinds[i], node.layout.classes[i], tuple(names), columns)
        return cls(item, wire.select(frame, (*payload, *extra)))


def _key_types(node: UMJoinExec, frames: Sequence[DataFrame]) -> dict[Column, str]:
    """The types of all key columns."""
    held = {column for item in node.layout.columns for columns in item for column in columns}
    found: dict[Column, str] = {}
    for child, frame in zip(node.inputs, frames, strict=True):
        fields = {item.name: item for item in frame.schema}
        found |= {column: _type(fields[column.spark_name]) for column in child.output_columns if column in held}
    return found


def _type(item: StructField) -> str:
    text = str((item.metadata or {}).get(_CHAR_METADATA, ""))
    return text if text.startswith("char(") else item.dataType.simpleString()


def _class_types(layout: KeyLayout, types: Mapping[Column, str]) -> list[str] | None:
    """The type of each key class; None if one has none."""
    found = [
        class_type(_texts(types[a], types[b]) for n, a, b in layout.edges if n == number)
        for number in range(layout.count)
    ]
    known = [kind for kind in found if kind is not None]
    return known if len(known) == len(found) else None


def _texts(left: str, right: str) -> tuple[str, str]:
    """CHARs of equal length compare as texts, and so does a CHAR with any other type."""
    chars = [kind.startswith("char(") for kind in (left, right)]
    if all(chars) and left != right:
        return left, right
    return ("string" if chars[0] else left), ("string" if chars[1] else right)


def _result_schema(node: UMJoinExec, frames: Sequence[DataFrame]) -> StructType:
    """The output's fields; those of left inputs are nullable."""
    from pyspark.sql.types import LongType, StructField, StructType

    output_fields = []
    for frame, kind, payload in zip(frames, node.kinds, node.payload, strict=True):
        fields = {item.name: item for item in frame.schema}
        for column in payload:
            item = fields[column.spark_name]
            output_fields.append(StructField(item.name, item.dataType, item.nullable or kind == "left", item.metadata))
    if node.count is not None:
        output_fields.append(StructField(COUNT, LongType(), False))
    return StructType(output_fields)
