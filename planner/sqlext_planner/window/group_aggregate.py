"""GROUP BY with functions that only the window table has.

One Arrow-block exchange by the grouping keys, and one pass over each group. First the logical node, then what it ships
(keys, arguments, and what Spark's own aggregates read, checked against the real types), then the physical node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlext_planner.config import Config
from sqlext_planner.errors import InternalError, Span
from sqlext_planner.exchange.driver import Shipment, memory_bytes, ship
from sqlext_planner.exchange.wire import WireColumns, as_months, check_key, shippable
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, ShownCall, is_exact, is_movable, reads_only
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, Passed, comma, reads, with_fields
from sqlext_planner.relational.nodes import Aggregate, filtered
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached, quoted
from sqlext_planner.relational.spark_exec import spark_item, without_grouping_columns
from sqlext_planner.window.inputs import result_type
from sqlext_planner.window.nodes import WindowCall

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType
    from sqlext_operators.window.operator import GroupAggregateSpec, GroupOperatorSpec
    from sqlext_operators.window.spec import Call


@dataclass(frozen=True)
class GroupAggregate(LogicalPlan):
    """One row for each group: its keys, Spark's aggregates, and functions of the window table over all its rows.

    ``SELECT k, sum_cate(v, c), max(v) FROM t GROUP BY k`` is ``GroupAggregate([k], [max(v)], [sum_cate(v, c)], t)``.
    Groups are Spark's: NULL keys are one group, all NaNs are one, -0.0 is 0.0. `items` hold only Spark's aggregate
    functions; without keys there is one group, even over no rows. Rows of a group are in input order; the last one is
    the newest.
    """

    is_extension = True
    feeds_exchange = True
    operator_name = "a grouped sqlext aggregate"

    keys: tuple[NamedExpr, ...]
    items: tuple[NamedExpr, ...]
    calls: tuple[WindowCall, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, reads((*self.keys, *self._pruned(needed))))]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        kept = self._pruned(needed)
        items = tuple(item for item in kept if isinstance(item, NamedExpr))
        calls = tuple(item for item in kept if isinstance(item, WindowCall))
        child = built(self.child)
        if not calls:
            keys = tuple(key.expression for key in self.keys)
            return Aggregate(keys, None, (*self.keys, *items), child, span=self.span)
        return with_fields(self, items=items, calls=calls, child=child)

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms over keys that are movable themselves: they drop whole groups, and the rows of one group have no part
        in another. ``SELECT k, sum_cate(v, c) FROM t GROUP BY k HAVING k > 5`` filters t.

        Keys must be of a type whose equal values are the same value: with a double key, 0.0 and -0.0 are one group, and
        ``1 / k > 0`` would split it. (Catalyst takes care of Spark's own aggregates.) Not legal for other columns:
        ``HAVING count_where(v, c) > 5`` is about the group. Nor without keys: ``SELECT sum_cate(v, c) FROM t HAVING
        false`` has no row, while the aggregate over no rows has one; so a term must read a key.
        """
        known = self.dtypes
        movable = {
            key.column: key.expression
            for key in self.keys
            if is_exact(known.get(key.column)) and is_movable(key.expression)
        }
        passed = [term for term in terms if reads_only(term, movable)]
        if not passed:
            return None
        return with_fields(self, child=filtered([term.substitute(movable) for term in passed], self.child)), passed

    def _pruned(self, needed: Set[Column]) -> tuple[NamedExpr | WindowCall, ...]:
        """Spark's aggregates and the calls that are needed; at least one."""
        items = tuple(item for item in self.items if item.column in needed)
        calls = tuple(call for call in self.calls if call.column in needed)
        return (*items, *calls) or (() if self.keys else self.calls[:1])

    def __post_init__(self) -> None:
        if not self.calls:
            raise InternalError("a group aggregate without a call is Spark's own Aggregate")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        known = self.child.dtypes
        named = (*self.keys, *self.items)
        fields = tuple(Field(item.column, item.expression.result_type(known)) for item in named)
        return fields + tuple(Field(call.column, call.dtype) for call in self.calls)

    def expressions(self) -> Iterator[Expression]:
        yield from self.keys
        yield from self.items
        yield from self.calls

    def label(self) -> str:
        return f"GroupAggregate: [{comma(self.keys)}] {comma((*self.items, *self.calls))}"


@dataclass(frozen=True)
class GroupInputs:
    """A group aggregate ready to run: `frame` has the wire columns only, `keys` are the names of its key columns.

    `passed` are the columns that pass through: the keys, and what Spark's own aggregates read. Year-month intervals
    are months in the frame, and in what the workers return; `result_schema` has them.
    """

    frame: DataFrame
    keys: tuple[str, ...]
    passed: tuple[str, ...]
    spec: GroupAggregateSpec
    result_schema: StructType

    @classmethod
    def of(cls, node: GroupAggregate, child: DataFrame) -> GroupInputs:
        """Check all types and choose what is shipped.

        Raises AnalysisError or UnsupportedError, which point at the text.
        """
        from pyspark.sql.types import StructField, StructType

        wire = WireColumns()
        keys = tuple(wire.name(key.expression) for key in node.keys)
        read = dict.fromkeys(column for item in node.items for column in sorted(item.references, key=str))
        passed = tuple(dict.fromkeys((*keys, *(wire.name(column) for column in read))))
        calls = {call: call.shipped(wire.name) for call in node.calls}
        frame = wire.select(child)
        fields = {item.name: item for item in frame.schema}
        types = {name: item.dataType for name, item in fields.items()}
        places = _places(node, calls)
        kinds = {name: shippable(item, places.get(name)) for name, item in fields.items()}
        for key, name in zip(node.keys, keys, strict=True):
            check_key(key.expression, types[name], kinds[name], places.get(name), grouped=True)
        results = [
            StructField(call.output, result_type(logical, call, kinds, types)) for logical, call in calls.items()
        ]
        conf = child.sparkSession.conf
        from sqlext_operators.window.operator import GroupAggregateSpec

        spec = GroupAggregateSpec(
            tuple(calls.values()),
            every_row=bool(node.items),
            ansi=str(conf.get("spark.sql.ansi.enabled")).lower() == "true",
            time_zone=str(conf.get("spark.sql.session.timeZone")),
        )
        return cls(as_months(frame), keys, passed, spec, StructType([*(fields[name] for name in passed), *results]))

    def operator(self, config: Config) -> GroupOperatorSpec:
        """What a worker does with a partition."""
        from sqlext_operators.sequences.sequence import SequenceSpec
        from sqlext_operators.window.operator import GroupOperatorSpec

        sequence = SequenceSpec(
            keys=self.keys,
            order=None,
            args=self._args,
            payload=self.passed,
            memory_bytes=memory_bytes(config),
            piece_rows=config.max_piece_rows,
        )
        return GroupOperatorSpec(sequence, self.spec, config.output_batch_rows)

    def empty_result(self, output: str) -> tuple[Any, DataType]:
        """A call's result for a group without rows, and its type; the driver computes it."""
        return self._empty[output], self.result_schema[output].dataType

    @cached_property
    def _args(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arg for call in self.spec.calls for arg in call.args))

    @cached_property
    def _empty(self) -> dict[str, Any]:
        kinds = {item.name: shippable(item, None) for item in self.frame.schema}
        from sqlext_operators.window.operator import empty_group

        return dict(empty_group(self.spec, {name: kinds[name] for name in self._args}).to_pylist()[0])


def _places(node: GroupAggregate, calls: dict[WindowCall, Call]) -> dict[str, Span | None]:
    """Where the statement names the wire columns."""
    places: dict[str, Span | None] = {}
    for logical, call in calls.items():
        for arg, name in zip(logical.args, call.args, strict=True):
            places.setdefault(name, arg.span or logical.span)
    for item in node.items:
        for column in item.references:
            places.setdefault(column.spark_name, item.span or item.expression.span)
    return places


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
