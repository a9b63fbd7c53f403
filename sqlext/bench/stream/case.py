"""A case of the suite `stream`: its streams, its statements, and how it is fed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from sqlext.bench.harness.suite import Case
from sqlext.bench.stream.files import StreamFiles
from sqlext.bench.stream.sql import StreamQuery


class StreamSource(Protocol):
    """Generated streams: (id, keys..., ts, v) each, or (id, keys..., ts, te, v)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""

    @property
    def file_rows(self) -> int:
        """Rows of each stream that arrive between two cuts."""

    @property
    def lateness_ms(self) -> int | None:
        """The watermarks' delay; None: the query needs no watermark."""

    @property
    def query(self) -> StreamQuery:
        """What is asked about them."""

    def tiny(self) -> StreamSource:
        """A few rows of the same kind: what a contestant runs first, to compile its kernels. Hashable."""

    def tables(self) -> tuple[pa.Table, ...]:
        """The rows in the order of arrival, without closing rows."""

    def write(self, root: Path) -> StreamFiles:
        """The files below `root`; written only if they are missing."""


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
