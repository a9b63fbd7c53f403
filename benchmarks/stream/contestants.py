"""Contestants of the suite `stream` on Spark's Structured Streaming, and the two that read the rows as tables."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr, window
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import spark_version

from benchmarks.harness.engines import Engines, in_duckdb
from benchmarks.harness.results import RATE
from benchmarks.harness.statements import DuckSql, SessionSql, Statement, answer_of
from benchmarks.harness.suite import Answer, Case, Contestant
from benchmarks.stream.case import StreamCase, StreamCases, StreamSource
from benchmarks.stream.files import milliseconds
from benchmarks.stream.progress import MIB, STEADY, Batch, batches_of, figures, observed_sums, row_latencies, steady
from benchmarks.stream.sql import COMPENSATED, SPREAD, UNCOMPENSATED

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "spark.sql.streaming.stateStore."
#: What every contestant with state runs on: RocksDB in bounded memory, changes instead of copies of all files at each
#: commit, no count of rows at each change.
STATE_SETTINGS = {
    STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    STATE + "rocksdb.changelogCheckpointing.enabled": "true",
    STATE + "rocksdb.trackTotalNumberOfRows": "false",
    STATE + "rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.session.timeZone": "UTC",
}
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
#: The newest that this Spark has.
NEWEST_FORMAT = "4" if spark_version() >= (4, 2) else "3"

ANSWERS = "answers"
#: The hint that asks for one operator for all joins.
UMJOIN = "UMJOIN"


@dataclass
class SparkStream(Contestant):
    """A streaming query over the streams of a case, from `start` to its end.

    Its answers go to Spark's `noop` sink; what is compared is observed on the way there, in every run. `partitions` are
    those of the state; `settings` are Spark's.
    """

    name: str
    cases: StreamCases
    engines: Engines
    partitions: int
    settings: Mapping[str, str]
    _query: StreamingQuery | None = None
    _stopped: bool = False
    _warm: set[StreamSource] = field(default_factory=set)
    _batches: list[Batch] = field(default_factory=list)
    _details: dict[str, float] = field(default_factory=dict)
    _seconds: list[float] = field(default_factory=list)

    def frame(self, case: StreamCase, streams: Sequence[DataFrame]) -> DataFrame:
        """The streaming DataFrame of the query's rows, or of anything else if `answers` is False."""
        raise NotImplementedError

    #: Whether the frame's rows are answers to compare.
    answers: ClassVar[bool] = True

    def prepare(self, case: Case) -> None:
        """Spark with the settings of this contestant; before the first run a few rows, which compile kernels."""
        self.engines.configured(self.settings)
        self._stopped = False
        tables = self.cases[case.name].tables.tiny()
        if tables not in self._warm:
            self._warm.add(tables)
            with tempfile.TemporaryDirectory(prefix="sqlext-stream-", ignore_cleanup_errors=True) as folder:
                self._run(StreamCase(tables, tables.write(Path(folder))))
        self._batches, self._details, self._seconds = [], {}, []

    def run(self, case: Case) -> float:
        """Plan the query, start it and let it run to the end of the files. Raises ConfigurationError if interrupted."""
        return self._run(self.cases[case.name])

    def _run(self, stream: StreamCase) -> float:
        with tempfile.TemporaryDirectory(prefix="sqlext-stream-", ignore_cleanup_errors=True) as scratch:
            feed = _PacedFeed(stream, Path(scratch)) if stream.pace is not None else None
            folders = self._folders(stream) if feed is None else feed.folders
            start = time.perf_counter()
            checkpoint = Path(scratch) / "checkpoint"
            streams = [self._source(folder, stream) for folder in folders]
            self._query = self._start(self.frame(stream, streams), checkpoint, stream)
            try:
                if feed is not None:
                    feed.run(self._query)
                self._query.awaitTermination()
            finally:
                seconds = time.perf_counter() - start
                self._measure(stream, feed, seconds)
                self._details["checkpoint MiB"] = _bytes_below(checkpoint) / MIB
        if self._stopped:
            raise ConfigurationError(f"{self.name} was interrupted", condition="benchmark")
        return seconds

    def details(self) -> Mapping[str, float]:
        """Rows a second, percentiles of micro-batches and rows, sizes of the state and of the checkpoint."""
        return self._details

    def own_details(self, measured: Sequence[StreamingQueryProgress]) -> Mapping[str, float]:
        """What only this contestant tells about the micro-batches that were measured."""
        return {}

    def series(self) -> Mapping[str, Sequence[float]]:
        """The seconds of each micro-batch that was measured."""
        return {"batch seconds": self._seconds}

    def answer(self, case: Case) -> Answer | None:
        """The observed checksums of the last run."""
        if not self.answers:
            return None
        found = observed_sums(self._batches)
        return answer_of({name: found.get(name, 0) for name in self.cases[case.name].query.checksums["spark"]})

    def interrupt(self) -> None:
        """Stop the query."""
        self._stopped = True
        if self._query is not None:
            self._query.stop()

    def _folders(self, stream: StreamCase) -> Sequence[Path]:
        """The folders of the streams, written before the time starts."""
        return stream.files.folders

    def _source(self, folder: Path, stream: StreamCase) -> DataFrame:
        reader = self.engines.spark().readStream.schema(_schema(stream.files.folders[0]))
        if stream.pace is None:
            reader = reader.option("maxFilesPerTrigger", stream.files_per_trigger)
        return self._marked(reader.parquet(str(folder)), stream)

    def _marked(self, rows: DataFrame, stream: StreamCase) -> DataFrame:
        lateness = stream.tables.lateness_ms
        return rows if lateness is None else rows.withWatermark("ts", f"{lateness} milliseconds")

    def _start(self, frame: DataFrame, checkpoint: Path, stream: StreamCase) -> StreamingQuery:
        if self.answers:
            sums = stream.query.checksums["spark"].items()
            frame = frame.observe(ANSWERS, *(expr(sql).alias(name) for name, sql in sums))
        writer = frame.writeStream.format("noop").outputMode("append").option("checkpointLocation", str(checkpoint))
        if stream.pace is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="0 seconds").start()

    def _measure(self, stream: StreamCase, feed: _PacedFeed | None, seconds: float) -> None:
        assert self._query is not None
        progresses = self._query.recentProgress
        self._batches = batches_of([json.loads(progress.json) for progress in progresses], ANSWERS)
        full, fill = (stream.batch_rows, stream.files.fill) if feed is None else (0, 0)
        measured = steady(self._batches, full, fill)
        self._details = figures(self._batches, full, fill)
        self._seconds = [batch.seconds for batch in measured]
        numbers = {batch.number for batch in measured}
        self._details |= self.own_details([progress for progress in progresses if progress.batchId in numbers])
        if feed is not None:
            self._details |= row_latencies(self._batches, *feed.arrivals())
        else:
            self._details = {RATE: stream.files.rows / seconds, **self._details}
        if self._stopped:  # with less in state than at the end, micro-batches are shorter
            self._details.pop(STEADY, None)
        self._query = None

    def _views(self, case: StreamCase, streams: Sequence[DataFrame]) -> dict[str, str]:
        """A temporary view for each stream, by the streams' names."""
        names = {name: f"stream_{name}" for name in case.tables.names}
        for view, frame in zip(names.values(), streams, strict=True):
            frame.createOrReplaceTempView(view)
        return names


@dataclass
class OursStream(SparkStream):
    """`Session.sql`."""

    _sql: str = ""

    def frame(self, case: StreamCase, streams: Sequence[DataFrame]) -> DataFrame:
        """The statement over the streams as temporary views."""
        self._sql = self.statement(case).format(**self._views(case, streams))
        return self.engines.session().sql(self._sql)

    def statement(self, case: StreamCase) -> str:
        """What it runs; {name} stands for the stream of that name."""
        return case.query.ours

    def own_details(self, measured: Sequence[StreamingQueryProgress]) -> Mapping[str, float]:
        """The most rows in state, and the median seconds of the operator in a micro-batch, all tasks together."""
        from sqlext.streams import figures_of

        found = [own for progress in measured if (own := figures_of(progress))]
        if not found:
            return {}
        seconds = float(np.median([own["operator_ms"] for own in found])) / 1_000
        return {"state rows": float(max(own["state_rows"] for own in found)), "operator s": seconds}

    def plan(self) -> str:
        """What EXPLAIN says, but for the reasons and the hints, which no run depends on."""
        (text,) = self.engines.session().sql(f"EXPLAIN {self._sql}").first() or ("",)
        return "\n".join(line.replace(f" [{UMJOIN}]", "") for line in str(text).splitlines() if "(why:" not in line)


class CsvStream(OursStream):
    """`Session.sql` over CSV files, which Flink reads too."""

    def _folders(self, stream: StreamCase) -> Sequence[Path]:
        return stream.files.csv_folders()

    def _source(self, folder: Path, stream: StreamCase) -> DataFrame:
        schema = _schema(stream.files.folders[0])
        numbers = ", ".join(f"{'ms' if name == 'ts' else name} BIGINT" for name in schema.names)
        reader = self.engines.spark().readStream.schema(numbers).option("maxFilesPerTrigger", stream.files_per_trigger)
        times = {"ts": "timestamp_millis(ms) AS ts", "te": "timestamp_millis(te) AS te"}
        return self._marked(
            reader.csv(str(folder)).selectExpr(*(times.get(name, name) for name in schema.names)), stream
        )


class HashedStream(OursStream):
    """`Session.sql` with each key in one task."""

    def statement(self, case: StreamCase) -> str:
        """Without the hint."""
        return case.query.ours.replace(SPREAD, "")


class UncompensatedStream(OursStream):
    """`Session.sql` with early answers that are what has come."""

    def statement(self, case: StreamCase) -> str:
        """With another estimator."""
        return case.query.ours.replace(COMPENSATED, UNCOMPENSATED)


def state_settings(cores: int, memory_mb: int) -> dict[str, str]:
    """Spark's settings of every contestant with state: `cores` partitions, `memory_mb` for RocksDB."""
    memory = {STATE + "rocksdb.maxMemoryUsageMB": str(memory_mb)}
    return {**STATE_SETTINGS, **memory, "spark.sql.shuffle.partitions": str(cores)}


def ours_settings(cores: int, memory_mb: int) -> dict[str, str]:
    """What ours wants to be set before a stream starts."""
    from sqlext import stream_settings

    return {**state_settings(cores, memory_mb), **stream_settings(cores=cores, memory_mb=memory_mb)}


class OperatorStream(OursStream):
    """`Session.sql` with the hint that asks for one operator for all joins."""

    def statement(self, case: StreamCase) -> str:
        """With the hint."""
        return case.query.ours.replace("SELECT", f"SELECT /*+ {UMJOIN} */", 1)


class FloorStream(SparkStream):
    """The emptiest stateful operator in Python (floor.py)."""

    answers = False

    def frame(self, case: StreamCase, streams: Sequence[DataFrame]) -> DataFrame:
        """Running counts of all streams."""
        from benchmarks.stream.floor import counted  # here: Spark 3.5 has no stateful processors

        return counted(streams, self.partitions)


class SparkFloorStream(SparkStream):
    """The emptiest stateful operator of Spark itself: a count in each day and eighth of the keys."""

    answers = False

    def frame(self, case: StreamCase, streams: Sequence[DataFrame]) -> DataFrame:
        """Counts of both streams."""
        from benchmarks.stream.floor import union

        both = union(streams)
        return both.groupBy(window("ts", "1 day"), expr("k % 8")).count()


class JoinStream(SparkStream):
    """Spark's stream-stream joins; for a window then an aggregate for each FROM row."""

    def frame(self, case: StreamCase, streams: Sequence[DataFrame]) -> DataFrame:
        """Spark's statement over the streams as temporary views."""
        return self.engines.spark().sql(case.query.spark.format(**self._views(case, streams)))


def table_statement(name: str, cases: StreamCases, case: Case) -> Statement:
    """What the contestants of TABLES run: the whole answer at once, over the streams' rows as tables, with settings as
    Spark and DuckDB ship them."""
    stream = cases[case.name]
    folders = dict(zip(stream.tables.names, stream.files.folders, strict=True))
    query = stream.query
    if name == "duckdb":
        files = {stream: in_duckdb(f"{folder}/*.parquet") for stream, folder in folders.items()}
        return Statement(query.duckdb.format(**files), query.checksums["duckdb"])
    text = query.ours.format(**{stream: f"table_{stream}" for stream in folders})
    views = {f"table_{stream}": folder for stream, folder in folders.items()}
    return Statement(text, query.checksums["spark"], tables=views, settings={"spark.sql.session.timeZone": "UTC"})


TABLES: Mapping[str, type[DuckSql | SessionSql]] = {"duckdb": DuckSql, "ours-batch": SessionSql}


def _schema(folder: Path) -> StructType:
    """Of the streams of a case, which all have the columns of the first one."""
    schema: StructType = from_arrow_schema(pq.read_schema(min(folder.iterdir())))
    return schema


def _bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder; Spark's maintenance may delete some meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total


class _PacedFeed:
    """Puts the i-th files of all streams into new folders every `pace` seconds."""

    def __init__(self, stream: StreamCase, scratch: Path) -> None:
        self.stream = stream
        self.folders = tuple(scratch / name for name in stream.files.names)
        for folder in self.folders:
            folder.mkdir(parents=True)
        self._times: list[float] = []

    def run(self, query: StreamingQuery) -> None:
        """Feed all files, wait until they are answered, and stop the query."""
        files = [sorted(folder.glob("*.parquet")) for folder in self.stream.files.folders]
        begin = time.time()
        for place, pair in enumerate(zip(*files, strict=True)):
            time.sleep(max(0.0, begin + place * (self.stream.pace or 0.0) - time.time()))
            if not query.isActive:
                break
            for source, folder in zip(pair, self.folders, strict=True):
                hidden = folder / f"_{source.name}"  # Spark's file source skips such names
                shutil.copyfile(source, hidden)
                hidden.rename(folder / source.name)
            self._times.append(time.time())
        if query.isActive:
            query.processAllAvailable()
        query.stop()

    def arrivals(self) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.float64]]]:
        """The event time (ms) and the arrival (seconds since 1970) of each FROM row that was fed."""
        times = milliseconds(self.stream.tables.tables()[0])
        places = np.arange(len(times)) // self.stream.tables.file_rows
        fed = places < len(self._times)
        return times[fed], np.asarray(self._times)[places[fed]]
