"""Streams l and r whose rows come late, and what a query with EMIT AFTER over them gives, for tests on Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlext.streams import query_figures
from tests.sql.streams import CLOSING, SECOND, START, Row, drop_views, register, stream_conf, write_batches

#: What is behind the value of each aggregate.
BOUNDS = ("lower", "upper", "coverage", "reliable")
#: Seconds of a micro-batch; rows are up to 4 seconds late.
TRIGGER = 2


def arriving(seed: int, seconds: int, keys: int) -> list[list[Row]]:
    """Ten rows a second of a stream, by the micro-batch that brings them; the last one brings a row that closes it."""
    rng = random.Random(seed)
    batches: list[list[Row]] = [[] for _ in range(seconds // TRIGGER + 3)]
    for _ in range(10 * seconds):
        time = rng.random() * seconds
        value = rng.choice([None, *range(-3, 9)])
        key = rng.choice([None, *range(keys)])
        row: Row = (key, START + int(time * SECOND), value, None if value is None else value / 4, "")
        batches[int((time + 4 * rng.random()) / TRIGGER)].append(row)
    return [*batches, [(0, START + CLOSING * SECOND, 0, 0.0, "")]]


@contextmanager
def early_views(spark: SparkSession, folder: Path, batches: Sequence[list[list[Row]]]) -> Iterator[Path]:
    """Streams l, r and tables l_t, r_t of the same rows; a file is what a trigger brings."""
    with stream_conf(spark):
        for name, own in zip("lr", batches, strict=True):
            write_batches(folder / name, own)
            register(spark, name, folder / name)
        yield folder
        drop_views(spark, "l", "r", "grown_l", "grown_r")


@dataclass(frozen=True)
class Run:
    """The rows of a query that ran from start to end, the micro-batch of each by its time and phase, and the rows that
    the state held in the end."""

    frame: DataFrame
    rows: list[dict[str, Any]]
    when: dict[tuple[Any, str], int]
    state_rows: float

    def of(self, phase: str) -> list[dict[str, Any]]:
        """The rows of a phase."""
        return [row for row in self.rows if row["phase"] == phase]


def run_whole(frame: DataFrame, checkpoint: Path, time: str) -> Run:
    """Run a query until all files are read; `time` is the column that tells its rows apart."""
    seen: list[tuple[dict[str, Any], int]] = []

    def write(batch: DataFrame, number: int) -> None:
        seen.extend((row.asDict(), number) for row in batch.collect())

    query = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    figures = query_figures(running)
    assert figures is not None
    when = {(row[time], row["phase"]): number for row, number in seen}
    return Run(frame, [row for row, _ in seen], when, figures.figures["state_rows"])


def found_rows(spark: SparkSession, folder: Path, frame: DataFrame) -> list[dict[str, Any]]:
    """The rows that a query wrote below a folder."""
    rows = spark.read.parquet(str(folder / "out")).toDF(*frame.columns).collect()
    return [row.asDict() for row in rows]
