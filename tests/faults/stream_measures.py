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

from benchmarks.harness.memory import MemoryWatch
from sqlext import Session

from .stream_probes import stream
from .streaming import FIRST, SCHEMA, rows_of, write_file

#: Arrow bytes of a row in the columns that are kept: of FROM all, of UNION all but `id`.
KEPT_FROM, KEPT_UNION = 36, 28
#: Keys of a soak's rows.
_SOAK_KEYS = 1_000


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


def soak(
    spark: SparkSession,
    sql: str,
    rows: str,
    out: str,
    checkpoint: str,
    local: str,
    seconds: float,
    rate: int,
) -> Any:
    """A statement over streams of which each gets a file of `rate` rows and 2 s of event time every second, for
    `seconds`: `batches`, and `cached`, the bytes of chunk files below `local`, each second. Every micro-batch has one
    file of each: what is derived, and kept in files, depends on how long a micro-batch is. At last the streams are
    closed, and all results are in `out/sink`."""
    ended, cached = threading.Event(), []
    writer = threading.Thread(target=_write_steadily, args=(Path(rows), rate, ended))
    writer.start()
    try:
        with MemoryWatch() as watch:
            query = _writer(spark, sql, rows, checkpoint, 1, f"{out}/sink").start()
            end = time.monotonic() + seconds
            while time.monotonic() < end and query.isActive:
                time.sleep(1)
                cached.append(sum(size_of(cache) for cache in Path(local).rglob("sqlext-chunks")))
    finally:
        ended.set()
        writer.join()
    batches = batches_of(query)
    if query.isActive:
        query.processAllAvailable()
    error = query.exception()
    query.stop()
    found = {"worker": watch.peak_process, "jvm": watch.peak_jvm, "checkpoint": size_of(Path(checkpoint))}
    return {**found, "error": error and str(error), "batches": batches, "cached": cached}


def sums(spark: SparkSession, sql: str, rows: str, out: str) -> dict[str, list[int]]:
    """How many rows there are in the sink and in batch over the same rows, and the sum of the rows' hashes. Sums of
    doubles are left out: their last digits depend on the order of adding."""
    for name in "ab":
        spark.read.schema(SCHEMA).parquet(f"{rows}/{name}").createOrReplaceTempView(f"{name}_table")
    last = spark.read.schema(SCHEMA).parquet(f"{rows}/a").selectExpr("max_by(id, ts) AS id").collect()[0]["id"]
    batch = Session(spark).sql(sql.format(a="a_table", b="b_table")).where(f"id <> {last}")
    found = {}
    for name, frame in {"stream": spark.read.parquet(f"{out}/sink"), "batch": batch}.items():
        columns = [column for column, kind in frame.dtypes if column != "m" or kind != "double"]
        row = frame.selectExpr(f"xxhash64({', '.join(columns)}) % 1000000007 AS h").selectExpr("count(*)", "sum(h)")
        found[name] = [int(value) for value in row.collect()[0]]
    return found


def _write_steadily(folder: Path, rate: int, ended: threading.Event) -> None:
    """Rows without equal times or ids, then one that closes the streams."""
    rng, start, place = np.random.default_rng(1), time.monotonic(), 0
    while not ended.is_set():
        first = FIRST + 2_000_000 * place
        for number, name in enumerate("ab"):
            # four slots for each file and stream in its time: files two before and after have the others
            slots = 8 * rng.choice(4_000_000 // 8, rate, replace=False) + 2 * (place % 4) + number
            ids = 2 * (place * rate + np.arange(rate)) + number
            write_file(folder / name, place, rows_of(rng, ids, first + slots, _SOAK_KEYS))
        place += 1
        ended.wait(max(0.0, start + place - time.monotonic()))
    for number, name in enumerate("ab"):
        closing = np.array([FIRST + 2_000_000 * place + 10**10 + number])
        write_file(folder / name, place, rows_of(rng, np.array([2 * place * rate + number]), closing))


def _writer(spark: SparkSession, sql: str, rows: str, checkpoint: str, files: int, out: str | None = None) -> Any:
    """A writer to Parquet files below `out`, or to nothing."""
    for name in "ab":
        Path(rows, name).mkdir(parents=True, exist_ok=True)
    writer = stream(spark, sql, rows, files).writeStream.format("noop" if out is None else "parquet")
    if out is not None:
        writer = writer.option("path", out)
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
