"""From logical to physical plans: an ordered list of strategies; the first that answers wins, plain Spark is last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sqlext_planner.catalog import Catalog, TableInfo
from sqlext_planner.config import Config
from sqlext_planner.early.nodes import EarlyAggregate, EarlyWindows
from sqlext_planner.errors import InternalError, SqlExtError, UnsupportedError
from sqlext_planner.exchange.arrow_scan import ArrowScanExec
from sqlext_planner.exchange.wire import dtype_bytes
from sqlext_planner.expressions.nodes import Column, Compare, Literal, NamedExpr, conjuncts
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.period_algebra.nodes import PeriodAlgebra
from sqlext_planner.relational.joins import Join, JoinKind
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Project, Scan, SparkRelation, SubqueryAlias
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.plan_patterns import inferred_keys
from sqlext_planner.relational.spark_exec import SPARK_NODES, SparkExec, by_spark
from sqlext_planner.relational.streams import input_error, stream_spans
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.window.group_aggregate import GroupAggregate, GroupAggregateExec
from sqlext_planner.window.nodes import WindowUnion

if TYPE_CHECKING:
    from sqlext_planner.umjoin.strategies import StrategyChoice


@dataclass
class Planner:
    """What a strategy may ask for: the settings, the catalog, and the physical plan of a child."""

    config: Config
    catalog: Catalog | None = None
    #: The choice for a multi-way join together with the aggregate above it, by id(join).
    decided: dict[int, tuple[UMJoin, StrategyChoice]] = field(default_factory=dict)
    #: The whole plan.
    root: LogicalPlan | None = None
    #: Why Spark refuses the whole statement, so that no operator of ours runs.
    refused: str | None = None
    _known: dict[int, tuple[LogicalPlan, PhysicalPlan]] = field(default_factory=dict)
    _telling: dict[int, tuple[PhysicalPlan, PhysicalPlan]] = field(default_factory=dict)

    def later(self, node: LogicalPlan) -> PhysicalPlan:
        """The physical plan of `node`; a node shared by two parents gets one physical node."""
        known = self._known.get(id(node))
        if known is None:
            known = (node, self._first_answer(node))
            self._known[id(node)] = known
        return known[1]

    def stream_obstacle(self) -> str | None:
        """Why Spark's version or settings do not suit the state of our operators over streams."""
        return self.refused or (None if self.catalog is None else self.catalog.stream_obstacle())

    def marked(self, child: PhysicalPlan) -> PhysicalPlan:
        """`child`, marked as ArrowScanExec where it only selects rows and columns of plain Parquet files; its scan of
        any other table tells who reads it."""
        scan = _plain_scan(child)
        if scan is None or scan.info is None:
            return child
        if self.config.arrow_scan != "false" and scan.info.format == "parquet":
            rows = "" if scan.info.rows is None else f" of {scan.info.rows} rows"
            return ArrowScanExec(child, why=f"plain Parquet{rows}: {_BY_TASKS}")
        if scan.info.left_to_spark is None:
            return child
        if id(child) not in self._telling:
            if id(scan) not in self._telling:  # one node for all that read it, as one reading of the table
                telling = replace(scan, read_by=cache(partial(_reader, self.config, scan.info.left_to_spark)))
                self._telling[id(scan)] = (scan, telling)
            telling_scan = self._telling[id(scan)][1]
            told = child.transform_up(lambda node: telling_scan if node is scan else node)
            self._telling[id(child)] = (child, told)
        return self._telling[id(child)][1]

    def _first_answer(self, node: LogicalPlan) -> PhysicalPlan:
        for strategy in STRATEGIES:
            physical = strategy(node, self)
            if physical is not None:
                known = physical.source() is node or physical.computes is not None
                return physical if known else replace(physical, computes=node)
        raise InternalError(f"no strategy for {type(node).__name__}")


#: A strategy answers for one node, asks `Planner.later` for its children, and returns None for "not mine".
Strategy = Callable[[LogicalPlan, Planner], PhysicalPlan | None]


def window_streams(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """WindowUnion over a stream -> WindowStreamExec: one exchange into a stateful operator."""
    if not isinstance(node, WindowUnion) or not node.is_streaming:
        return None
    from sqlext_planner.window.execution import window_placing
    from sqlext_planner.window.stream_execution import WindowStreamExec, retention

    placing = window_placing(node, planner.catalog, planner.config)
    return WindowStreamExec(**_stream_fields(node, planner), placing=placing, why=retention(node))


def early_windows(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """EarlyWindows over a WindowUnion -> EarlyWindowsExec: the window's exchange, an operator that answers twice."""
    if not isinstance(node, EarlyWindows):
        return None
    from sqlext_planner.early_windows.execution import EarlyWindowsExec, check_windows, retention

    if not isinstance(node.child, WindowUnion):
        raise InternalError(f"early answers over {type(node.child).__name__}")
    check_windows(node, node.child)
    return EarlyWindowsExec(**_stream_fields(node.child, planner), early=node, why=retention(node, node.child))


def _stream_fields(node: WindowUnion, planner: Planner) -> dict[str, Any]:
    """What all physical windows over streams have."""
    from sqlext_planner.window.stream_execution import delays

    inputs = tuple(map(planner.later, node.children))
    return {"node": node, "inputs": inputs, "stream_spans": stream_spans(node.children), "delays": delays(node, inputs)}


def window_unions(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """WindowUnion -> WindowUnionExec: one Arrow-block exchange for all inputs, one sort, one pass."""
    if not isinstance(node, WindowUnion):
        return None
    # Imported here: plans without the extension need none of the exchange's modules (planning time).
    from sqlext_planner.window.execution import WindowUnionExec, window_partitioning

    inputs = tuple(planner.marked(planner.later(child)) for child in node.children)
    calls = sum(len(window.calls) for window in node.windows)
    why = f"one exchange and one sort for {len(inputs)} inputs, {len(node.windows)} windows and {calls} calls"
    found = window_partitioning(node, planner.catalog, planner.config)
    return WindowUnionExec(node, inputs, partitioning=found, why=why)


def group_aggregates(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """GroupAggregate -> GroupAggregateExec: one Arrow-block exchange by the keys, then Spark's aggregates if any."""
    if not isinstance(node, GroupAggregate):
        return None

    beside = f", and Spark's aggregation for {len(node.items)} more" if node.items else ""
    why = f"one exchange and one pass over each group for {len(node.calls)} calls{beside}"
    child = planner.marked(planner.later(node.child))
    return GroupAggregateExec(node, (child,), why=why)


def last_joins(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """LastJoin -> LastJoinExec, with a strategy for each right side."""
    if not isinstance(node, LastJoin):
        return None
    # Imported here, like the window union's: plans without the extension need none of it.
    from sqlext_planner.last_join.execution import (
        LastJoinExec,
        choose_strategies,
        is_one_exchange,
        last_join_partitioning,
        strategy_rivals,
    )

    inputs = tuple(map(planner.later, node.children))
    if node.is_streaming:
        from sqlext_planner.last_join.execution import stream_strategies

        strategies, why = stream_strategies(node)
        why += _told_keys(node, planner)
        return LastJoinExec(node, inputs, strategies=strategies, why=why)
    scans = map(_plain_scan, inputs[1:])  # the sizes are those of their tables, before any filter
    sizes = [None if scan is None or scan.info is None else scan.info.bytes for scan in scans]
    strategies, why = choose_strategies(node, sizes, planner.config)
    why += _told_keys(node, planner)
    rivals = strategy_rivals(strategies, sizes, planner.config)
    shipped = [strategy in ("exchange", "auto") for strategy in strategies]
    inputs = tuple(
        planner.marked(child) if ships else child for child, ships in zip(inputs, (any(shipped), *shipped), strict=True)
    )
    partitioning = None
    if all(strategy == "exchange" for strategy in strategies) and is_one_exchange(node):
        partitioning = last_join_partitioning(node, planner.catalog, planner.config)
    return LastJoinExec(node, inputs, strategies=strategies, partitioning=partitioning, why=why, rivals=rivals)


def early_aggregates(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """EarlyAggregate -> EarlyAggregateExec: totals of each task into a stateful operator."""
    if not isinstance(node, EarlyAggregate):
        return None
    from sqlext_planner.early.stream_execution import early_stream

    return early_stream(node, planner.later(node.left), planner.later(node.right))


def interval_streams(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """IntervalJoin over a stream -> IntervalStreamExec: one exchange into a stateful operator."""
    if not isinstance(node, IntervalJoin) or not node.is_streaming:
        return None
    from sqlext_planner.interval_join.partitioning import interval_placing
    from sqlext_planner.interval_join.stream_execution import interval_stream

    placing = interval_placing(node, planner.catalog, planner.config)
    return interval_stream(node, planner.later(node.left), planner.later(node.right), placing)


def plain_stream_joins(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """Join of two streams near in time -> IntervalStreamExec, or Spark's join with the reason."""
    if not isinstance(node, Join) or not node.is_streaming:
        return None
    if planner.config.streams == "spark" or planner.config.interval_join_strategy == "spark":
        return None
    from sqlext_planner.interval_join.partitioning import interval_placing
    from sqlext_planner.interval_join.stream_execution import plain_stream_join

    placing = partial(interval_placing, catalog=planner.catalog, config=planner.config)
    inputs = planner.later(node.left), planner.later(node.right)
    return plain_stream_join(node, inputs, planner.root, planner.stream_obstacle, placing)


def interval_joins(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """IntervalJoin -> IntervalJoinExec; Spark's own join where it is small or the setting says so."""
    if not isinstance(node, IntervalJoin):
        return None
    # Imported here, like the window union's: plans without the extension need none of it.
    from sqlext_planner.interval_join.choice import choose_strategy, strategy_rivals
    from sqlext_planner.interval_join.execution import IntervalJoinExec
    from sqlext_planner.interval_join.partitioning import interval_partitioning

    sides = planner.later(node.left), planner.later(node.right)
    infos = [_sized_info(_plain_scan(side), node, planner) for side in sides]
    strategy, why = choose_strategy(node, infos[0], infos[1], planner.config)
    why += _told_keys(node, planner)
    rivals = strategy_rivals(node, infos[0], infos[1], planner.config, strategy)
    way = "Spark's join" if strategy == "spark" else planner.config.interval_join_algorithm
    facts: dict[str, Any] = {"runs": f"IntervalJoin ({way})", "why": why, "rivals": rivals}
    if strategy != "spark":
        inputs = tuple(planner.marked(side) for side in sides)
        # By size when it runs, it is a broadcast as a rule: then a sample would be for nothing.
        ships = strategy == "exchange" or (strategy == "auto" and planner.config.partitioner != "auto")
        found = interval_partitioning(node, planner.catalog, planner.config) if ships else None
        facts |= {} if found is None else {"partitioning": found[0], "owner": found[1]}
        return IntervalJoinExec(node, inputs, strategy=strategy, **facts)
    kept = tuple(NamedExpr(field.column, field.column) for field in node.output if field.column != node.count)
    kind: JoinKind = "inner" if node.kind == "count" else node.kind
    joined = by_spark(lambda left, right: Join(left, right, kind, node.condition), *sides, **facts)
    if node.count is not None:
        kept += (NamedExpr(Literal("1L", dtype="bigint"), node.count),)
    return joined if node.output == joined.output else by_spark(lambda rows: Project(kept, rows), joined)


def period_algebra(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """PeriodAlgebra -> PeriodAlgebraExec: one Arrow-block exchange by the keys, one sort by start, one pass."""
    if not isinstance(node, PeriodAlgebra):
        return None
    from sqlext_planner.period_algebra.execution import PeriodAlgebraExec

    inputs = tuple(planner.marked(planner.later(child)) for child in node.children)
    why = f"one exchange and one sort for {len(inputs)} input{'s' if len(inputs) > 1 else ''}, one pass over each key"
    return PeriodAlgebraExec(node, inputs, why=why)


def umjoins(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """UMJoin, and Aggregate over one -> Catalyst's binary joins, one operator behind one exchange, or aggregates before
    the joins, by cost."""
    if not isinstance(node, (Aggregate, UMJoin)) or (isinstance(node, Aggregate) and not node.collect(UMJoin)):
        return None
    from sqlext_planner.umjoin.strategies import plan_aggregate, plan_stream, plan_umjoin

    if node.is_streaming:  # Spark computes aggregates of streams, which keep state of their own
        return plan_stream(node, planner) if isinstance(node, UMJoin) else None
    return plan_umjoin(node, planner) if isinstance(node, UMJoin) else plan_aggregate(node, planner)


def _told_keys(node: LastJoin | IntervalJoin, planner: Planner) -> str:
    """What a user should know of the types of a join's keys, of which only a DOUBLE may be inferred."""
    if not any(item.dtype == "double" for scan in node.collect(Scan) for item in scan.fields):
        return ""

    sides = node.matches if isinstance(node, LastJoin) else (node,)
    return inferred_keys(node, (key for side in sides for key in (*side.left_keys, *side.right_keys)), planner.catalog)


def _sized_info(scan: SparkExec | None, node: IntervalJoin, planner: Planner) -> TableInfo | None:
    """What is known about a scanned table: with the bytes of the columns that are read, if its number of rows is known;
    with the catalog's estimate, if small inputs would be left to Spark."""
    from sqlext_planner.interval_join.choice import may_leave

    if scan is None or scan.info is None:
        return None
    if scan.info.rows is not None and scan.info.bytes is not None:
        width = sum(dtype_bytes(field.dtype) for field in scan.output)
        return replace(scan.info, bytes=min(scan.info.bytes, scan.info.rows * width))
    if scan.info.bytes is not None or planner.catalog is None or not may_leave(node):
        return scan.info
    assert isinstance(scan.node, Scan)
    return replace(scan.info, bytes=planner.catalog.table_bytes(scan.node.table))


_BY_TASKS = "the scatter task reads the files itself, unless their footers or a cluster rule it out"


def _reader(config: Config, left_to_spark: Callable[[], str | None]) -> str:
    """Who reads a table for an operator of ours, and why."""
    if config.arrow_scan == "false":
        return "Spark, since sqlext.exchange.arrowScan is false"
    reason = left_to_spark()
    return f"tasks, as plain Parquet: {_BY_TASKS}" if reason is None else f"Spark, since {reason}"


def _plain_scan(plan: PhysicalPlan) -> SparkExec | None:
    """The scan below filters by comparison, selected columns, constants and aliases; None for any other plan."""
    match plan:
        case SparkExec(Scan()):
            return plan
        case SparkExec(SubqueryAlias(), (child,)):
            return _plain_scan(child)
        case SparkExec(Project(items), (child,)) if all(
            isinstance(item.expression, Column) or not item.expression.references for item in items
        ):
            return _plain_scan(child)
        case SparkExec(Filter(condition), (child,)) if all(isinstance(term, Compare) for term in conjuncts(condition)):
            return _plain_scan(child)
    return None


def plain_spark(node: LogicalPlan, planner: Planner) -> PhysicalPlan | None:
    """The relational core, node by node, through the public DataFrame API; Catalyst plans it further."""
    if type(node) not in SPARK_NODES:
        return None
    info = planner.catalog.table(node.table) if isinstance(node, Scan) and planner.catalog is not None else None
    why = ""
    if isinstance(node, (Join, Filter, SparkRelation)):
        from sqlext_planner.interval_join.rules import reason

        why = reason(node)
    asked = isinstance(node, Join) and node.sweep is False
    return SparkExec(node, tuple(map(planner.later, node.children)), info, why=why, fallback="" if asked else why)


#: First match wins.
STRATEGIES: tuple[Strategy, ...] = (
    # Our own operators first: no plain Spark node computes an extension node. Those on streams before those on tables.
    early_windows,
    window_streams,
    window_unions,
    group_aggregates,
    last_joins,
    early_aggregates,
    interval_streams,
    interval_joins,
    period_algebra,
    umjoins,
    plain_stream_joins,
    # Last, so that every query that Spark can run does run.
    plain_spark,
)


def stream_refusal(node: LogicalPlan) -> SqlExtError | None:
    """Why an operator of ours cannot be computed over the streams that it reads; None if it can."""
    match node:
        case EarlyAggregate() | EarlyWindows():
            return input_error(node)
        case WindowUnion():
            from sqlext_planner.window.stream_execution import refusal as window_refusal

            return window_refusal(node)
        case LastJoin():
            from sqlext_planner.last_join.execution import refusal as last_join_refusal

            return last_join_refusal(node)
        case UMJoin():
            from sqlext_planner.umjoin.streams import refusal as umjoin_refusal

            return umjoin_refusal(node)
        case IntervalJoin():
            from sqlext_planner.interval_join.streams import refusal as interval_join_refusal

            return interval_join_refusal(node)
    return UnsupportedError(f"{node.operator_name} cannot read a stream yet", condition="stream-not-supported")


def plan_physical(
    plan: LogicalPlan, config: Config, catalog: Catalog | None = None, refused: str | None = None
) -> PhysicalPlan:
    """The physical plan of an optimized logical plan. Starts no Spark.

    `catalog` says which files a scanned table has; without it scans read through Spark. `refused` is why Spark refuses
    the whole statement.
    Raises InternalError for a node that no strategy knows.
    """
    return Planner(config, catalog, root=plan, refused=refused).later(plan)


def contains_extension(physical: PhysicalPlan) -> list[str]:
    """Names of the extension nodes in the plan, each once, in walk order; empty: plain Spark can run the text."""
    names = (node.node_name() for node in physical.walk() if node.is_extension)
    return list(dict.fromkeys(names))
