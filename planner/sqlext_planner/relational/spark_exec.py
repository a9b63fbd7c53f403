"""Plain Spark for the relational core: one physical node, and for each logical node how its DataFrame is made.

Subqueries inside an expression (`x IN (SELECT ...)`, EXISTS, scalar; correlated ones too) need nothing special:
PySpark's `F.expr` parses them and Spark resolves an outer reference such as `` `t.a` `` against the DataFrame
(checked on 4.3 in select, filter, join conditions and aggregates).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlext_planner.catalog import TableInfo
from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Expression, Literal, NamedExpr, ShownCall, conjuncts
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import Field, LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Hint,
    Limit,
    Output,
    Project,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    SparkRelation,
    SubqueryAlias,
    Values,
    Window,
)
from sqlext_planner.relational.physical_plan import (
    Estimate,
    ExecutionContext,
    NodeExec,
    PhysicalPlan,
    Trial,
    execute_cached,
    quoted,
    spark_column,
    tried,
)
from sqlext_planner.spark.streams import bounded_future
from sqlext_planner.spark.tables import referenced_table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, GroupedData


#: The DataFrame API's names for the kinds of joins.
SPARK_JOINS = {
    "inner": "inner",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}


@dataclass(frozen=True)
class Given(LogicalPlan):
    """Stands for the rows of a physical plan, in a logical node that a strategy makes."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class SparkExec(NodeExec):
    """A node of the relational core, by Spark.

    `info` is what the catalog knows about a scanned table (files, format, sizes); None where planning had no catalog.
    `fallback` says why Spark compares rows here, where an operator of ours was asked for; `read_by` tells who reads a
    table for an operator of ours, and why. It may ask Spark, for EXPLAIN.
    """

    info: TableInfo | None = None
    fallback: str = field(default="", compare=False, kw_only=True, repr=False)
    read_by: Callable[[], str] | None = field(default=None, compare=False, kw_only=True, repr=False)

    @property
    def frame_columns(self) -> tuple[str, ...]:
        return self.node.names if isinstance(self.node, Output) else super().frame_columns

    def execute(self, context: ExecutionContext) -> DataFrame:
        if self.fallback:
            condition = getattr(self.node, "condition", None)
            context.left_to_spark(self.fallback, self.node.span or (condition and condition.span))
        return frame_of(self.node, [execute_cached(child, context) for child in self.inputs], context)

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        match self.node:
            case Filter(condition):
                yield from ((term, lambda item: frames[0].filter(spark_column(item))) for term in conjuncts(condition))
            case Join(condition=condition):
                for term in conjuncts(condition):
                    yield term, lambda item: frames[0].join(frames[1], spark_column(item)).columns
            case Aggregate(keys, _, items) as node:
                yield from ((key, tried(frames[0])) for key in keys)
                for item in items:
                    yield item.expression, lambda part: _grouped(node, frames[0]).agg(spark_column(part)).columns
            case Values(rows):
                for value in (value for row in rows for value in row):
                    yield value, lambda item: context.spark.sql(f"SELECT {item.sql()}").columns
            case _:
                yield from super().trials(frames, context)

    def estimate(self) -> Estimate | None:
        return self.estimated if self.info is None else Estimate(self.info.rows, self.info.bytes)

    def shown_relation(self) -> tuple[str, str] | None:
        if not isinstance(self.node, Scan):
            return None
        table, relation = self.node.table.rsplit(".", 1)[-1].strip("`"), self.node.relation
        return relation, table if re.fullmatch(rf"{re.escape(table)}_\d+", relation) else relation

    def shown_calls(self) -> Iterator[ShownCall]:
        items = self.node.items if isinstance(self.node, Window) else ()
        return (ShownCall(item.column, str(item.expression)) for item in items)

    def details(self) -> dict[str, Any]:
        return super().details() | ({} if self.read_by is None else {"read by": self.read_by()})

    def node_name(self) -> str:
        return f"{self.node.node_name()}Exec"

    def label(self) -> str:
        node = replace(self.node, sweep=None, umjoin=None) if isinstance(self.node, Join) else self.node
        return f"{self.node_name()}{node.label().removeprefix(node.node_name())}"


def by_spark(make: Callable[..., LogicalPlan], *inputs: PhysicalPlan, **facts: Any) -> SparkExec:
    """A node over physical plans: ``by_spark(lambda child: Filter(condition, child), plan)``."""
    return SparkExec(make(*(Given(child.output) for child in inputs)), inputs, **facts)


def filtered_by_spark(condition: Expression | None, child: PhysicalPlan) -> PhysicalPlan:
    """The rows of a plan for which the condition is true; the plan itself if there is none."""
    return child if condition is None else by_spark(lambda given: Filter(condition, given), child)


#: The nodes of the relational core.
SPARK_NODES = (
    *(Scan, SparkRelation, Values, Filter, Project, Window, Sort, Limit),
    *(Distinct, SubqueryAlias, Output, Hint, Join, SetOperation, Aggregate),
)


def frame_of(node: LogicalPlan, frames: Sequence[DataFrame], context: ExecutionContext) -> DataFrame:
    """The DataFrame of a node over those of its children. Raises InternalError for a node that is not Spark's."""
    match node:
        case Scan() | SparkRelation() | Values():
            return _leaf(node, frames, context)
        case Join() | SetOperation():
            return _joined(node, *frames)
    if type(node) not in SPARK_NODES:
        raise InternalError(f"{node.node_name()} has no DataFrame")
    (frame,) = frames
    match node:
        case Filter(condition):
            return frame.filter(spark_column(condition))
        case Project(items):  # one JVM call for all items: 280 of them took 0.6 s one by one
            return frame.selectExpr(*(item.sql() for item in items))
        case Window(items):
            return frame.select(*_columns(frame.columns), *map(spark_item, items))
        case Sort(keys):  # a constant key orders nothing and is left out (Spark would read 1 as a position)
            columns = [_sort_column(key) for key in keys if not isinstance(key.expression, Literal)]
            return frame.orderBy(*columns) if columns else frame
        case Limit(count, offset):
            rest = frame.offset(offset) if offset else frame
            return rest if count is None else rest.limit(count)
        case Distinct():
            return frame.distinct()
        case SubqueryAlias():
            return frame.toDF(*_names(node))
        case Output(names):
            return frame.toDF(*names)
        case Hint(name, parameters):  # Spark warns about a hint that it does not know, as for plain SQL
            return frame.hint(name, *(int(p.text) if isinstance(p, Literal) else spark_column(p) for p in parameters))
        case Aggregate(items=items):
            return without_grouping_columns(_grouped(node, frame).agg(*map(spark_item, items)), _names(node))
    raise InternalError(f"{node.node_name()} is not made")


def _leaf(node: Scan | SparkRelation | Values, frames: Sequence[DataFrame], context: ExecutionContext) -> DataFrame:
    """Rows that Spark reads or makes; a stream without those that sqlext.stream.future leaves out."""
    match node:
        case Scan(table):
            name = table if "`" in table else ".".join(quoted(part) for part in table.split("."))
            items = [f"{quoted(c.name)} AS {quoted(c.spark_name)}" for c in node.output_columns]
            return _in_time(referenced_table(context.spark, name), context).selectExpr(*items)
        case Values(rows, fields):
            if not fields:  # the one row of a SELECT without FROM
                return context.spark.range(len(rows)).select()
            values = ", ".join(f"({', '.join(value.sql() for value in row)})" for row in rows)
            return context.spark.sql(f"SELECT * FROM VALUES {values}").toDF(*_names(node))
    if not node.inputs:
        return _in_time(context.spark.sql(node.sql), context).toDF(*_names(node))
    text = node.sql.replace("{", "{{").replace("}", "}}")
    given: dict[str, Any] = {}
    for (name, columns), frame in zip(node.input_names, frames, strict=True):
        text = re.sub(rf"\b{name}\b", f"{{{name}}}", text)
        given[name] = frame.toDF(*columns)
    return _in_time(context.spark.sql(text, **given), context).toDF(*_names(node))


def _in_time(frame: DataFrame, context: ExecutionContext) -> DataFrame:
    keeps = context.config.stream_future == "keep" or not frame.isStreaming
    return frame if keeps else bounded_future(frame, context.config)


def _joined(node: Join | SetOperation, left: DataFrame, right: DataFrame) -> DataFrame:
    """Two inputs as one. A join's condition names columns uniquely, even if both sides read one table."""
    from pyspark.sql.functions import lit

    if isinstance(node, Join):
        if node.kind == "cross" or (node.kind == "inner" and node.condition is None):
            return left.crossJoin(right)
        on = lit(True) if node.condition is None else spark_column(node.condition)
        return left.join(right, on, SPARK_JOINS[node.kind])
    if node.kind == "union":
        frame = left.union(right) if node.all else left.union(right).distinct()
    elif node.kind == "intersect":
        frame = left.intersectAll(right) if node.all else left.intersect(right)
    else:
        frame = left.exceptAll(right) if node.all else left.subtract(right)
    return frame.toDF(*_names(node))


def _sort_column(key: SortKey) -> SparkColumn:
    column = spark_column(key.expression)
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _grouped(node: Aggregate, frame: DataFrame) -> GroupedData:
    """The rows in their groups."""
    keys = [spark_column(key) for key in node.keys]
    if node.grouping_sets is None:
        return frame.groupBy(*keys)
    return frame.groupingSets([[keys[i] for i in members] for members in node.grouping_sets], *keys)


def without_grouping_columns(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The last columns of an aggregation, called `names`.

    Spark puts the keys before the items, unless spark.sql.retainGroupColumns is false; a key may have the name of an
    item, so the columns are told apart by position.
    """
    extra = len(frame.columns) - len(names)
    if not extra:
        return frame
    hidden = [f"__sqlext_key_{i}" for i in range(extra)]
    return frame.toDF(*hidden, *names).select(*_columns(names))


def _columns(names: Sequence[str]) -> list[SparkColumn]:
    from pyspark.sql.functions import col

    return [col(quoted(name)) for name in names]


def spark_item(item: NamedExpr) -> SparkColumn:
    """`expression AS name`."""
    return spark_column(item.expression).alias(item.column.spark_name)


def _names(node: LogicalPlan) -> tuple[str, ...]:
    return tuple(column.spark_name for column in node.output_columns)
