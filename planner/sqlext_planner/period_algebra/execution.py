"""The physical period algebra: one Arrow-block exchange by the keys, one sort by start, one pass.

It ships keys and ends, checked against the DataFrames' real types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.exchange.driver import Shipment, memory_bytes, ship
from sqlext_planner.exchange.wire import as_months, check_key, shippable
from sqlext_planner.period_algebra.nodes import PeriodAlgebra, common_types
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.period_algebra.operator import PeriodOperatorSpec


@dataclass(frozen=True)
class PeriodInputs:
    """An operation ready to run: `frames` have the node's columns under the source's names, in common types."""

    node: PeriodAlgebra
    frames: tuple[DataFrame, ...]
    result_schema: StructType

    @classmethod
    def of(cls, node: PeriodAlgebra, frames: Sequence[DataFrame]) -> PeriodInputs:
        """Check all types. Raises AnalysisError or UnsupportedError, which point at the text."""
        from pyspark.sql.types import LongType, StructField, StructType

        types = common_types(node, [[item.dataType.simpleString() for item in frame.schema] for frame in frames])
        typed = [_typed(frame, node, types) for frame in frames]
        fields = {item.name: item for item in typed[0].schema}
        for key in node.keys:
            item = fields[key.spark_name]
            check_key(key, item.dataType, shippable(item, key.span))
        start, end = (fields[column.spark_name].dataType for column in node.columns[-2:])
        result = [StructField(key.spark_name, fields[key.spark_name].dataType) for key in node.keys]
        result += [StructField(node.start.spark_name, start, False), StructField(node.end.spark_name, end, False)]
        if node.count is not None:
            result.append(StructField(node.count.spark_name, LongType(), False))
        return cls(node, tuple(map(as_months, typed)), StructType(result))

    def operator(self, config: Config) -> PeriodOperatorSpec:
        """What a worker does with a partition."""
        from sqlext_operators.period_algebra.operator import PeriodOperatorSpec
        from sqlext_operators.period_algebra.spec import PeriodAlgebraSpec

        node = self.node
        start, end = (column.spark_name for column in node.columns[-2:])
        algebra = PeriodAlgebraSpec(
            node.operation,
            tuple(key.spark_name for key in node.keys),
            start,
            end,
            shippable(self.frames[0].schema[start], None),
            "" if node.count is None else node.count.spark_name,
            node.empty,
        )
        return PeriodOperatorSpec(algebra, memory_bytes(config), config.max_piece_rows, config.output_batch_rows)


def _typed(frame: DataFrame, node: PeriodAlgebra, types: Sequence[str]) -> DataFrame:
    """A frame's columns by position, under the names of the source's and in the common types."""
    from pyspark.sql.functions import col

    columns = []
    for item, column, dtype in zip(frame.schema, node.columns, types, strict=True):
        own = col(quoted(item.name))
        own = own if item.dataType.simpleString() == dtype else own.cast(dtype)
        columns.append(own.alias(column.spark_name))
    return frame.select(*columns)


@dataclass(frozen=True)
class PeriodAlgebraExec(NodeExec):
    """Computes a PeriodAlgebra node."""

    node: PeriodAlgebra

    is_extension = True

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for key types or ends that do not fit, UnsupportedError for a column that Spark cannot
        hand to Python, ConfigurationError if the workers lack the package."""
        inputs = PeriodInputs.of(self.node, [execute_cached(child, context) for child in self.inputs])
        keys = tuple(key.spark_name for key in self.node.keys)
        wire = ship([Shipment(tag, frame, keys) for tag, frame in enumerate(inputs.frames)], context)
        return wire.run(inputs.operator(context.config), inputs.result_schema, wire.sizes[0])
