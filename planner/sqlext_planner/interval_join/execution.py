"""The physical interval join: pairs found by windows over sorted values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import InternalError
from sqlext_planner.interval_join.choice import IntervalJoinStrategy, final_strategy
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.interval_join.residuals import residual_line
from sqlext_planner.relational.physical_plan import (
    ExecutionContext,
    NodeExec,
    Rival,
    execute_cached,
    quoted,
    spark_column,
)
from sqlext_planner.relational.spark_exec import SPARK_JOINS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.interval_join.inputs import TypedJoin
    from sqlext_planner.interval_join.partitioning import SplitSide


@dataclass(frozen=True)
class IntervalJoinExec(NodeExec):
    """Computes an IntervalJoin node.

    `auto` may leave small inputs to Spark. Spark also compares the values that the operators do not (types that Spark
    converts with a loss, or does not hand to Python), whatever the strategy.
    """

    node: IntervalJoin
    strategy: IntervalJoinStrategy = field(kw_only=True)
    partitioning: SplitSide | None = field(default=None, compare=False, kw_only=True, repr=False)

    is_extension = True

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for values that do not compare or a distance that does not fit their type,
        ConfigurationError if the workers lack the package."""
        from sqlext_planner.interval_join.broadcast import join_by_broadcast
        from sqlext_planner.interval_join.exchanged import join_by_exchange
        from sqlext_planner.interval_join.execution import join_by_spark
        from sqlext_planner.interval_join.inputs import TypedJoin

        left, right = (execute_cached(child, context) for child in self.inputs)
        typed: TypedJoin | None = (
            None if self.strategy == "spark" else TypedJoin.of(self.node, left, right, context.config)
        )
        if typed is None:
            return join_by_spark(self.node, left, right)
        strategy = final_strategy(self, typed, context)
        if strategy == "spark":
            return join_by_spark(self.node, left, right)
        if strategy == "exchange":
            return join_by_exchange(typed, context, self.partitioning)
        return join_by_broadcast(typed, "left" if strategy == "broadcast left" else "right", context)

    def label(self) -> str:
        node = self.node
        keys = [
            f"{left} {'<=>' if safe else '='} {right}"
            for left, right, safe in zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
        ]
        on = f" ON {' AND '.join(keys)}" if keys else ""
        values = [f"l{i} = {v}" for i, v in enumerate(node.left_values)]
        values += [f"r{i} = {v}" for i, v in enumerate(node.right_values)]
        payload = ", ".join(str(column) for side in node.passed_on for column in side)
        how = f"[{self.strategy}] {node.kind}{on} OVER {', '.join(values)} PAYLOAD [{payload}]"
        return f"{type(self).__name__}: {how}"

    def choices(self) -> dict[str, tuple[Rival, ...]]:
        return super().choices() | (
            {} if self.partitioning is None else {"partitioner": self.partitioning.partitioning.rivals}
        )

    def details(self) -> dict[str, Any]:
        lines = {} if self.partitioning is None else self.partitioning.partitioning.lines
        passes = {f"pass {number}": str(item) for number, item in enumerate(self.node.passes, 1)}
        tested = residual_line(self.node)
        return passes | ({} if tested is None else {"residual": tested}) | super().details() | lines


def join_by_spark(node: IntervalJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    """The node's rows by Spark's own join. Matches are counted one by one: each of them outputs its left row with
    the count 1, which gives the same sum over counts."""
    from pyspark.sql.functions import col, lit

    if node.condition is None:
        raise InternalError("an interval join keeps its condition")
    kind = "inner" if node.kind == "count" else node.kind
    joined = left.join(right, spark_column(node.condition), SPARK_JOINS[kind])
    columns = [col(quoted(column.spark_name)) for side in node.passed_on for column in side]
    if node.count is not None:
        columns.append(lit(1).cast("bigint").alias(node.count.spark_name))
    return joined.select(*columns)
