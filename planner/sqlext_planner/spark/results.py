"""The rows of a DataFrame as text that streams, or as one Parquet file.

Of the text, the first of it comes before the last row is computed. Spark itself offers an iterator over partitions,
each computed and held as a whole, one job after the other, or all rows at once. Here one job computes all partitions,
and its tasks send their text to this process over connections of their own. The text of the first unfinished partition
goes on to the reader as it comes. That of later ones waits in files, so that no task waits; if too much waits there,
their tasks do. This process needs the same memory for any result.

Parquet is written by Spark, a file for each partition. Their row groups are then copied into one file as they are, by
Parquet's own writer: nothing is decoded again, so the file holds what Spark wrote, types and statistics included, in
the order of the rows.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import arrow_table, to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


#: What the text is: csv, a line a row; lines, a JSON object a line; array, a JSON object with a comma before it.
Layout = Literal["csv", "lines", "array"]

#: Text of later partitions that waits in files; then their tasks wait.
MOST_WAITING = 4 << 30
#: A result that has no more rows by its plan is collected: that starts no Python worker.
_FEW_ROWS = 10_000
_TOKEN_BYTES = 32
_COPIED_BYTES = 1 << 20
#: A partition that was computed has so long to arrive.
_ARRIVAL_SECONDS = 30
_BACKLOG = 128
#: Connections that have not said yet what they are; beyond that the oldest is closed.
_MOST_GUESTS = 256
_TAGS = count(1)


def csv_header(names: list[str]) -> bytes:
    """The first line of a CSV file."""
    from sqlext_operators.results.text import csv_header

    return csv_header(names)


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values as Python has them; dates and times beyond its calendar, which ends in the year 9999, as text."""
    from sqlext_operators.columns.times import python_values

    return python_values(column)


@contextmanager
def text_stream(frame: DataFrame, layout: Layout, most_waiting: int = MOST_WAITING) -> Iterator[Iterator[bytes]]:
    """Pieces of the text of all rows, in the order of the rows. Leaving the block ends what still runs.

    The iterator raises what the job raises.
    """
    if frame.isLocal() or _most_rows(frame) <= _FEW_ROWS:
        yield _collected(frame, layout)
        return
    with _Receiver(frame, layout, most_waiting) as receiver:
        yield receiver.pieces()


def _collected(frame: DataFrame, layout: Layout) -> Iterator[bytes]:
    from sqlext_operators.results.text import TextSpec, text_of

    table = arrow_table(frame)
    for batch in table.to_batches(_FEW_ROWS):
        yield bytes(text_of(TextSpec(layout, table.schema), batch))


def _most_rows(frame: DataFrame) -> float:
    """The most rows that the frame can have by its plan (LIMIT, an aggregate without keys); infinity if unknown."""
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return float("inf")
    rows = plan.queryExecution().optimizedPlan().maxRows()
    return int(rows.get()) if rows.isDefined() else float("inf")


@dataclass
class _Incoming:
    """The connection of one partition's task, and the file with what came before its turn."""

    connection: socket.socket
    partition: int
    waiting: IO[bytes] | None = None
    size: int = 0
    #: Nothing more comes: the partition is whole, or its task has failed.
    is_over: bool = False


@dataclass(eq=False)
class _Guest:
    """A connection that has not said yet what it is, and what came of its first bytes."""

    connection: socket.socket
    start: bytes = b""


class _Job(threading.Thread):
    """Computes the rows, in a thread of its own; `bell` is closed when that is over."""

    def __init__(self, frame: DataFrame, task: Any, bell: socket.socket) -> None:
        super().__init__(daemon=True)
        self._frame, self._task, self._bell = frame, task, bell
        self._tag = f"sqlext-result-{next(_TAGS)}"
        self._context = frame.sparkSession.sparkContext
        self.error: BaseException | None = None
        self.is_over = False
        self.partitions = 0

    def run(self) -> None:
        try:
            self._context.addJobTag(self._tag)
            names = [f"c{place}" for place in range(len(self._frame.columns))]  # two columns may have one name
            self.partitions = len(self._frame.toDF(*names).mapInArrow(self._task, "rows bigint").collect())
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True
            self._bell.close()

    def cancel(self) -> None:
        if not self.is_over:
            with suppress(Exception):  # a Spark that is gone has no jobs
                self._context.cancelJobsWithTag(self._tag)


class _Receiver:
    """Starts the job and receives what its tasks send. For one thread."""

    def __init__(self, frame: DataFrame, layout: Layout, most_waiting: int) -> None:
        conf = frame.sparkSession.conf
        self._most_waiting = most_waiting
        self._folder = (conf.get("spark.local.dir", None) or tempfile.gettempdir()).split(",")[0]
        self._token = secrets.token_bytes(_TOKEN_BYTES)
        self._incoming: dict[int, _Incoming] = {}
        self._guests: list[_Guest] = []
        self._next = 0
        self._waiting_bytes = 0
        self._selector = selectors.DefaultSelector()
        host = conf.get("spark.driver.host", None) or "127.0.0.1"
        self._listener = socket.create_server((host, 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._bell, bell = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        address = (host, self._listener.getsockname()[1])
        self._job = _Job(frame, _task(frame, layout, address, self._token), bell)

    def __enter__(self) -> _Receiver:
        self._job.start()
        return self

    def __exit__(self, *caught: object) -> None:
        self._job.cancel()
        for incoming in self._incoming.values():
            self._close(incoming)
        for guest in self._guests:
            guest.connection.close()
        for end in (self._listener, self._bell, self._selector):
            end.close()

    def pieces(self) -> Iterator[bytes]:
        """The text, in the order of the rows."""
        while not self._job.is_over:
            yield from self._step(None)
        if self._job.error is not None:
            raise self._job.error
        yield from self._late()
        for partition in sorted(self._incoming):
            incoming = self._incoming[partition]
            yield from self._waited(incoming)
            while not incoming.is_over:
                yield from self._received(incoming)

    def _late(self) -> Iterator[bytes]:
        """The job is over, and what its last tasks have sent may still be on its way."""
        self._selector.unregister(self._bell)
        end = time.monotonic() + _ARRIVAL_SECONDS
        while self._next + len(self._incoming) < self._job.partitions:
            if (left := end - time.monotonic()) <= 0:
                missing = self._job.partitions - self._next - len(self._incoming)
                raise ConnectionError(f"{missing} of {self._job.partitions} partitions of the result did not arrive")
            yield from self._step(left)

    def _step(self, seconds: float | None) -> Iterator[bytes]:
        """Wait for what comes next, for so long at most."""
        current = self._incoming.get(self._next)
        if current is not None:
            yield from self._waited(current)
            if current.is_over:
                self._close(self._incoming.pop(self._next))
                self._next += 1
                return
            if self._waiting_bytes >= self._most_waiting:
                yield from self._received(current)
                return
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, _Guest):
                self._greet(key.data)
            elif key.fileobj is not self._bell:
                yield from self._ready(key.data)

    def _ready(self, incoming: _Incoming) -> Iterator[bytes]:
        for piece in self._received(incoming):
            if incoming.partition == self._next:
                yield piece
            else:
                self._keep(incoming, piece)

    def _received(self, incoming: _Incoming) -> Iterator[bytes]:
        """The next frame."""
        from sqlext_operators.results.text import LENGTH

        header = _exactly(incoming.connection, LENGTH.size)
        length = LENGTH.unpack(header)[0] if header is not None else 0
        piece = _exactly(incoming.connection, length) if length else None
        if piece is not None:
            yield piece
        else:
            incoming.is_over = True
            self._selector.unregister(incoming.connection)

    def _accept(self) -> None:
        """Take new connections. No one is waited for: any process of this machine may connect and say nothing."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            guest = _Guest(connection)
            self._guests.append(guest)
            self._selector.register(connection, selectors.EVENT_READ, guest)
            self._greet(guest)
            if len(self._guests) > _MOST_GUESTS:
                self._dismiss(self._guests[0]).close()

    def _greet(self, guest: _Guest) -> None:
        """Read on how a connection starts; what does not start with the token is no task."""
        from sqlext_operators.results.text import LENGTH

        size = _TOKEN_BYTES + LENGTH.size
        try:
            more = guest.connection.recv(size - len(guest.start))
        except BlockingIOError:
            return
        except OSError:  # a task that was killed
            more = b""
        guest.start += more
        if more and len(guest.start) < size:
            return
        connection = self._dismiss(guest)
        partition = LENGTH.unpack(guest.start[_TOKEN_BYTES:])[0] if more else -1
        if not hmac.compare_digest(guest.start[:_TOKEN_BYTES], self._token) or not self._is_new(partition):
            connection.close()
            return
        connection.setblocking(True)
        self._incoming[partition] = _Incoming(connection, partition)
        self._selector.register(connection, selectors.EVENT_READ, self._incoming[partition])

    def _dismiss(self, guest: _Guest) -> socket.socket:
        self._guests.remove(guest)
        self._selector.unregister(guest.connection)
        return guest.connection

    def _is_new(self, partition: int) -> bool:
        """A cluster may run a task again; the text of the first one may have gone to the reader already."""
        return partition >= self._next and partition not in self._incoming

    def _keep(self, incoming: _Incoming, piece: bytes) -> None:
        try:
            if incoming.waiting is None:
                incoming.waiting = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by `_forget`
            incoming.waiting.write(piece)
        except OSError as error:
            raise ConfigurationError(
                f"the result cannot wait in the temporary folder {self._folder}: {error.strerror}",
                condition="temporary-folder",
                help="free some space there, or point spark.local.dir to a folder with enough space",
            ) from error
        incoming.size += len(piece)
        self._waiting_bytes += len(piece)

    def _waited(self, incoming: _Incoming) -> Iterator[bytes]:
        """What is in the file, which is then gone."""
        if incoming.waiting is None:
            return
        incoming.waiting.seek(0)
        while piece := incoming.waiting.read(_COPIED_BYTES):
            yield piece
        self._forget(incoming)

    def _forget(self, incoming: _Incoming) -> None:
        if incoming.waiting is not None:
            incoming.waiting.close()
            self._waiting_bytes -= incoming.size
            incoming.waiting, incoming.size = None, 0

    def _close(self, incoming: _Incoming) -> None:
        self._forget(incoming)
        incoming.connection.close()


def _task(frame: DataFrame, layout: Layout, address: tuple[str, int], token: bytes) -> Any:
    """What `mapInArrow` runs."""
    from sqlext_operators.results.text import SendSpec, TextSpec, send_rows

    from sqlext_planner.spark.workers import worker_function

    schema = to_arrow_schema(frame.schema)
    return worker_function(partial(send_rows, SendSpec(*address, token, TextSpec(layout, schema))))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None if the other end sends no more."""
    received = bytearray(size)
    view, filled = memoryview(received), 0
    while filled < size:
        try:
            got = connection.recv_into(view[filled:])
        except OSError:  # a task that was killed
            got = 0
        if got == 0:
            return None
        filled += got
    return bytes(received)


def write_one_parquet(frame: DataFrame, folder: Path) -> Path:
    """Write the rows below `folder`, an empty folder of this machine; returns the file."""
    parts = folder / "parts"
    frame.write.parquet(_location(parts))
    files = sorted(parts.glob("part-*.parquet"))
    if len(files) == 1:
        return files[0]
    joined = folder / "joined.parquet"
    _joined_files(frame.sparkSession, files, joined)
    shutil.rmtree(parts)
    return joined


def _joined_files(spark: SparkSession, files: list[Path], joined: Path) -> None:
    """One file with the row groups of all; the schema and the metadata are those of the first."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.parquet.hadoop
    conf = spark._jsparkSession.sessionState().newHadoopConf()

    def opened(kind: Any, path: Path) -> Any:
        return kind.fromPath(jvm.org.apache.hadoop.fs.Path(_location(path)), conf)

    inputs = [opened(hadoop.util.HadoopInputFile, path) for path in files]
    reader = hadoop.ParquetFileReader.open(inputs[0])
    try:
        metadata = reader.getFooter().getFileMetaData()
    finally:
        reader.close()
    writer = hadoop.ParquetFileWriter(
        opened(hadoop.util.HadoopOutputFile, joined),
        metadata.getSchema(),
        hadoop.ParquetFileWriter.Mode.CREATE,
        hadoop.ParquetWriter.DEFAULT_BLOCK_SIZE,
        hadoop.ParquetWriter.MAX_PADDING_SIZE_DEFAULT,
    )
    writer.start()
    for one in inputs:
        writer.appendFile(one)
    writer.end(metadata.getKeyValueMetaData())


def _location(path: Path) -> str:
    """For Hadoop's Path, which takes blanks and percent signs as they are."""
    return f"file://{path.resolve()}"
