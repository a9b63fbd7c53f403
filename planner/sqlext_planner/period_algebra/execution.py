"""The physical period algebra: one Arrow-block exchange by the keys, one sort by start, one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.period_algebra.nodes import PeriodAlgebra
from sqlext_planner.relational.physical_plan import ExecutionContext, NodeExec, execute_cached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PeriodAlgebraExec(NodeExec):
    """Computes a PeriodAlgebra node."""

    node: PeriodAlgebra

    is_extension = True

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for key types or ends that do not fit, UnsupportedError for a column that Spark cannot
        hand to Python, ConfigurationError if the workers lack the package."""
        from sqlext_planner.exchange.driver import Shipment, ship
        from sqlext_planner.period_algebra.inputs import PeriodInputs

        inputs = PeriodInputs.of(self.node, [execute_cached(child, context) for child in self.inputs])
        keys = tuple(key.spark_name for key in self.node.keys)
        wire = ship([Shipment(tag, frame, keys) for tag, frame in enumerate(inputs.frames)], context)
        return wire.run(inputs.operator(context.config), inputs.result_schema, wire.sizes[0])

    def label(self) -> str:
        return f"PeriodAlgebraExec{self.node.label().removeprefix('PeriodAlgebra')}"
