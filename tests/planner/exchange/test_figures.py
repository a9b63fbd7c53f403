"""Reports of tasks put together by node, without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.accumulators import Accumulator
from sqlext_operators.exchange.profile import StepFigures, as_step
from sqlext_planner.exchange.figures import TaskStep, node_figures
from sqlext_planner.exchange.measures import StatementMeasures
from sqlext_planner.relational.physical_plan import PhysicalPlan


class Context:
    """As much of a SparkContext as reports need."""

    _numbers = itertools.count(1 << 40)

    def accumulator(self, value: Any, param: Any) -> Accumulator[Any]:
        return Accumulator(next(self._numbers), value, param)


class Nothing(PhysicalPlan):
    """A plan."""


def figures(step: int, seconds: float, **counts: int) -> StepFigures:
    return StepFigures(step, {("sort",): seconds, ("elsewhere",): 1.0}, counts)


def test_a_task_that_runs_twice_counts_once() -> None:
    context: Any = Context()
    measures = StatementMeasures(context, context, Nothing())
    step = measures.step((), "run")

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return as_step(step.number, "evaluate", lambda: batches)

    task = measures.reporting(step, function)
    for rows in (5, 3):
        list(task(iter([pa.RecordBatch.from_pydict({"a": list(range(rows))})])))
    (node,) = node_figures([step], measures.reports)
    assert node.rows_out == (3,)
    assert len(node.running) == 1


def test_steps_of_a_node_are_added_up() -> None:
    steps = [TaskStep(0, None, "scatter"), TaskStep(1, None, "scatter"), TaskStep(2, None, "run")]
    reports = {
        (0, 4, 0): figures(0, 1, **{"in": 10, "moved": 12, "moved bytes": 100}),
        (0, 4, 1): figures(0, 2, **{"in": 20, "moved": 24, "moved bytes": 200}),
        (1, 4, 2): figures(1, 4, **{"in": 5}),
        (2, 6, 0): StepFigures(2, {("evaluate", "s", "Sum"): 8, ("evaluate",): 16, ("receive",): 32}, {"out": 7}),
        (2, 6, 1): StepFigures(2, {("evaluate", "s", "Sum"): 64}, {"out": 8, "spilled bytes": 9}),
    }
    (node,) = node_figures(steps, reports)
    assert (node.rows_in, node.inputs, node.rows_out) == ((30, 5), (0, 1), (15,))
    assert (node.moved_rows, node.moved_bytes, node.spilled_bytes) == (36, 300, 9)
    assert {name: value for name, value in node.parts.items() if value} == {"sort": 7, "evaluate": 88, "decode": 32}
    assert dict(node.calls) == {("s", "Sum"): 72}
    assert node.elsewhere == pytest.approx(3)
    assert (node.scattering, node.running) == ([1, 2, 4], [56, 64])
    assert node.skew == pytest.approx(4 * 3 / 7)
    assert node.seconds == 127
