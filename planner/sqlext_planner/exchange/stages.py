"""Operators behind an exchange, remembered so that the next exchange can run them in its own scatter task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlext_planner.exchange.figures import Measuring
from sqlext_planner.spark.plans import output_ids, selection_above_map
from sqlext_planner.spark.session import arrow_type
from sqlext_planner.spark.workers import BatchFunction, Entry, worker_function

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.errors import Places
    from sqlext_operators.exchange.scatter import Upstream

    from sqlext_planner.exchange.figures import Measures, Step, StepKind
    from sqlext_planner.exchange.sizes import Size
    from sqlext_planner.relational.physical_plan import ExecutionContext


@dataclass(frozen=True)
class Reporting:
    """What tasks report beside their rows: errors with their places in the statement, and under EXPLAIN ANALYZE where
    their time went, for the node that is being built."""

    places: Places
    kind: StepKind
    measured: tuple[Measures, Step] | None

    @classmethod
    def of(cls, context: ExecutionContext, kind: StepKind) -> Reporting:
        """For the node that is being built."""
        measures = context.remembered(Measuring).measures
        if measures is None:
            return cls(context.places(), kind, None)
        return cls(context.places(), kind, (measures, measures.step(tuple(context.building), kind)))

    def entry(
        self, function: Callable[..., Iterator[pa.RecordBatch]], *args: object
    ) -> partial[Iterator[pa.RecordBatch]]:
        """An entry point, from a module's function and its first arguments (frozen specifications)."""
        from sqlext_operators.errors import explained
        from sqlext_operators.exchange.profile import as_step

        if self.measured is None:
            return partial(explained, self.places, function, *args)
        rest = "scatter" if self.kind == "scatter" else "evaluate"
        return partial(explained, self.places, as_step, self.measured[1].number, rest, function, *args)

    def function(self, function: BatchFunction) -> BatchFunction:
        """What `mapInArrow` gets for an entry point that was made a `worker_function` or the like."""
        return function if self.measured is None else self.measured[0].reporting(self.measured[1], function)


@dataclass(frozen=True)
class ArrowStage:
    """An operator's run over the wire rows of an exchange.

    `ids` are Catalyst's ids of the result's columns; they tell that a plan above reads this very result.
    `size` estimates the result's size, None if unknown (Catalyst has no estimate: it sees the size of the wire rows).
    """

    wire: DataFrame
    entry: Entry
    ids: tuple[int, ...]
    size: Size | None


class Stages(dict[tuple[int, ...], ArrowStage]):
    """The operators' runs of a statement so far, by the ids of their columns."""


def run_stage(
    wire: DataFrame, entry: Entry, schema: StructType, size: Size | None, context: ExecutionContext
) -> DataFrame:
    """The operator's result as a DataFrame. `entry` is ``partial(module_function, frozen_spec)``."""
    from sqlext_operators.exchange.operator import plain_results

    reporting = Reporting.of(context, "run")
    own = reporting.entry(plain_results, entry)
    result = wire.mapInArrow(reporting.function(worker_function(own)), schema)
    ids = output_ids(result)
    if ids is not None:
        context.remembered(Stages)[ids] = ArrowStage(wire, reporting.entry(entry), ids, size)
    return result


def upstream_of(frame: DataFrame, context: ExecutionContext) -> tuple[ArrowStage, Upstream] | None:
    """The stage that `frame` only selects columns of, and how to run it; None for any other frame."""
    from sqlext_operators.exchange.scatter import Upstream

    stages = context.remembered(Stages)
    found = selection_above_map(frame) if stages else None
    stage = stages.get(found[0]) if found is not None else None
    if found is None or stage is None:
        return None
    kinds = [arrow_type(field.dataType) for field in frame.schema]
    known = tuple(kind for kind in kinds if kind is not None)
    if len(known) < len(kinds):
        return None
    return stage, Upstream(stage.entry, found[1], known)
