"""The physical window union: one Arrow-block exchange for all inputs, one sort, one pass over the sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

from sqlext_planner.exchange.partitioning.choice import Demand, PartitionedExec, Partitioning, choose_partitioning
from sqlext_planner.exchange.partitioning.loads import SampledInput
from sqlext_planner.expressions.nodes import Column, Expression, Literal, ShownCall
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached
from sqlext_planner.window.nodes import WindowUnion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.scatter import Router

    from sqlext_planner.catalog import Catalog
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.driver import Wire
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing
    from sqlext_planner.window.inputs import WindowInputs


@dataclass(frozen=True)
class WindowUnionExec(PartitionedExec, NodeExec):
    """Computes the windows of a WindowUnion node.

    Every input is cut into Arrow blocks by the hash of its partition keys (or read from Parquet by the scatter
    task itself), the blocks go through one Spark shuffle, and each partition is sorted and swept in Python.
    """

    node: WindowUnion

    is_extension = True

    def shown_calls(self) -> Iterator[ShownCall]:
        return (call.shown(f" OVER {window.name}") for window in self.node.windows for call in window.calls)

    def expressions(self) -> Iterator[Expression]:
        yield from self.node.partition_by
        if self.node.order_by is not None:
            yield self.node.order_by
        yield from self.node.further
        yield from (arg for call in self.shown_calls() for arg in call.args)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for key, order, union or argument types that do not fit, UnsupportedError for a
        column that Spark cannot hand to Python, ConfigurationError if the workers lack the package."""
        from sqlext_planner.exchange.wire import row_by_row
        from sqlext_planner.window.inputs import WindowInputs

        frames = [execute_cached(plan, context) for plan in self.inputs]
        inputs = WindowInputs.of(self, frames)
        wire = self._shipped(inputs, context)
        operator = inputs.operator(context.config, ansi=str(context.spark.conf.get(ANSI)).lower() == "true")
        size = row_by_row(wire.sizes[0], frames[0].schema, inputs.result_schema)
        return wire.run(operator, inputs.result_schema, size)

    def _shipped(self, inputs: WindowInputs, context: ExecutionContext) -> Wire:
        """The rows of all inputs: FROM rows to one partition, or also as candidates, others to all that need them."""
        from sqlext_planner.exchange.driver import Shipment, ship

        partitioning = self.partitioning
        routers = window_routers(inputs.spec, partitioning, len(inputs.frames))
        shipments = [
            Shipment(tag, frame, inputs.keys, router)
            for tag, (frame, router) in enumerate(zip(inputs.frames, routers, strict=True))
        ]
        return ship(shipments, context, None if partitioning is None else partitioning.planned)

    def details(self) -> dict[str, Any]:
        found = super().details()
        if self.partitioning is None and not any(key.references for key in self.node.partition_by):
            found["one group"] = "no key tells rows apart: one task computes all of them"
        return found


ANSI = "spark.sql.ansi.enabled"


def window_partitioning(node: WindowUnion, catalog: Catalog | None, config: Config) -> Partitioning | None:
    """The partitioning of a node's exchange; None: by the hash of the keys.

    Raises UnsupportedError for a hint that the windows do not allow.
    """
    return choose_partitioning(_inputs(node), window_demand(node), catalog, config, node.partitioner)


def window_placing(node: WindowUnion, catalog: Catalog | None, config: Config) -> StreamPlacing | None:
    """How the keys of a node over streams have places; None: each in one bucket, by its hash.

    Raises UnsupportedError for a hint that the windows do not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.stream_placing import TABLES, stream_placing

    demand = window_demand(node)
    steady = None if all(child.is_streaming for child in (node.source, *node.unions)) else TABLES
    if demand.reach is None:
        steady = f"{demand.unbounded}, so that a bucket that gets a key later lacks rows"
    return stream_placing(demand, catalog, config, node.partitioner, steady)


def window_demand(node: WindowUnion) -> Demand:
    """What FROM rows need: rows in the reach of all windows, and other FROM rows if a window shows them."""
    from sqlext_operators.window.reach import time_reach

    order = _order(node)
    windows = tuple(
        Window(
            group.frame.resolve(None if order is None else _dtype(node, order)),
            (),
            tuple(Call(call.function, (), "", call.constants) for call in group.calls),
        )
        for group in node.windows
    )
    # over an order of an unknown type, it is unknown what a distance counts
    is_known = order is not None and _dtype(node, order) is not None
    reach = time_reach(WindowUnionSpec((), None, (), windows)) if is_known else None
    return Demand(
        reach,
        owned_copies=any(not group.frame.instance_not_in_window for group in node.windows),
        unbounded="a window has no bound in time: its rows are counted, or it has no start or no end",
    )


def _inputs(node: WindowUnion) -> list[SampledInput]:
    order = _order(node)
    wanted = (*node.partition_by, *(() if order is None else (order,)))
    dtypes = tuple(_dtype(node, item) for item in wanted)
    found = []
    for plan in (node.source, *node.unions):
        theirs: dict[Column, Expression] = dict(zip(node.source.output_columns, plan.output_columns, strict=False))
        keys = tuple(item.substitute(theirs) for item in node.partition_by)
        found.append(SampledInput(plan, keys, None if order is None else order.substitute(theirs), dtypes))
    return found


def _order(node: WindowUnion) -> Expression | None:
    """ORDER BY a constant orders nothing."""
    return None if isinstance(node.order_by, Literal) else node.order_by


def _dtype(node: WindowUnion, item: Expression) -> str | None:
    return item.result_type(node.source.dtypes)


def window_routers(spec: WindowUnionSpec, partitioning: Partitioning | None, inputs: int) -> tuple[Router, ...]:
    """One router for each input, FROM first: by the hash of the keys; by a placement, FROM rows to one partition, or
    also as candidates of others, and all other rows to all that need them."""
    from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
    from sqlext_operators.exchange.scatter import KeyRouter
    from sqlext_operators.window.reach import time_reach

    if partitioning is None or partitioning.placement is None:
        return (KeyRouter(spec.keys),) * inputs
    rows = PlacedRows(partitioning.placement, time_reach(spec) or (0, 0))
    shows = partitioning.copies == "all" or any(not window.frame.instance_not_in_window for window in spec.windows)
    first = PlacedRouter(spec.keys, spec.order, rows, "both" if shows else "owned")
    return (first, *(PlacedRouter(spec.keys, spec.order, rows, "copies"),) * (inputs - 1))
