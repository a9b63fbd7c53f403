"""The physical interval join: pairs found by windows over sorted values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.interval_join.choice import IntervalJoinStrategy, final_strategy, may_leave
from sqlext_planner.interval_join.nodes import IntervalJoin, IntervalJoinKind
from sqlext_planner.periods.predicates import Amount, EmptyPeriods
from sqlext_planner.periods.relations import Condition, Pass
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached, quoted, spark_column
from sqlext_planner.relational.spark_exec import SPARK_JOINS
from sqlext_planner.tree import field_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.interval_join.inputs import TypedJoin
    from sqlext_planner.interval_join.partitioning import SplitSide


@dataclass(frozen=True)
class IntervalJoinExec(PhysicalPlan):
    """Computes an IntervalJoin node (same fields, physical children).

    With `may_leave`, `auto` may leave small inputs to Spark. Spark also compares the values that the operators do not
    (types that Spark converts with a loss, or does not hand to Python), whatever the strategy.
    """

    left: PhysicalPlan
    right: PhysicalPlan
    kind: IntervalJoinKind
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    null_safe: tuple[bool, ...]
    left_values: tuple[Expression, ...]
    right_values: tuple[Expression, ...]
    alternatives: tuple[tuple[Condition, ...], ...]
    left_periods: tuple[tuple[str, str], ...]
    right_periods: tuple[tuple[str, str], ...]
    empty: EmptyPeriods
    amounts: tuple[tuple[str, Amount], ...]
    condition: Expression
    fields: tuple[Field, ...]
    count: Column | None
    passes: tuple[Pass, ...]
    strategy: IntervalJoinStrategy
    may_leave: bool
    partitioning: SplitSide | None = field(default=None, compare=False, kw_only=True, repr=False)

    is_extension = True

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    @cached_property
    def payload(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """The columns that are passed on from the left and from the right side."""
        theirs = (
            frozenset(self.right.output_columns) if self.kind in ("inner", "left", "right", "full") else frozenset()
        )
        kept = [column for column in self.output_columns if column != self.count]
        return tuple(c for c in kept if c not in theirs), tuple(c for c in kept if c in theirs)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for values that do not compare or a distance that does not fit their type,
        ConfigurationError if the workers lack the package."""
        from sqlext_planner.interval_join.broadcast import join_by_broadcast
        from sqlext_planner.interval_join.exchanged import join_by_exchange
        from sqlext_planner.interval_join.execution import join_by_spark
        from sqlext_planner.interval_join.inputs import TypedJoin

        left, right = (execute_cached(child, context) for child in (self.left, self.right))
        typed: TypedJoin | None = None if self.strategy == "spark" else TypedJoin.of(self, left, right, context.config)
        if typed is None:
            return join_by_spark(self, left, right)
        strategy = final_strategy(self, typed, context)
        if strategy == "spark":
            return join_by_spark(self, left, right)
        if strategy == "exchange":
            return join_by_exchange(typed, context, self.partitioning)
        return join_by_broadcast(typed, "left" if strategy == "broadcast left" else "right", context)

    def label(self) -> str:
        keys = [
            f"{left} {'<=>' if safe else '='} {right}"
            for left, right, safe in zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        ]
        on = f" ON {' AND '.join(keys)}" if keys else ""
        values = [f"l{i} = {v}" for i, v in enumerate(self.left_values)]
        values += [f"r{i} = {v}" for i, v in enumerate(self.right_values)]
        payload = ", ".join(str(column) for side in self.payload for column in side)
        how = f"[{self.strategy}] {self.kind}{on} OVER {', '.join(values)} PAYLOAD [{payload}]"
        return f"{type(self).__name__}: {how}"

    def details(self) -> dict[str, Any]:
        lines = {} if self.partitioning is None else self.partitioning.partitioning.lines
        return {f"pass {number}": str(item) for number, item in enumerate(self.passes, 1)} | super().details() | lines


def interval_join(
    node: IntervalJoin,
    left: PhysicalPlan,
    right: PhysicalPlan,
    strategy: IntervalJoinStrategy,
    why: str,
    partitioning: SplitSide | None = None,
) -> IntervalJoinExec:
    """The physical node of a strategy that is not Spark's own join."""
    return IntervalJoinExec(**fields_of(node, left, right, strategy), partitioning=partitioning, why=why)


def fields_of(
    node: IntervalJoin, left: PhysicalPlan, right: PhysicalPlan, strategy: IntervalJoinStrategy
) -> dict[str, Any]:
    """What the physical nodes take over from the logical one."""
    if node.condition is None:
        raise InternalError("an interval join keeps its condition")
    same = {name: getattr(node, name) for name in field_names(IntervalJoinExec) if name in field_names(IntervalJoin)}
    changed = {"left": left, "right": right, "fields": node.output, "passes": node.passes}
    return same | changed | {"strategy": strategy, "may_leave": may_leave(node)}


def join_by_spark(node: IntervalJoinExec, left: DataFrame, right: DataFrame) -> DataFrame:
    """The node's rows by Spark's own join. Matches are counted one by one: each of them outputs its left row with
    the count 1, which gives the same sum over counts."""
    from pyspark.sql.functions import col, lit

    kind = "inner" if node.kind == "count" else node.kind
    joined = left.join(right, spark_column(node.condition), SPARK_JOINS[kind])
    columns = [col(quoted(column.spark_name)) for side in node.payload for column in side]
    if node.count is not None:
        columns.append(lit(1).cast("bigint").alias(node.count.spark_name))
    return joined.select(*columns)
