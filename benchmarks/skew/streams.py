"""A stream with a key that becomes hot, another one that takes its place, and none: what the buckets of keys have to do
in each micro-batch, by partitioner.

    python -m benchmarks.skew.streams --buckets 4,16 --statements window,interval --pace 4

It prints a line for each statement, number of buckets and partitioner. The work of a bucket is the rows that it reads,
copies and results. Nothing is compared with other engines, and no answer: `tests/sql/test_adaptive_streams.py` does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from sqlext_planner.exchange.stream_listeners import changes_in
from sqlext_planner.spark.session import settings_changed
from sqlext_planner.spark.streams import MOST_WORK, observed_figures

from sqlext import Session, stream_settings

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "k bigint, ts timestamp, v bigint"
#: The first event time, and the time of a micro-batch, in microseconds: windows of a second are short beside it.
START, SPAN = 1_700_000_000_000_000, 10_000_000
#: The part of a hot key's rows that is in stream a, and that of the others.
OWNED, OTHERS = 0.94, 0.7
#: The hot key, if there is one, and for how many micro-batches.
Phases = Sequence[tuple[int | None, int]]
PHASES: Phases = ((None, 4), (1, 10), (2, 10), (None, 20))
EVEN: Phases = ((None, 30),)
WINDOW = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW"
#: Statements over the streams a and b, with a hint.
STATEMENTS = {
    "window": f"SELECT {{hint}} k, ts, v, sum(v) OVER w AS s, count(*) OVER w AS n "
    f"FROM {{a}} WINDOW w AS (UNION {{b}} {WINDOW})",
    "interval": "SELECT {hint} a.k, a.ts, a.v, b.ts AS t2, b.v AS v2 FROM {a} a JOIN {b} b ON a.k = b.k "
    "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 100 MILLISECONDS",
}


def write_streams(folder: Path, phases: Phases, rows: int, *, share: float = 0.5, seed: int = 0) -> None:
    """The folders a and b with a file for each micro-batch: `rows` rows in both, of which a hot key has a `share`, and
    a last row that closes the streams."""
    rng = np.random.default_rng(seed)
    batches = [hot for hot, count in phases for _ in range(count)]
    for number, hot in enumerate(batches):
        keys, times = rng.integers(100, 5_100, rows), np.sort(rng.integers(0, SPAN, rows)) + number * SPAN + START
        is_owned = rng.random(rows) < OTHERS
        if hot is not None:
            is_hot = rng.random(rows) < share
            keys[is_hot], is_owned[is_hot] = hot, rng.random(int(is_hot.sum())) < OWNED
        for name, part in (("a", is_owned), ("b", ~is_owned)):
            _write(folder / name, number, keys[part], times[part], rng.integers(-9, 9, int(part.sum())))
    for name in "ab":
        far = np.array([START + 2 * (len(batches) + 1_000) * SPAN])
        _write(folder / name, len(batches), np.zeros(1, np.int64), far, np.zeros(1, np.int64))


def _write(folder: Path, number: int, keys: Any, times: Any, values: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:04d}.parquet"
    columns = {"k": pa.array(keys), "ts": pa.array(times, pa.timestamp("us", "UTC")), "v": pa.array(values)}
    pq.write_table(pa.table(columns), path)
    os.utime(path, (number, number))  # a stream reads files by their age


@dataclass(frozen=True)
class MicroBatch:
    """What the operator did: the most work of a bucket and that of all, rows read, copies, changes of places so far,
    and the milliseconds of the whole."""

    most: int
    work: int
    rows: int
    copies: int
    changes: int
    milliseconds: int


@contextmanager
def started(
    session: Session, folder: Path, statement: str, partitioner: str, buckets: int, out: Path, **trigger: Any
) -> Iterator[StreamingQuery]:
    """A query of a statement over the streams of a folder; its rows go to `out`/rows, its checkpoint to
    `out`/checkpoint. It is stopped in the end."""
    spark = session.spark
    settings = {**stream_settings(cores=buckets), "spark.sql.streaming.numRecentProgressUpdates": "10000"}
    with settings_changed(spark, settings):
        for name in "ab":
            stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
            stream.withWatermark("ts", "1 second").createOrReplaceTempView(f"moving_{name}")
        hint = f"/*+ PARTITIONER({partitioner}) */"
        frame = session.sql(STATEMENTS[statement].format(hint=hint, a="moving_a", b="moving_b"))
        writer = frame.writeStream.format("parquet").option("path", str(out / "rows"))
        query = writer.option("checkpointLocation", str(out / "checkpoint")).trigger(**trigger).start()
        try:
            yield query
        finally:
            query.stop()


def run_stream(
    session: Session, folder: Path, statement: str, partitioner: str, buckets: int, out: Path, pace: float = 0
) -> list[MicroBatch]:
    """The micro-batches of a query until its streams are read. They begin every `pace` seconds, or with 0 as soon as
    the one before has ended."""
    trigger: dict[str, Any] = {"processingTime": f"{pace} seconds"} if pace else {"availableNow": True}
    with started(session, folder, statement, partitioner, buckets, out, **trigger) as query:
        if pace:
            query.processAllAvailable()
        else:
            query.awaitTermination()
    return [item for progress in query.recentProgress if (item := _micro_batch(progress)) is not None]


def _micro_batch(progress: Any) -> MicroBatch | None:
    for name, figures in observed_figures(progress).items():
        if progress.numInputRows > 2:  # not the closing rows
            work = sum(figures[key] for key in ("rows_in", "copied_rows", "rows_out"))
            changes = changes_in(progress.observedMetrics[name]) or 0
            milliseconds = int(progress.durationMs["triggerExecution"])
            counts = figures["rows_in"], figures["copied_rows"]
            return MicroBatch(figures[MOST_WORK], work, *counts, changes, milliseconds)
    return None


def phases_of(batches: Sequence[MicroBatch], phases: Phases) -> Iterator[tuple[int | None, Sequence[MicroBatch]]]:
    """The micro-batches of each phase."""
    start = 0
    for hot, count in phases:
        yield hot, batches[start : start + count]
        start += count


def settled(own: Sequence[MicroBatch], other: Sequence[MicroBatch]) -> int | None:
    """From which micro-batch on, counted from 1, the fullest bucket has at most half of the work of another run's."""
    halved = [2 * one.most <= two.most for one, two in zip(own, other, strict=True)]
    return next((number + 1 for number in range(len(halved)) if all(halved[number:])), None)


def _lines(found: Mapping[str, Sequence[MicroBatch]], phases: Phases) -> Iterator[str]:
    for name, batches in found.items():
        cells = [f"changes {batches[-1].changes}", f"p95 {_p95(batches[2:]):,.0f} ms"]
        for other in (other for other in ("hash", "key") if other in found and other != name):
            pairs = zip(phases_of(batches, phases), phases_of(found[other], phases), strict=True)
            numbers = [settled(own, theirs) for (hot, own), (_, theirs) in pairs if hot is not None]
            cells.append(f"at most half of {other}'s from micro-batch {numbers}")
        ratios = [(hot, [item.most * 1.0 / item.work for item in own][-3:]) for hot, own in phases_of(batches, phases)]
        cells += [f"{hot}: the fullest has {statistics.mean(part):.0%} of the work" for hot, part in ratios if part]
        cells.append(f"copies at most {max(item.copies / max(item.rows, 1) for item in batches):.1%}")
        last = [item.copies for _, own in list(phases_of(batches, phases))[-1:] for item in own]
        cells.append(
            f"copies end with micro-batch {max((n + 1 for n, copies in enumerate(last) if copies), default=0)}"
        )
        yield f"{name:>10}: {'; '.join(cells)}"


def _p95(batches: Sequence[MicroBatch]) -> float:
    return float(np.percentile([item.milliseconds for item in batches], 95))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", default="4,16", help="numbers of buckets of keys")
    parser.add_argument("--statements", default=",".join(STATEMENTS), help="of " + ", ".join(STATEMENTS))
    parser.add_argument("--partitioners", default="hash,key,auto", help="hash first: the others are compared with it")
    parser.add_argument("--rows", type=int, default=8_000, help="rows of a micro-batch, both streams together")
    parser.add_argument("--pace", type=float, default=0, help="seconds from one micro-batch to the next; 0: at once")
    parser.add_argument("--even", action="store_true", help="no key is hot")
    parser.add_argument("--cores", type=int, default=2, help="of Spark")
    options = parser.parse_args()
    phases = EVEN if options.even else PHASES
    builder = SparkSession.builder.master(f"local[{options.cores}]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    session = Session(spark)
    with tempfile.TemporaryDirectory(prefix="sqlext-moving-") as folder:
        root = Path(folder)
        write_streams(root / "streams", phases, options.rows)
        for buckets in map(int, options.buckets.split(",")):
            for statement in options.statements.split(","):
                found = {}
                for name in options.partitioners.split(","):
                    # a folder for each run: what Spark's state store does in the background may end after the query
                    out = root / f"{statement}-{buckets}-{name}"
                    found[name] = run_stream(session, root / "streams", statement, name, buckets, out, options.pace)
                    shutil.rmtree(out, ignore_errors=True)
                print(f"{statement}, {buckets} buckets, {options.rows:,} rows a micro-batch", flush=True)
                print("\n".join(_lines(found, phases)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
