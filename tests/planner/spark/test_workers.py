"""What a Python worker keeps between two tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from sqlext_operators.window import operator as window_union
from sqlext_planner.spark.workers import worker_function


class Looked:
    """An entry point that loads the window operator and gives (objects that a collection looks at, others)."""

    def __call__(self, place: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield pa.RecordBatch.from_pydict({"seen": [len(gc.get_objects())], "kept": [gc.get_freeze_count()]})

    def __reduce__(self) -> tuple[object, ...]:
        return (_looked, (window_union.__name__,))


def _looked(module: str) -> Looked:
    __import__(module)
    return Looked()


def test_a_worker_does_not_look_at_its_modules_after_every_task(spark: SparkSession) -> None:
    frame = spark.range(1).coalesce(1).mapInArrow(worker_function(Looked()), "seen long, kept long")
    (row,) = frame.collect()
    assert row.kept > 50_000  # numba's and numpy's; 0.1 s of every task
    assert row.seen < 20_000
