"""What Spark reports about each micro-batch, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

MIB = 1 << 20
#: The rows of the micro-batches that are measured over their seconds; the whole run's are `results.RATE`.
STEADY = "steady rows/s"
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Batch:
    """One micro-batch: input rows of all sources, `seconds` of the whole trigger, `ended` in seconds since 1970.

    `watermark_ms` is the watermark that it ran with (event time in milliseconds since 1970; None before there is one),
    `state_bytes` the size of the state stores' files, `written_bytes` what was written to the stores, `observed` the
    observed aggregates.
    """

    number: int
    rows: int
    seconds: float
    ended: float
    watermark_ms: float | None = None
    state_bytes: int = 0
    written_bytes: int = 0
    observed: Mapping[str, int] = field(default_factory=dict)


def batch_of(progress: Mapping[str, Any], observation: str = "") -> Batch:
    """A micro-batch from the JSON of its StreamingQueryProgress. Raises KeyError if that lacks what every one has."""
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1_000
    watermark = progress.get("eventTime", {}).get("watermark")
    found = progress.get("observedMetrics", {}).get(observation) or {}
    return Batch(
        number=int(progress["batchId"]),
        rows=int(progress["numInputRows"]),
        seconds=seconds,
        ended=_since_1970(progress["timestamp"]) + seconds,
        watermark_ms=None if watermark is None else _since_1970(watermark) * 1_000,
        state_bytes=_custom(progress, "rocksdbSstFileSize"),
        written_bytes=_custom(progress, "rocksdbTotalBytesWritten"),
        observed={name: int(value or 0) for name, value in found.items()},
    )


def batches_of(progresses: Sequence[Mapping[str, Any]], observation: str = "") -> list[Batch]:
    """All micro-batches by their numbers; reports of a trigger that found nothing to do are left out."""
    found: dict[int, Batch] = {}
    for progress in progresses:
        if "addBatch" in progress["durationMs"]:
            batch = batch_of(progress, observation)
            found[batch.number] = batch
    return [found[number] for number in sorted(found)]


def observed_sums(batches: Sequence[Batch]) -> dict[str, int]:
    """The observed aggregates, which are counts and sums, over all micro-batches."""
    names = dict.fromkeys(name for batch in batches for name in batch.observed)
    return {name: sum(batch.observed.get(name, 0) for batch in batches) for name in names}


def steady(batches: Sequence[Batch], batch_rows: int, fill: int = 0) -> list[Batch]:
    """The micro-batches that are measured: full ones, after the `fill` ones and without the first, which pays for the
    start of the query. If there is none, those that have more than a closing row for each stream."""
    later = [batch for batch in batches if batch.number > fill and batch.rows >= 0.9 * batch_rows]
    return later or [batch for batch in batches if batch.number >= fill and batch.rows > 2]


def figures(batches: Sequence[Batch], batch_rows: int, fill: int = 0) -> dict[str, float]:
    """Rows a second in the micro-batches that are measured, percentiles of their seconds, the largest state (files of
    RocksDB, which appear with its first snapshot), and what one of them writes to it, both in MiB."""
    measured = steady(batches, batch_rows, fill)
    if not measured:
        return {}
    seconds = [batch.seconds for batch in measured]
    ranks = np.percentile(seconds, PERCENTILES)
    found = {STEADY: sum(batch.rows for batch in measured) / sum(seconds), "batch no.": float(len(measured))}
    found |= {f"batch p{rank}": float(value) for rank, value in zip(PERCENTILES, ranks, strict=True)}
    written = float(np.median([batch.written_bytes for batch in measured]))
    return {**found, "state MiB": max(batch.state_bytes for batch in batches) / MIB, "write MiB": written / MIB}


def row_latencies(
    batches: Sequence[Batch], times_ms: npt.NDArray[np.int64], arrived: npt.NDArray[np.float64]
) -> dict[str, float]:
    """Percentiles of the seconds between a FROM row's arrival and the end of the micro-batch that answered it.

    A row is answered by the first micro-batch whose watermark is above its time. Left out are rows that only the
    watermark of the closing rows answered (in a stream that goes on others would have come), and rows that came before
    the end of the first micro-batch, which starts the query. `times_ms` are the rows' times, `arrived` their arrivals
    in seconds since 1970.
    """
    known = [batch for batch in batches if batch.watermark_ms is not None]
    marks = np.maximum.accumulate([batch.watermark_ms or 0.0 for batch in known] or [0.0])
    ends = np.array([batch.ended for batch in known] or [0.0])
    places = np.searchsorted(marks, times_ms, side="right")
    counted = (places < len(marks)) & (marks[np.minimum(places, len(marks) - 1)] <= times_ms.max())
    if known:
        counted &= arrived >= min(batch.ended for batch in batches)
    if not counted.any():
        return {}
    ranks = np.percentile(ends[places[counted]] - arrived[counted], PERCENTILES)
    return {f"row p{rank}": float(value) for rank, value in zip(PERCENTILES, ranks, strict=True)}


def _since_1970(text: str) -> float:
    """`2026-11-22T20:00:00.123Z` in seconds."""
    return datetime.fromisoformat(text).timestamp()


def _custom(progress: Mapping[str, Any], name: str) -> int:
    """A metric of RocksDB over all stateful operators. (`memoryUsedBytes` is a share of a cache for all stores.)"""
    operators = progress.get("stateOperators", ())
    return sum(int(operator.get("customMetrics", {}).get(name, 0)) for operator in operators)
