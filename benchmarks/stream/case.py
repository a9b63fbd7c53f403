"""A case of the suite `stream`: its streams, its statements, and how it is fed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.harness.suite import Case
from benchmarks.stream.files import (
    StreamFiles,
    closing_row,
    cut,
    milliseconds,
    write_merged,
    write_stream,
    written_once,
)
from benchmarks.stream.sql import StreamQuery


@dataclass(frozen=True, kw_only=True)
class StreamSource(ABC):
    """Generated streams: (id, keys..., ts, v) each, or (id, keys..., ts, te, v), in the order of arrival.

    `file_rows` rows of each stream arrive between two cuts. `fill` rows of those that are filled come first, in files
    of `fill_file` rows; to each of them belongs a file of one row in the others, which moves the watermark on. The rows
    of all are dealt out to `readers` CSV files too.
    """

    fill_file: int = 500_000
    readers: int = 2
    seed: int = 1

    #: Whether each stream ends with a row so far in the future that every other row is answered.
    closes: ClassVar[bool] = True

    if TYPE_CHECKING:  # fields of some, computed by others

        @property
        def rows(self) -> int:
            """Rows of each stream that are measured."""

        @property
        def file_rows(self) -> int:
            """Rows of a file."""

        @property
        def fill(self) -> int:
            """Rows of each filled stream before those."""

    @property
    @abstractmethod
    def folder(self) -> str:
        """A folder name that is unique for each data set."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The streams."""

    @property
    @abstractmethod
    def lateness_ms(self) -> int | None:
        """The watermarks' delay; None: the query needs no watermark."""

    @property
    @abstractmethod
    def query(self) -> StreamQuery:
        """What is asked about them."""

    @abstractmethod
    def tiny(self) -> StreamSource:
        """A few rows of the same kind: what a contestant runs first, to compile its kernels. Hashable."""

    def stream(self, number: int) -> pa.Table:
        """The rows of a stream, without the closing row."""
        raise NotImplementedError

    def is_filled(self, number: int) -> bool:
        """Whether a stream has a fill."""
        return True

    def closing_time(self, streams: Sequence[pa.Table]) -> int:
        """The event time (ms) of the closing rows, if there are any."""
        raise NotImplementedError

    def tables(self) -> tuple[pa.Table, ...]:
        """The rows of all, without closing rows and those beside the fill."""
        return tuple(map(self.stream, range(len(self.names))))

    def write(self, root: Path) -> StreamFiles:
        """The files below `root`; written only if they are missing."""
        folder, numbers = written_once(root, self.folder, self._write), range(len(self.names))
        fills = -(-self.fill // self.fill_file)
        files = fills - (-self.rows // self.file_rows) + self.closes
        rows = len(numbers) * self.rows + self.fill * sum(map(self.is_filled, numbers))
        return StreamFiles(folder, self.names, files, fills, rows)

    def _write(self, folder: Path) -> None:
        streams, arrivals = self.tables(), []
        filled = next(stream for number, stream in enumerate(streams) if self.is_filled(number))
        closing = [closing_row(streams[0], self.closing_time(streams))] if self.closes else []
        for number, (name, stream) in enumerate(zip(self.names, streams, strict=True)):
            pieces = self._filled(stream) if self.is_filled(number) else self._beside(stream, filled)
            write_stream([*pieces, *closing], folder / name)
            before = 0 if self.is_filled(number) else self.fill
            arrivals.append(np.arange(len(stream)) + before + number / len(streams))
        write_merged(streams, arrivals, folder / "merged", self.readers)

    def _filled(self, stream: pa.Table) -> Iterator[pa.Table]:
        """The files of a stream whose first rows are the fill."""
        yield from cut(stream.slice(0, self.fill), self.fill_file)
        yield from cut(stream.slice(self.fill), self.file_rows)

    def _beside(self, stream: pa.Table, filled: pa.Table) -> Iterator[pa.Table]:
        """The files of a stream without a fill."""
        times = milliseconds(filled)
        for start in range(0, self.fill, self.fill_file):
            yield closing_row(stream, int(times[min(self.fill, start + self.fill_file) - 1]))
        yield from cut(stream, self.file_rows)


@dataclass(frozen=True)
class StreamCase:
    """The streams of a case, and how they are fed: `files_per_trigger` files of each stream make a micro-batch, or
    with `pace` (seconds) a file of each stream arrives that often."""

    tables: StreamSource
    files: StreamFiles
    files_per_trigger: int = 1
    pace: float | None = None

    @property
    def query(self) -> StreamQuery:
        """What is asked."""
        return self.tables.query

    @property
    def batch_rows(self) -> int:
        """Rows of a full micro-batch, all streams together."""
        return len(self.files.names) * self.tables.file_rows * self.files_per_trigger


#: The streams by the names of the cases.
StreamCases = dict[str, StreamCase]


class Planned(NamedTuple):
    """A case whose data are not written yet."""

    case: Case
    tables: StreamSource
    files_per_trigger: int = 1
    pace: float | None = None
