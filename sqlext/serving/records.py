"""Files of records that are appended, each with a checksum: what the journal and its snapshots are written in.

A file begins with a line that names its form. A record is a head (the lengths of its two parts, the checksum of these,
the checksum of the parts), a part in JSON that says what it is, a part of bytes (Arrow's schema or record batch), and
a last byte that is never zero. A write that power or a signal has cut off leaves a record that ends early, or whose
end is zeros; anything else that does not fit its checksum was changed later.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlext_planner.errors import ConfigurationError

_HEAD = struct.Struct("<IIII")
_LENGTHS = struct.Struct("<II")
_END = b"\xa5"
#: Rows in a record of a snapshot: a record's length has 32 bits.
_ROWS = 1 << 16

_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class Record:
    """What it is, and its bytes."""

    meta: dict[str, Any]
    body: bytes | memoryview | pa.Buffer = b""

    def encoded(self) -> bytes:
        """The record as it stands in a file."""
        meta = json.dumps(self.meta, separators=(",", ":")).encode()
        lengths = _LENGTHS.pack(len(meta), len(self.body))
        head = _HEAD.pack(len(meta), len(self.body), zlib.crc32(lengths), zlib.crc32(self.body, zlib.crc32(meta)))
        return b"".join((head, meta, self.body, _END))


def damaged(path: Path, at: int, what: str) -> ConfigurationError:
    """The error of a file that is not what was written."""
    return ConfigurationError(
        f"{path} is damaged at byte {at}: {what}",
        condition="journal-damaged",
        help="bring the folder back from a copy, or give another --journal folder and push the rows again",
    )


class RecordReader:
    """The records of a file, in order. `end` is where the last one that was read ends.

    Raises ConfigurationError (`journal-damaged`) for records that were changed. With `may_be_torn` the file may end in
    a record that was not written as a whole: it is left out.
    """

    def __init__(self, path: Path, title: bytes, *, may_be_torn: bool = False) -> None:
        self._path, self._title, self._may_be_torn = path, title, may_be_torn
        self.end = 0

    def __iter__(self) -> Iterator[Record]:
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            title = file.read(len(self._title))
            if title != self._title:
                if self._may_be_torn and (title == self._title[: len(title)] or self._is_zero(file, 0)):
                    return
                raise damaged(self._path, 0, f"it does not begin with '{self._title.decode().strip()}'")
            self.end = file.tell()
            while self.end < size:
                record = self._next(file, size)
                if record is None:
                    if not self._may_be_torn:
                        raise damaged(self._path, self.end, "it ends within a record")
                    return
                self.end = file.tell()
                yield record

    def _next(self, file: Any, size: int) -> Record | None:
        """The record at the place of the file; None for one that was not written as a whole."""
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        meta_size, body_size, checked, sums = _HEAD.unpack(head)
        if zlib.crc32(head[: _LENGTHS.size]) != checked:
            if self._is_zero(file, self.end):
                return None
            raise damaged(self._path, self.end, "the lengths of a record do not fit their checksum")
        end = self.end + _HEAD.size + meta_size + body_size + len(_END)
        if end > size:
            return None
        meta, body, last = file.read(meta_size), file.read(body_size), file.read(len(_END))
        if last != _END:
            if self._is_zero(file, end - len(_END)):
                return None
            raise damaged(self._path, self.end, "a record has no end")
        if zlib.crc32(body, zlib.crc32(meta)) != sums:
            raise damaged(self._path, self.end, "a record does not fit its checksum")
        return Record(json.loads(meta), body)

    @staticmethod
    def _is_zero(file: Any, at: int) -> bool:
        """Whether the file has zeros only from a place on, and stays where it is told."""
        file.seek(at)
        return all(not any(part) for part in iter(lambda: file.read(1 << 20), b""))


class RecordWriter:
    """A new file of records, or one that goes on. What `append` returns from is on disk."""

    def __init__(self, path: Path, title: bytes, *, end: int = 0) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        #: Where the last record that is on disk ends.
        self.end = end
        os.ftruncate(self._file, end)
        self._is_lost = False
        if end < len(title):
            self._write(title)
            sync_folder(path.parent)

    def append(self, records: Iterable[Record]) -> int:
        """Add records and wait for the disk; returns their bytes. Raises OSError; then none of them is there."""
        data = b"".join(record.encoded() for record in records)
        self._write(data)
        return len(data)

    def _write(self, data: bytes) -> None:
        if self._is_lost:
            raise OSError(5, "the disk has failed before, and what it holds is not known")
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            self._take_back()
            raise
        try:
            _sync(self._file)
        except OSError:
            # After a failed sync nobody knows which pages are on disk, and a second one may say that all are.
            self._is_lost = True
            raise
        self.end += len(data)

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._file, self.end)
        except OSError:
            self._is_lost = True

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are on disk."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def batch_records(meta: dict[str, Any], batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    """Rows of one schema as records: the schema, then the rows."""
    is_first = True
    for batch in batches:
        if is_first:
            yield Record({**meta, "schema": True}, batch.schema.serialize())
            is_first = False
        for start in range(0, batch.num_rows, _ROWS):
            yield Record(meta, batch.slice(start, _ROWS).serialize())


def read_schema(record: Record) -> pa.Schema:
    """The schema of a record."""
    return pa.ipc.read_schema(pa.py_buffer(record.body))


def read_batch(record: Record, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a record."""
    return pa.ipc.read_record_batch(pa.py_buffer(record.body), schema)
