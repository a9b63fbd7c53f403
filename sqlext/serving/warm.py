"""A deployment that begins with the rows of a streaming query of the same statement, from the query's checkpoint."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.serving.store import KeptState
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.serving.checkpoint import QueryRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlext.serving.deployment import Deployment


@dataclass(frozen=True)
class WarmStart:
    """What a deployment has begun with: the number of the query's last micro-batch that was committed, how many rows,
    of which tables, and the `missing` tables, which the query keeps no rows of: the right sides of LAST JOINs."""

    batch: int
    rows: int
    tables: tuple[str, ...]
    missing: tuple[str, ...]


def load_checkpoint(deployment: Deployment, checkpoint: str | Path, spark: SparkSession | None) -> WarmStart:
    """Store what a query has; nothing is stored if that fails. Raises as `Deployment.load_checkpoint`."""
    inputs = deployment.spec.inputs
    query = QueryRows(spark or _active(), str(checkpoint), deployment.plan, deployment.request, deployment.settings)
    cutoffs = query.cutoffs
    used = next((place for place in cutoffs if deployment.kept_of(place)[0]), None)
    if used is not None:
        raise ConfigurationError(
            f"rows of '{inputs[used].table}' are stored already, and the checkpoint may have them too",
            condition="python-call",
            help="call load_checkpoint first, and push what came after its micro-batch",
        )
    clock = time.time_ns() // 1000
    batches: dict[int, list[pa.RecordBatch]] = {place: [] for place in cutoffs}
    for place, batch in query.batches():
        batches[place].append(deployment.present(inputs[place], batch, clock))
    rows = sum(batch.num_rows for several in batches.values() for batch in several)
    for place, cutoff in cutoffs.items():
        newest = deployment.newest(inputs[place], batches[place], clock)
        deployment.restore(place, KeptState(tuple(batches[place]), newest, cutoff))
        batches[place].clear()
    return WarmStart(query.batch, rows, tuple(sorted({inputs[place].table for place in cutoffs})), query.missing)


def _active() -> SparkSession:
    """The active session. Raises ConfigurationError without one."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise ConfigurationError(
            "the state of a query is read by Spark, and no session is active",
            condition="python-call",
            help="give one: deployment.load_checkpoint(DIR, spark)",
        )
    return spark
