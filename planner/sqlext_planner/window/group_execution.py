"""The physical group aggregate: one Arrow-block exchange by the grouping keys, and one pass over each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, ShownCall
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached, quoted
from sqlext_planner.relational.spark_exec import spark_item, without_grouping_columns
from sqlext_planner.window.group_nodes import GroupAggregate
from sqlext_planner.window.nodes import WindowCall

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from sqlext_planner.window.group_inputs import GroupInputs


@dataclass(frozen=True)
class GroupAggregateExec(NodeExec):
    """Computes a GroupAggregate node.

    The rows go through the exchange by the hash of the keys; each group's rows are then side by side in one task,
    where the window functions' evaluators see them as one window. If Spark computes other aggregates, all rows
    come back, with the calls' results only on the last row of each group, and Spark aggregates them all: the child is
    read once (it may be random), and Spark's partial aggregation leaves one row a group to its own shuffle. Text
    results make that a sort-based aggregation. Without keys, Spark's aggregation gives one row
    even for an empty input.
    """

    node: GroupAggregate

    is_extension = True

    def shown_calls(self) -> Iterator[ShownCall]:
        return (call.shown() for call in self.node.calls)

    def expressions(self) -> Iterator[Expression]:
        yield from (item.expression for item in (*self.node.keys, *self.node.items))
        yield from (arg for call in self.node.calls for arg in call.args)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for key or argument types that do not fit, UnsupportedError for a column that Spark
        cannot hand to Python, ConfigurationError if the workers lack the package."""
        from sqlext_planner.exchange.driver import Shipment, ship
        from sqlext_planner.window.group_inputs import GroupInputs

        inputs = GroupInputs.of(self.node, execute_cached(self.inputs[0], context))
        wire = ship([Shipment(0, inputs.frame, inputs.keys)], context)
        rows = wire.run(inputs.operator(context.config), inputs.result_schema, wire.sizes[0])
        return self._aggregated(rows, inputs) if self.node.items or not self.node.keys else self._groups(rows, inputs)

    def _groups(self, rows: DataFrame, inputs: GroupInputs) -> DataFrame:
        """One row a group, as the operator returns it: keys, then calls. Spark's GROUP BY gives 0.0 for -0.0."""
        from pyspark.sql.functions import col, lit

        types = {item.name: item.dataType for item in rows.schema}
        columns = []
        for key, name in zip(self.node.keys, inputs.keys, strict=True):
            column = col(quoted(name))
            if types[name].simpleString() in ("float", "double"):
                column = (column + lit(0.0)).cast(types[name])
            columns.append(column.alias(key.column.spark_name))
        return rows.select(*columns, *(col(quoted(call.column.spark_name)) for call in self.node.calls))

    def _aggregated(self, rows: DataFrame, inputs: GroupInputs) -> DataFrame:
        """Spark's aggregates over the rows, each call's result picked from the one row that has it."""
        from pyspark.sql.functions import col

        named = zip(self.node.keys, inputs.keys, strict=True)
        keys = [col(quoted(name)).alias(key.column.spark_name) for key, name in named]
        grouped = rows.groupBy(*(col(quoted(name)) for name in inputs.keys))
        picked = [self._picked(call, inputs).alias(call.column.spark_name) for call in self.node.calls]
        return without_grouping_columns(
            grouped.agg(*keys, *map(spark_item, self.node.items), *picked), self.frame_columns
        )

    def _picked(self, call: WindowCall, inputs: GroupInputs) -> SparkColumn:
        from pyspark.sql.functions import any_value, col, count, lit, when

        value = any_value(col(quoted(call.column.spark_name)), ignoreNulls=lit(True))
        if self.node.keys:
            return value
        empty, dtype = inputs.empty_result(call.column.spark_name)
        return when(count(lit(1)) == 0, lit(empty).cast(dtype)).otherwise(value)

    def label(self) -> str:
        return f"GroupAggregateExec{self.node.label().removeprefix('GroupAggregate')}"
