"""Rows that arrive out of order, as streams of files and as tables, and statements over both."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from sqlext_planner.errors import AnalysisError, UnsupportedError

from sqlext import Session, stream_settings

SCHEMA = "k int, ts timestamp, v bigint, x double, s string"
ARROW = pa.schema(
    [("k", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
)
START = 1_700_000_000_000_000
SECOND = 1_000_000
#: The watermark's delay.
DELAY = 5
#: Seconds after all other rows: the time of the row that closes a stream.
CLOSING = 100_000

Row = tuple[int | None, int, int | None, float | None, str | None]


def arrivals(seed: int, count: int, *, keys: int = 4, seconds: int = 60) -> list[Row]:
    """Rows in the order of arrival, up to `DELAY` seconds late, with many equal times; the last one closes."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(seconds * 4) for _ in range(count))
    rows: list[tuple[float, Row]] = []
    for time in times:
        value = rng.choice([None, *range(-3, 4)])
        row = (
            rng.choice([None, *range(keys)]),
            START + time * SECOND // 4,
            value,
            None if value is None else value / 3,
            rng.choice([None, "", "a", "b"]),
        )
        rows.append((time / 4 + rng.random() * (DELAY - 0.5), row))
    found = [row for _, row in sorted(rows, key=lambda item: item[0])]
    return [*found, (0, START + CLOSING * SECOND, 0, 0.0, "")]


def write_files(folder: Path, rows: Sequence[tuple[Any, ...]], files: int, schema: pa.Schema = ARROW) -> None:
    """The rows in the order of arrival, as files with ascending names."""
    size = -(-len(rows) // files)
    write_batches(folder, [rows[number * size : (number + 1) * size] for number in range(files)], schema)


def write_batches(
    folder: Path, batches: Sequence[Sequence[tuple[Any, ...]]], schema: pa.Schema = ARROW, first: int = 0
) -> None:
    """A file for the rows of each micro-batch; their names and ages ascend from `first`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(batches, first):
        columns = [pa.array([row[i] for row in part], field.type) for i, field in enumerate(schema)]
        path = folder / f"{number:04d}.parquet"
        pq.write_table(pa.table(columns, schema=schema), path)
        os.utime(path, (number, number))  # a stream reads files by their age


@contextmanager
def stream_conf(spark: SparkSession, **more: str) -> Iterator[None]:
    """Spark with the settings that statements over streams need."""
    wanted = {**stream_settings(cores=2), **more}
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def register(spark: SparkSession, name: str, folder: Path, *, delay: int | None = DELAY, schema: str = SCHEMA) -> None:
    """The view `name` over the files as a stream, a file a micro-batch, and `name`_t as a table."""
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    if delay is not None:
        stream = stream.withWatermark("ts", f"{delay} seconds")
    stream.createOrReplaceTempView(name)
    # one file a partition, in the order of names: the input order is that of arrival
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    whole = pa.concat_tables([pq.read_table(file) for file in files])
    table = spark.createDataFrame(whole.combine_chunks(), schema)  # Spark 4.3 reads no chunk behind an empty one
    table.coalesce(1).createOrReplaceTempView(f"{name}_t")


def started(frame: DataFrame, folder: Path) -> StreamingQuery:
    """A query that writes the stream's rows to Parquet files, until all files are read."""
    writer = frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).writeStream.format("parquet")
    writer = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.outputMode("append").trigger(availableNow=True).start()


def streamed(frame: DataFrame, folder: Path) -> list[tuple[Any, ...]]:
    """All rows that the stream gives, sorted."""
    query = started(frame, folder)
    query.awaitTermination()
    return sorted_rows(frame.sparkSession.read.parquet(str(folder / "out")))


def sorted_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows but the one that closes a stream, which is never complete; in an order that takes any values. Doubles
    have 12 digits: the last ones depend on the order in which values are added."""
    closing = datetime.fromtimestamp(START // SECOND + CLOSING, UTC).replace(tzinfo=None)
    rows = (tuple(map(rounded, row)) for row in frame.collect())  # `in` of a Row looks for names
    return sorted((row for row in rows if closing not in row), key=repr)


def rounded(value: Any) -> Any:
    """A value as `sorted_rows` gives it."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def check_refused(session: Session, text: str, message: str) -> None:
    """The statement is refused with a message like this and with help; the error points at what is within [[ ]]."""
    start, end = text.index("[["), text.index("]]") - len("[[")
    with pytest.raises((AnalysisError, UnsupportedError), match=message) as caught:
        session.sql(text.replace("[[", "").replace("]]", ""))
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (start, end)
    assert caught.value.help


def drop_views(spark: SparkSession, *names: str) -> None:
    for name in names:
        spark.catalog.dropTempView(name)
        spark.catalog.dropTempView(f"{name}_t")
