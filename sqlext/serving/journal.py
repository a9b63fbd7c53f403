"""The journal of a server: pushed rows on disk before they are acknowledged, and snapshots that bound it.

A folder holds `journal-N.log` files, each with the pushes from number N on, and `snapshot-N.rows`, which has the rows
that were still kept after push N, by input of each deployment, and the last idempotency keys. A snapshot is written
beside and renamed; then the files of the journal before it are deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from sqlext_operators.serving.store import KeptState
from sqlext_planner.errors import ConfigurationError

from sqlext.serving.records import (
    Record,
    RecordReader,
    RecordWriter,
    batch_records,
    damaged,
    read_batch,
    read_schema,
    sync_folder,
)

_LOG_TITLE, _SNAPSHOT_TITLE = b"sqlext journal 1\n", b"sqlext snapshot 1\n"
#: A snapshot is due after so many bytes of pushes, or after as many as the last snapshot has.
SNAPSHOT_BYTES = 64 << 20

#: Idempotency keys with the digest of the push's body and the number of its rows, the oldest first.
Keys: TypeAlias = Mapping[str, tuple[str, int]]


@dataclass(frozen=True)
class Push:
    """Rows of a table; the client's key, if it sent one, with the digest of its body; and the clock when it came, in
    microseconds."""

    table: str
    rows: pa.RecordBatch
    key: str | None = None
    digest: str = ""
    clock: int = 0


@dataclass(frozen=True)
class SnapshotHead:
    """What a snapshot holds: the number of the last push in it, and the fingerprints of its deployments by name."""

    number: int
    deployments: Mapping[str, str]
    keys: Keys


class Journal:
    """The journal in a folder, of one process at a time. Its methods are called by one thread, but `write_snapshot`.

    Raises ConfigurationError for a folder that another process has open, that cannot be used, or that is damaged.
    """

    def __init__(self, folder: Path, snapshot_bytes: int = SNAPSHOT_BYTES) -> None:
        self.folder, self._snapshot_bytes = folder, snapshot_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
            for rest in folder.glob("*.new"):
                rest.unlink()
        except OSError as error:
            raise ConfigurationError(
                f"the journal {folder} cannot be used: {error.strerror}",
                condition="journal",
                help="give a folder that this user may write, on a local disk",
            ) from error
        snapshots = _numbered(folder, "snapshot-*.rows")
        self._snapshot = snapshots[-1] if snapshots else None
        self._writer: RecordWriter | None = None
        self._schemas: dict[str, pa.Schema] = {}
        #: The number of the last push.
        self.number = self._snapshot[0] if self._snapshot else 0
        #: Bytes of pushes behind the last snapshot.
        self.bytes = 0
        self._snapshot_size = self._snapshot[1].stat().st_size if self._snapshot else 0

    # -- reading

    def snapshot(self) -> SnapshotHead | None:
        """What the snapshot holds; None without one."""
        if self._snapshot is None:
            return None
        number, path = self._snapshot
        head = next(iter(RecordReader(path, _SNAPSHOT_TITLE)), None)
        if head is None or head.meta.get("number") != number:
            raise damaged(path, 0, "it does not say which pushes it holds")
        content = json.loads(bytes(head.body))
        keys = {key: (digest, count) for key, digest, count in content["keys"]}
        return SnapshotHead(number, content["deployments"], keys)

    def restored(self) -> Iterator[tuple[str, int, KeptState]]:
        """The deployment's name, the input's place, and a part of what it keeps; all of the snapshot is read."""
        if self._snapshot is None:
            return
        path = self._snapshot[1]
        reader = RecordReader(path, _SNAPSHOT_TITLE)
        schema: pa.Schema = None
        state = KeptState((), 0, 0)
        name, place, is_whole = "", 0, False
        for record in reader:
            meta = record.meta
            is_whole = "end" in meta
            if "input" in meta:
                name, place = meta["input"]
                state = KeptState((), meta["newest"], meta["cutoff"])
                yield name, place, state
            elif "schema" in meta:
                schema = read_schema(record)
            elif "rows" in meta:
                yield name, place, replace(state, batches=(read_batch(record, schema),))
        if not is_whole:
            raise damaged(path, reader.end, "its end is missing")

    def pushes(self) -> Iterator[Push]:
        """The pushes behind the snapshot. When all are read, the journal can be written."""
        logs = _numbered(self.folder, "journal-*.log")
        start = self.number
        end = 0
        for place, (first, path) in enumerate(logs):
            is_last = place == len(logs) - 1
            if not is_last and logs[place + 1][0] <= start + 1:
                path.unlink()  # the snapshot has all of it
                continue
            if first > self.number + 1:
                raise damaged(path, 0, f"the pushes from {self.number + 1} to {first - 1} are missing before it")
            self._schemas, number = {}, first - 1
            reader = RecordReader(path, _LOG_TITLE, may_be_torn=is_last)
            for record in reader:
                if "schema" in record.meta:
                    self._schemas[record.meta["table"]] = read_schema(record)
                    continue
                number += 1
                if record.meta["number"] != number:
                    raise damaged(path, reader.end, f"push {number} is missing")
                if number > self.number:
                    self.number = number
                    self.bytes += len(record.body)
                    yield self._push(record)
            end = reader.end
        if logs:
            self._writer = RecordWriter(logs[-1][1], _LOG_TITLE, end=end)
        else:
            self._begin()

    def _push(self, record: Record) -> Push:
        table = record.meta["table"]
        rows = read_batch(record, self._schemas[table])
        meta = record.meta
        return Push(table, rows, meta.get("key"), meta.get("digest", ""), meta["clock"])

    # -- writing

    def append(self, pushes: Sequence[Push]) -> None:
        """Write pushes and wait for the disk. Raises OSError; then none of them is in the journal."""
        assert self._writer is not None
        records, schemas, number = [], dict(self._schemas), self.number
        for push in pushes:
            if schemas.get(push.table) != push.rows.schema:
                schemas[push.table] = push.rows.schema
                records.append(Record({"schema": True, "table": push.table}, push.rows.schema.serialize()))
            number += 1
            meta: dict[str, Any] = {"number": number, "table": push.table, "clock": push.clock}
            if push.key is not None:
                meta |= {"key": push.key, "digest": push.digest}
            records.append(Record(meta, push.rows.serialize()))
        self.bytes += self._writer.append(records)
        self.number, self._schemas = number, schemas

    def is_snapshot_due(self) -> bool:
        """Whether the pushes behind the last snapshot are many."""
        return self.bytes >= max(self._snapshot_bytes, self._snapshot_size)

    def begin_snapshot(self) -> int:
        """Go on in a new file; returns the number of the last push before it, which a snapshot may now hold.
        Raises OSError; then the file is the one before."""
        before = self._writer
        self._begin()
        if before is not None:
            before.close()
        self.bytes = 0
        return self.number

    def _begin(self) -> None:
        path = self.folder / f"journal-{self.number + 1:020d}.log"
        try:
            self._writer = RecordWriter(path, _LOG_TITLE)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self._schemas = {}

    def write_snapshot(self, head: SnapshotHead, states: Mapping[str, Sequence[KeptState]]) -> int:
        """Write what was kept after a push, then delete the files before it; returns the snapshot's bytes. Any thread
        may do this while pushes go on, one at a time. Raises OSError; then the journal is as before."""
        path = self.folder / f"snapshot-{head.number:020d}.rows"
        beside = path.with_suffix(".new")
        beside.unlink(missing_ok=True)
        writer = RecordWriter(beside, _SNAPSHOT_TITLE)
        try:
            for part in _parts(_snapshot_records(head, states)):
                writer.append(part)
        finally:
            writer.close()
        beside.replace(path)
        sync_folder(self.folder)
        self._snapshot_size = path.stat().st_size
        for number, before in _numbered(self.folder, "snapshot-*.rows"):
            if number < head.number:
                before.unlink()
        logs = _numbered(self.folder, "journal-*.log")
        for (_, before), (following, _) in pairwise(logs):
            if following <= head.number + 1:
                before.unlink()
        return self._snapshot_size

    def close(self) -> None:
        """Let another process have the folder."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        os.close(self._lock)


def _snapshot_records(head: SnapshotHead, states: Mapping[str, Sequence[KeptState]]) -> Iterator[Record]:
    content = {
        "deployments": dict(head.deployments),
        "keys": [[key, digest, count] for key, (digest, count) in head.keys.items()],
    }
    yield Record({"number": head.number}, json.dumps(content).encode())
    for name, inputs in states.items():
        for place, state in enumerate(inputs):
            yield Record({"input": [name, place], "newest": state.newest, "cutoff": state.cutoff})
            yield from batch_records({"rows": True}, state.batches)
    yield Record({"end": True})


def _parts(records: Iterable[Record], size: int = 16 << 20) -> Iterator[list[Record]]:
    """Records in lists of some megabytes."""
    part: list[Record] = []
    held = 0
    for record in records:
        part.append(record)
        held += len(record.body)
        if held >= size:
            yield part
            part, held = [], 0
    yield part


def _numbered(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    return sorted((int(path.stem.split("-")[1]), path) for path in folder.glob(pattern))


def _locked(path: Path) -> int:
    """A file that one process at a time has open. Raises ConfigurationError where another one has."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows: nothing keeps two servers apart
        pass
    except OSError as error:
        os.close(file)
        raise ConfigurationError(
            f"another process has the journal {path.parent} open",
            condition="journal",
            help="stop that server, or give this one a folder of its own",
        ) from error
    return file
