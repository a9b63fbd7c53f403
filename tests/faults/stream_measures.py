"""What runs in the drivers of `harness.Driver` to measure streaming queries: memory, bytes and files by micro-batch."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from sqlext.bench.memory import MemoryWatch

from .stream_probes import stream
from .streaming import FIRST, rows_of, write_file

#: Arrow bytes of a row in the columns that are kept: of FROM all, of UNION all but `id`.
KEPT_FROM, KEPT_UNION = 36, 28


def load(spark: SparkSession, sql: str, rows: str, checkpoint: str) -> dict[str, Any]:
    """Run a statement over streams to the end, without a sink: memory, size of the checkpoint, and `batches`."""
    with MemoryWatch() as watch:
        query = _writer(spark, sql, rows, checkpoint, 1).trigger(availableNow=True).start()
        query.awaitTermination()
    return {
        "worker": watch.peak_process,
        "jvm": watch.peak_jvm,
        "checkpoint": size_of(Path(checkpoint)),
        "batches": batches_of(query),
    }


def soak(spark: SparkSession, sql: str, rows: str, checkpoint: str, local: str, seconds: float, rate: int) -> Any:
    """A statement over streams of which each gets a file of `rate` rows and 2 s of event time every second, for
    `seconds`: `batches`, and `cached`, the bytes of chunk files below `local`, each second. Every micro-batch has one
    file of each: what is derived, and kept in files, depends on how long a micro-batch is."""
    ended, cached = threading.Event(), []
    writer = threading.Thread(target=_write_steadily, args=(Path(rows), rate, ended))
    writer.start()
    try:
        with MemoryWatch() as watch:
            query = _writer(spark, sql, rows, checkpoint, 1).start()
            end = time.monotonic() + seconds
            while time.monotonic() < end and query.isActive:
                time.sleep(1)
                cached.append(sum(size_of(cache) for cache in Path(local).rglob("sqlext-chunks")))
    finally:
        ended.set()
        writer.join()
    error = query.exception()
    query.stop()
    found = {"worker": watch.peak_process, "jvm": watch.peak_jvm, "checkpoint": size_of(Path(checkpoint))}
    return {**found, "error": error and str(error), "batches": batches_of(query), "cached": cached}


def _write_steadily(folder: Path, rate: int, ended: threading.Event) -> None:
    rng, start, place = np.random.default_rng(1), time.monotonic(), 0
    while not ended.is_set():
        first = FIRST + 2_000_000 * place
        for name in "ab":
            ts = rng.integers(first, first + 4_000_000, rate)
            write_file(folder / name, place, rows_of(rng, place * rate + np.arange(rate), ts, keys=1_000))
        place += 1
        ended.wait(max(0.0, start + place - time.monotonic()))


def _writer(spark: SparkSession, sql: str, rows: str, checkpoint: str, files: int) -> Any:
    for name in "ab":
        Path(rows, name).mkdir(parents=True, exist_ok=True)
    writer = stream(spark, sql, rows, files).writeStream.format("noop")
    return writer.option("checkpointLocation", checkpoint).outputMode("append")


def batches_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """What Spark and our operator say of each micro-batch (`spark.sql.streaming.numRecentProgressUpdates` of them)."""
    found = []
    for progress in query.recentProgress:
        ours = [row.asDict() for row in (progress.observedMetrics or {}).values() if row is not None]
        if not ours or ours[0]["rows_in"] is None:
            continue
        store = progress.stateOperators[0]
        ms = {"ms": progress.durationMs.get("triggerExecution", 0)}
        rocks = {name: value for name, value in store.customMetrics.items() if "emory" in name or "ache" in name}
        found.append({"rows": progress.numInputRows, **ms, **ours[0], "store": store.memoryUsedBytes, "rocks": rocks})
    return found


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder, of which some may be deleted meanwhile."""
    total = 0
    for at, _, names in os.walk(folder):
        total += sum(map(_size, (Path(at, name) for name in names)))
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
