"""The rows of an interval join whose residual Spark tests: candidate pairs, Spark's filter, and what has no match.

The three steps are in one task, one behind the other: no pair is sent anywhere. Rows come to the completing step in the
order in which the operator gave them, since projections and filters keep it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.exchange.stages import Reporting
from sqlext_planner.exchange.year_month import as_months, from_months, months_schema
from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def completed_rows(
    candidates: DataFrame, typed: TypedJoin, result: StructType, context: ExecutionContext, *, copies: bool = False
) -> DataFrame:
    """The join's rows, with the fields of `result`, from its candidate pairs; of undecided `copies` of rows, the copies
    with ROW and MATCHES."""
    from pyspark.sql.functions import col, expr
    from sqlext_operators.interval_join.candidates import NUMBER, CompletionSpec, completed
    from sqlext_operators.interval_join.spec import ROW

    from sqlext_planner.spark.workers import worker_function

    assert typed.test is not None
    payload = [typed.spec.left.payload, typed.spec.right.payload if typed.spec.pairs else ()]
    spec = CompletionSpec.of(typed.spec, tuple(item.name for item in result), undecided=copies)
    passed = candidates.filter(expr(f"{quoted(NUMBER)} < 0 OR {typed.test.sql()}"))
    names = [*payload[0], *payload[1], NUMBER, *([ROW] if copies else [])]
    rows = as_months(passed.select(*(col(quoted(name)) for name in names)))
    entry = worker_function(Reporting(context.places(), "alone", None).entry(completed, spec))
    found = rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(entry, months_schema(result))
    return from_months(found, result)
