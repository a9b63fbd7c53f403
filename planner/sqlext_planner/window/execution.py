"""The physical window union: one Arrow-block exchange for all inputs, one sort, one pass over the sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.expressions.nodes import Expression, ShownCall
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, Rival, execute_cached
from sqlext_planner.window.nodes import WindowUnion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.exchange.driver import Wire
    from sqlext_planner.exchange.partitioning.chosen import Partitioning
    from sqlext_planner.window.inputs import WindowInputs


@dataclass(frozen=True)
class WindowUnionExec(NodeExec):
    """Computes the windows of a WindowUnion node.

    Every input is cut into Arrow blocks by the hash of its partition keys (or read from Parquet by the scatter
    task itself), the blocks go through one Spark shuffle, and each partition is sorted and swept in Python.
    """

    node: WindowUnion
    partitioning: Partitioning | None = field(default=None, compare=False, kw_only=True, repr=False)

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
        from sqlext_planner.exchange.sizes import row_by_row
        from sqlext_planner.window.inputs import WindowInputs

        frames = [execute_cached(plan, context) for plan in self.inputs]
        inputs = WindowInputs.of(self, frames)
        wire = self._shipped(inputs, context)
        operator = inputs.operator(context.config, ansi=str(context.spark.conf.get(ANSI)).lower() == "true")
        size = row_by_row(wire.sizes[0], frames[0].schema, inputs.result_schema)
        return wire.run(operator, inputs.result_schema, size)

    def _shipped(self, inputs: WindowInputs, context: ExecutionContext) -> Wire:
        """The rows of all inputs: FROM rows to one partition, or also as candidates, the others to all that need
        them."""
        from sqlext_planner.exchange.driver import Shipment, ship
        from sqlext_planner.window.partitioning import window_routers

        found = self.partitioning
        routers = window_routers(inputs.spec, found, len(inputs.frames))
        shipments = [
            Shipment(tag, frame, inputs.keys, router)
            for tag, (frame, router) in enumerate(zip(inputs.frames, routers, strict=True))
        ]
        return ship(shipments, context, None if found is None else found.planned)

    def choices(self) -> dict[str, tuple[Rival, ...]]:
        return super().choices() | ({} if self.partitioning is None else {"partitioner": self.partitioning.rivals})

    def details(self) -> dict[str, Any]:
        found = super().details() | ({} if self.partitioning is None else self.partitioning.lines)
        if self.partitioning is None and not any(key.references for key in self.node.partition_by):
            found["one group"] = "no key tells rows apart: one task computes all of them"
        return found

    def label(self) -> str:
        return f"{type(self).__name__}{self.node.label().removeprefix('WindowUnion')}"


ANSI = "spark.sql.ansi.enabled"
