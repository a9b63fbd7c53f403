"""The physical interval join: pairs found by windows over sorted values.

The rows of an interval join whose residual Spark tests: candidate pairs, Spark's filter, and what has no match.

The three steps are in one task, one behind the other: no pair is sent anywhere. Rows come to the completing step in the
order in which the operator gave them, since projections and filters keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW, IntervalBroadcastSpec

from sqlext_planner.errors import InternalError
from sqlext_planner.exchange.arrow_scan import ArrowScan, reading_files, scan_of, task_rows
from sqlext_planner.exchange.driver import Reporting, Shipment, Wire, memory_bytes, ship, size_of
from sqlext_planner.exchange.partitioning.choice import PartitionedExec, Partitioning
from sqlext_planner.exchange.wire import arrow_schema, as_months, from_months, months_schema
from sqlext_planner.interval_join.choice import TASK_BYTES, IntervalJoinStrategy, final_strategy
from sqlext_planner.interval_join.inputs import TypedJoin, residual_line, with_row
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoin
from sqlext_planner.interval_join.partitioning import Routing
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached, quoted, spark_column
from sqlext_planner.relational.spark_exec import SPARK_JOINS
from sqlext_planner.spark.session import cores
from sqlext_planner.spark.tables import over_sources
from sqlext_planner.spark.versions import arrow_table
from sqlext_planner.spark.workers import broadcast_function, check_workers, worker_function

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.interval_join.operator import IntervalOperatorSpec
    from sqlext_operators.interval_join.passes import Side


#: Every task sorts the small side, and two tasks a core balance their load better than one. That pays off where the big
#: side has more than this many times the small side's rows.
_ROWS_PER_SMALL = 8
#: With at most this many tasks a core, each task reads the small side's files itself, which saves a collect and a
#: broadcast (0.15 s for 1M rows); more tasks would read them too often.
_READING_TASKS = 2


def join_by_broadcast(typed: TypedJoin, side: Literal["left", "right"], context: ExecutionContext) -> DataFrame:
    """The join's rows: the other side's tasks join their own rows with all rows of `side`, without a shuffle.

    Where both sides are plain Parquet files and tasks are few, each task reads the files of `side` itself. Otherwise
    `side` is collected, which runs a job at once, as Spark's own broadcast does when it plans. Raises
    ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.interval_join.operator import broadcast_interval_join, broadcast_parquet, join_parquet

    check_workers(context.spark)
    big, small = (typed.right, typed.left) if side == "left" else (typed.left, typed.right)
    spec = IntervalBroadcastSpec(typed.spec, side, arrow_schema(big.schema), context.config.output_batch_rows)
    reporting = Reporting.of(context, "alone")
    files = scan_of(small, context, 1)
    scan = _big_scan(big, files, context)
    if scan is None:
        entry = broadcast_function(
            reporting.entry(broadcast_interval_join, spec), _collected(small, files), context.spark
        )
        # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
        rows = over_sources(big.toDF(*(f"c{place}" for place in range(len(big.columns)))), [small])
    else:
        count = len(scan.scan.tasks)
        rows = over_sources(task_rows(count, [scan], context), [small])
        if files is not None and count <= _READING_TASKS * cores(context.spark):
            entry = worker_function(
                reporting.entry(join_parquet, spec, scan.scan, files.scan, arrow_schema(small.schema))
            )
        else:
            entry = broadcast_function(
                reporting.entry(broadcast_parquet, spec, scan.scan), _collected(small, files), context.spark
            )
    schema = typed.result if typed.pairs is None else typed.pairs
    found = from_months(rows.mapInArrow(reporting.function(entry), months_schema(schema)), schema)
    return found if typed.pairs is None else completed_rows(found, typed, typed.result, context)


def _big_scan(big: DataFrame, small: ArrowScan | None, context: ExecutionContext) -> ArrowScan | None:
    """How tasks read the big side; None if Spark reads it."""
    scan = scan_of(big, context, cores(context.spark), TASK_BYTES)
    if scan is not None and (small is None or scan.rows > _ROWS_PER_SMALL * small.rows):
        scan = scan_of(big, context, 2 * cores(context.spark), TASK_BYTES)
    return scan


def _collected(frame: DataFrame, files: ArrowScan | None) -> bytes:
    """All rows of a frame with the types that Spark hands to Python, as an Arrow IPC stream."""
    from sqlext_operators.exchange.parquet_scan import read_all

    schema = arrow_schema(frame.schema)
    if files is not None:
        with reading_files():
            return _stream(read_all(files.scan, schema))
    table = arrow_table(frame)
    return _stream(table.rename_columns(schema.names).cast(schema))


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def join_by_exchange(
    typed: TypedJoin, context: ExecutionContext, partitioning: Partitioning | None = None, owner: Side = "left"
) -> DataFrame:
    """The join's rows: both sides are routed as planned (None: by key, hot keys by tile), and each partition is joined
    alone.

    Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.interval_join.operator import IntervalOperatorSpec

    spec = typed.spec
    sizes = [size_of(frame, context) for frame in (typed.left, typed.right)]
    routing = Routing.of(typed, sizes, partitioning, owner, context)
    shipments = [
        Shipment(tag, typed.frame(side), spec.side(side).keys, routing.router(spec, side))
        for tag, side in enumerate(SIDES)
    ]
    wire = ship(shipments, context, routing.partitions)
    operator = IntervalOperatorSpec(
        spec,
        typed.schemas["left"],
        typed.schemas["right"],
        memory_bytes=memory_bytes(context.config),
        batch_rows=context.config.output_batch_rows,
        tiles=routing.tiles,
    )
    size = sizes[0] if spec.kind in ("semi", "anti", "count") else None
    if typed.pairs is not None:
        return _tested(wire, operator, typed, context)
    if routing.tiles is None or spec.kind == "inner":
        return wire.run(operator, typed.result, size)
    if spec.kind == "count":
        return _summed(wire.run(operator, _with_rows(typed.result), size), typed)
    decided = wire.run(replace(operator, part="decided"), typed.result, size)
    copies = wire.run(replace(operator, part="undecided"), _with_rows(typed.result), size)
    return _merged(decided, copies, typed)


def _tested(wire: Wire, operator: IntervalOperatorSpec, typed: TypedJoin, context: ExecutionContext) -> DataFrame:
    """The join's rows where Spark tests the residual; undecided copies once more, as in `_merged`."""
    assert typed.pairs is not None
    if operator.tiles is None:
        return completed_rows(wire.run(operator, typed.pairs, None), typed, typed.result, context)
    decided = wire.run(replace(operator, part="decided"), typed.pairs, None)
    copies = wire.run(replace(operator, part="undecided"), with_row(typed.pairs), None)
    return _merged(
        completed_rows(decided, typed, typed.result, context),
        completed_rows(copies, typed, _with_rows(typed.result), context, copies=True),
        typed,
    )


def _with_rows(schema: StructType) -> StructType:
    """The operator's output with tiles: two more columns, for rows that several tiles decide together."""
    from pyspark.sql.types import LongType, StructField, StructType

    nullable = [
        StructField(item.name, item.dataType, True, item.metadata) if item.name == COUNT else item for item in schema
    ]
    return StructType([*nullable, StructField(ROW, LongType()), StructField(MATCHES, LongType())])


def _summed(frame: DataFrame, typed: TypedJoin) -> DataFrame:
    """Counts of copies as they are, one row each: a sum over the counts is the same, and no shuffle is needed."""
    from pyspark.sql.functions import coalesce, col, lit

    count = coalesce(col(COUNT), col(MATCHES), lit(0))
    payload = [col(quoted(item.name)) for item in typed.result if item.name != COUNT]
    return frame.select(*payload, count.alias(COUNT)).filter(col(COUNT) > 0)


def _merged(decided: DataFrame, copies: DataFrame, typed: TypedJoin) -> DataFrame:
    """The rows that one tile decides alone, and those that all copies of a row decide together.

    Both parts read one shuffle (Spark reuses the exchange). The operator runs for each; for copies it makes no pairs.
    """
    from pyspark.sql.functions import col, first, sum

    columns = [col(quoted(item.name)) for item in typed.result]
    rows = copies.groupBy(ROW).agg(
        sum(MATCHES).alias(MATCHES), *(first(c).alias(i.name) for c, i in zip(columns, typed.result, strict=True))
    )
    wanted = col(MATCHES) > 0 if typed.spec.kind == "semi" else col(MATCHES) == 0
    return decided.select(*columns).unionAll(rows.filter(wanted).select(*columns))


@dataclass(frozen=True)
class IntervalJoinExec(PartitionedExec, NodeExec):
    """Computes an IntervalJoin node.

    With a `partitioning` the rows of `owner` are owned; those of the other side go to all members of a team. `auto` may
    leave small inputs to Spark. Spark also compares the values that the operators do not (types that Spark
    converts with a loss, or does not hand to Python), whatever the strategy.
    """

    node: IntervalJoin
    strategy: IntervalJoinStrategy = field(kw_only=True)
    owner: Side = field(default="left", compare=False, kw_only=True, repr=False)

    is_extension = True

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for values that do not compare or a distance that does not fit their type,
        ConfigurationError if the workers lack the package."""
        left, right = (execute_cached(child, context) for child in self.inputs)
        typed: TypedJoin | None = (
            None if self.strategy == "spark" else TypedJoin.of(self.node, left, right, context.config)
        )
        if typed is None and self.strategy != "spark":
            context.left_to_spark("the operators do not compare values of these types as Spark does", self.node.place)
        if typed is None:
            return join_by_spark(self.node, left, right)
        strategy = final_strategy(self, typed, context)
        if strategy == "spark":
            return join_by_spark(self.node, left, right)
        if strategy == "exchange":
            return join_by_exchange(typed, context, self.partitioning, self.owner)
        return join_by_broadcast(typed, "left" if strategy == "broadcast left" else "right", context)

    def label(self) -> str:
        node = self.node
        on = f" ON {' AND '.join(node.key_terms)}" if node.left_keys else ""
        values = [f"{name} = {value}" for side in SIDES for name, value in node.values_of(side).items()]
        payload = ", ".join(str(column) for side in node.passed_on for column in side)
        how = f"[{self.strategy}] {node.kind}{on} OVER {', '.join(values)} PAYLOAD [{payload}]"
        return f"{type(self).__name__}: {how}"

    def details(self) -> dict[str, Any]:
        passes = {f"pass {number}": str(item) for number, item in enumerate(self.node.passes, 1)}
        tested = residual_line(self.node)
        return passes | ({} if tested is None else {"residual": tested}) | super().details()


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


def completed_rows(
    candidates: DataFrame, typed: TypedJoin, result: StructType, context: ExecutionContext, *, copies: bool = False
) -> DataFrame:
    """The join's rows, with the fields of `result`, from its candidate pairs; of undecided `copies` of rows, the copies
    with ROW and MATCHES."""
    from pyspark.sql.functions import col, expr
    from sqlext_operators.interval_join.output import NUMBER, CompletionSpec, completed

    assert typed.test is not None
    payload = [typed.spec.left.payload, typed.spec.right.payload if typed.spec.pairs else ()]
    spec = CompletionSpec.of(typed.spec, tuple(item.name for item in result), undecided=copies)
    passed = candidates.filter(expr(f"{quoted(NUMBER)} < 0 OR {typed.test.sql()}"))
    names = [*payload[0], *payload[1], NUMBER, *([ROW] if copies else [])]
    rows = as_months(passed.select(*(col(quoted(name)) for name in names)))
    entry = worker_function(Reporting(context.places(), "alone", None).entry(completed, spec))
    found = rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(entry, months_schema(result))
    return from_months(found, result)
