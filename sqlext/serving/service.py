"""The deployments of a server, with their journal: what is computed, in which thread, and in which order.

One thread computes, so that answers and stores have an order. Another one writes the journal: it takes all pushes that
wait, writes them, waits for the disk once, and has them stored in this order. Only then are they acknowledged.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa
from sqlext_operators.serving.store import KeptState
from sqlext_planner.errors import ConfigurationError, InternalError

from sqlext.serving.bodies import RequestError
from sqlext.serving.deployment import Answer, Deployment, PreparedRows
from sqlext.serving.folder import checked_name
from sqlext.serving.journal import Journal, Push, SnapshotHead
from sqlext.serving.sink import MOST_KEYS
from sqlext.serving.values import to_batch, zone_of
from sqlext.serving.waiting import WaitingRequests, with_known_errors
from sqlext.serving.workers import Divided

if TYPE_CHECKING:
    from sqlext.serving.warm import WarmStart

_LOG = logging.getLogger("sqlext.serving")
_T = TypeVar("_T")
#: Rows of one request that are answered in one go; between more of them other requests come.
ROWS_AT_ONCE = 16
#: Bytes of pushes that are written together.
_GROUP_BYTES = 16 << 20

State = Literal["loading", "ready", "stopping", "failed"]


@dataclass(frozen=True)
class ServedTable:
    """A table and the deployments that read it, each with the table's name in it; `times` are the columns that order
    rows."""

    name: str
    columns: Mapping[str, str]
    schema: pa.Schema
    readers: list[tuple[Deployment, str]]
    zone: tzinfo
    times: set[str]


@dataclass(frozen=True)
class Stored:
    """How many rows were stored; whether that was by an earlier push with the same key; how many of them a deployment
    left out because their time is to come."""

    rows: int
    is_repeated: bool = False
    left_out: int = 0


@dataclass
class _Waiting:
    """A push on its way: what is kept of it, by deployment, and who waits."""

    push: Push
    parts: list[tuple[Deployment, PreparedRows]]
    done: Future[Stored] = field(default_factory=Future)
    result: Stored | None = None


class Service:
    """Deployments that share pushes. Raises ConfigurationError for two with one name, and for a table that two of them
    know with different columns.

    `files` are the Parquet files whose rows a table begins with, by its name, and `warm` loads the checkpoints of
    queries, and gives what was loaded by the names of deployments; a journal that has a snapshot has them already.
    `allow_gaps` lets it start although the journal lacks rows of a deployment: one that is new or was changed since the
    journal's snapshot was written.
    """

    def __init__(
        self,
        deployments: Sequence[Deployment],
        journal: Journal | None = None,
        files: Callable[[str], Sequence[str]] | None = None,
        warm: Callable[[], Mapping[str, WarmStart]] | None = None,
        *,
        allow_gaps: bool = False,
    ) -> None:
        self.deployments = {checked_name(one.name): one for one in deployments}
        at_once = {name: ROWS_AT_ONCE if self.has_rows_of(one) else -1 for name, one in self.deployments.items()}
        self._waiting = {name: WaitingRequests(one, at_once[name]) for name, one in self.deployments.items()}
        self.fingerprints = {name: one.saved.fingerprint for name, one in self.deployments.items()}
        self.tables = _tables(deployments)
        if len(self.deployments) < len(deployments):
            raise ConfigurationError(
                "two of the deployments have one name", condition="deployment-folder", help="deploy with --name NAME"
            )
        self.journal, self._files, self._warm, self._allow_gaps = journal, files, warm, allow_gaps
        self.state: State = "loading"
        #: Why loading has failed.
        self.failure: BaseException | None = None
        self.failed_snapshots = 0
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[str, int]] = {}
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._compute = ThreadPoolExecutor(1, "sqlext-compute")
        self._writer = threading.Thread(target=self._write, name="sqlext-journal")
        self._snapshot: threading.Thread | None = None
        self._when_loaded: Callable[[], None] = lambda: None

    # -- its life

    def start(self, when_loaded: Callable[[], None] = lambda: None) -> None:
        """Read the journal, and be ready; `when_loaded` is called then, or when that or something later has failed."""
        self._when_loaded = when_loaded
        self._compute.submit(self._load, when_loaded)

    def stop(self) -> None:
        """Finish what was begun, and close the journal."""
        with self._lock:
            self.state = "stopping"
        if self._writer.ident is not None:
            self._queue.put(None)
            self._writer.join()
        self._compute.shutdown()
        if self._snapshot is not None:
            self._snapshot.join()
        for deployment in self.deployments.values():
            if isinstance(deployment, Divided):
                deployment.close()
        if self.journal is not None:
            self.journal.close()

    def _load(self, when_loaded: Callable[[], None]) -> None:
        try:
            begun: Mapping[str, WarmStart] = {}
            if self.journal is None or self.journal.snapshot() is None:
                begun = {} if self._warm is None else self._warm()
                if self._files is not None:
                    self._read_files(self._files, begun)
            if self.journal is not None:
                self._restore(self.journal)
                for push in self.journal.pushes():
                    if self.state == "stopping":
                        return
                    if begun:
                        raise _pushed_before(self.journal)
                    self._replay(push)
                if begun:
                    self._keep_begun(self.journal)
            for deployment in self.deployments.values():
                deployment.settle()
            with self._lock:
                if self.state == "stopping":
                    return
                self._writer.start()
                self.state = "ready"
        except BaseException as error:
            self.state, self.failure = "failed", error
        when_loaded()

    def _read_files(self, files: Callable[[str], Sequence[str]], begun: Mapping[str, WarmStart]) -> None:
        """The rows of files; a deployment that has `begun` with those of a table, from a checkpoint, has them."""
        for table in self.tables.values():
            readers = [
                (deployment, name)
                for deployment, name in table.readers
                if name in deployment.spec.tables
                and (deployment.name not in begun or name not in begun[deployment.name].tables)
            ]
            paths, start = files(table.name) if readers else (), time.monotonic()
            rows = 0
            for path in paths:
                rows += max(deployment.load(name, path) for deployment, name in readers)
                if self.state == "stopping":
                    return
            _LOG.info("%d rows of %s from %d files in %.1f s", rows, table.name, len(paths), time.monotonic() - start)

    def _keep_begun(self, journal: Journal) -> None:
        """Write what was loaded to the journal: the query goes on, and a restart must not read a later checkpoint."""
        states = {name: one.state() for name, one in self.deployments.items()}
        journal.write_snapshot(SnapshotHead(journal.number, self.fingerprints, {}), states)

    def _restore(self, journal: Journal) -> None:
        head = journal.snapshot()
        if head is None:
            return
        changed = {name for name in self.fingerprints if head.deployments.get(name) != self.fingerprints[name]}
        lost = sorted(changed | (head.deployments.keys() - self.fingerprints.keys()))
        if lost and not self._allow_gaps:
            raise ConfigurationError(
                f"the snapshot of the journal {journal.folder} is of other deployments: {', '.join(lost)} is new, was "
                "changed, or is not served",
                condition="journal",
                help="serve the same deployments; or give another --journal folder and push the rows again; or start "
                "with --allow-gaps: a new or changed one begins with the rows behind the snapshot",
            )
        self._keys = dict(head.keys)
        for name, place, state in journal.restored():
            if name in self.deployments and name not in changed:
                self.deployments[name].restore(place, state)

    def _replay(self, push: Push) -> None:
        table = self.tables.get(push.table.lower())
        if table is not None:
            known = {name.lower() for name in table.schema.names}
            names = [name for name in push.rows.schema.names if name.lower() in known]
            rows = to_batch(push.rows.select(names), table.schema, table.name)
            for deployment, name in table.readers:
                deployment.store(deployment.prepared(name, rows, push.clock))
        self._remember(push)

    def _remember(self, push: Push) -> None:
        if push.key is None:
            return
        self._keys[push.key] = (push.digest, push.rows.num_rows)
        if len(self._keys) > MOST_KEYS:
            del self._keys[next(iter(self._keys))]

    # -- requests

    def computed(self, work: Callable[[], _T]) -> Future[_T]:
        """Do this in the thread that computes. What tasks report to users are errors of ours."""
        return self._compute.submit(with_known_errors, work)

    def deployment(self, name: str) -> Deployment:
        """A deployment by its name. Raises RequestError."""
        found = self.deployments.get(name)
        if found is None:
            help = f"deployments here: {', '.join(sorted(self.deployments))}"
            raise RequestError(f"there is no deployment '{name[:100]}'", condition="unknown-deployment", help=help)
        return found

    def table(self, name: str) -> ServedTable:
        """A table by its name. Raises RequestError."""
        found = self.tables.get(name.lower())
        if found is None:
            help = f"tables here: {', '.join(sorted(table.name for table in self.tables.values()))}"
            raise RequestError(f"no deployment reads a table '{name[:100]}'", condition="unknown-table", help=help)
        return found

    def answered(
        self, deployment: Deployment, read: Callable[[], pa.RecordBatch], shown: Callable[[list[Answer]], _T]
    ) -> Future[tuple[list[Answer], _T] | pa.RecordBatch]:
        """The results for the few rows that `read` makes of a request, with what is shown of them, in time; the rows
        themselves where they are many, or where other processes have the rows that they need."""
        future = self._waiting[deployment.name].add(read, shown)
        self._compute.submit(self._waiting[deployment.name].answer)
        return future

    def has_rows_of(self, deployment: Deployment) -> bool:
        """Whether this process answers for a deployment."""
        return not isinstance(deployment, Divided)

    def asked(self, deployment: Deployment, rows: pa.RecordBatch) -> Future[list[Answer]]:
        """The results for rows, in time."""
        if isinstance(deployment, Divided):
            return deployment.asked(rows)
        return self.computed(lambda: deployment.answers(rows))

    def lost(self) -> None:
        """A process of a deployment has ended, and its rows with it: nothing can be answered any longer."""
        self.state, self.failure = "failed", InternalError("a process of the server has ended")
        _LOG.error("a process of the server has ended; start it again: the journal has the rows")
        self._when_loaded()

    def push(self, table: ServedTable, rows: pa.RecordBatch, key: str | None, digest: str) -> Future[Stored]:
        """Rows on their way to the disk and then to the deployments; called in the thread that computes.

        Raises AnalysisError for a row without a time, and what preparing it raises; then nothing is stored.
        """
        clock = time.time_ns() // 1000
        parts = [(deployment, deployment.prepared(name, rows, clock)) for deployment, name in table.readers]
        for deployment, prepared in parts:
            _check_times(deployment, prepared, table.name)
        waiting = _Waiting(Push(table.name, rows, key, digest, clock), parts)
        waiting.done.set_running_or_notify_cancel()
        self._queue.put(waiting)
        return waiting.done

    # -- the thread of the journal

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            group, size = [first], first.push.rows.nbytes
            while size < _GROUP_BYTES and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
                size += following.push.rows.nbytes
            self._write_group(group)

    def _write_group(self, group: Sequence[_Waiting]) -> None:
        fresh: list[_Waiting] = []
        stored: list[_Waiting] = []
        for waiting in group:
            push = waiting.push
            before = self._keys.get(push.key) if push.key is not None else None
            if before is None:
                fresh.append(waiting)
                self._remember(push)
            elif before[0] != push.digest:
                message = "the idempotency key was used for other rows"
                waiting.done.set_exception(
                    RequestError(message, condition="idempotency-key", help="send other rows with another key")
                )
                continue
            else:
                waiting.result = Stored(before[1], is_repeated=True)
            stored.append(waiting)
        try:
            if self.journal is not None and fresh:
                self.journal.append([waiting.push for waiting in fresh])
        except OSError as error:
            self._refuse(fresh, stored, error)
            return
        self._compute.submit(self._store, stored)
        if self.journal is not None and self.journal.is_snapshot_due() and not self._is_snapshot_written():
            self._begin_snapshot(self.journal)

    def _refuse(self, fresh: Sequence[_Waiting], group: Sequence[_Waiting], error: OSError) -> None:
        _LOG.error("the journal cannot be written: %s", error.strerror)
        for waiting in fresh:
            if waiting.push.key is not None:
                self._keys.pop(waiting.push.key, None)
        for waiting in group:
            waiting.done.set_exception(
                RequestError(
                    "the rows could not be written to disk, and are not stored",
                    condition="server-busy",
                    help="send them again later; the server's log says what is wrong with its disk",
                )
            )

    @staticmethod
    def _store(group: Sequence[_Waiting]) -> None:
        for waiting in group:
            try:
                if waiting.result is None:
                    for deployment, prepared in waiting.parts:
                        deployment.store(prepared)
                left_out = max((prepared.left_out for _, prepared in waiting.parts), default=0)
                waiting.done.set_result(waiting.result or Stored(waiting.push.rows.num_rows, left_out=left_out))
            except BaseException as error:
                waiting.done.set_exception(error)

    def _is_snapshot_written(self) -> bool:
        return self._snapshot is not None and self._snapshot.is_alive()

    def _begin_snapshot(self, journal: Journal) -> None:
        """What is kept is collected by the thread that computes, behind the pushes so far, and written by another."""
        try:
            number = journal.begin_snapshot()
        except OSError as error:
            self._snapshot_failed(error)
            return
        head = SnapshotHead(number, self.fingerprints, dict(self._keys))
        states = self._compute.submit(lambda: {name: one.state() for name, one in self.deployments.items()})
        self._snapshot = threading.Thread(
            target=self._write_snapshot, args=(journal, head, states), name="sqlext-snapshot"
        )
        self._snapshot.start()

    def _write_snapshot(self, journal: Journal, head: SnapshotHead, states: Future[dict[str, list[KeptState]]]) -> None:
        try:
            size = journal.write_snapshot(head, states.result())
            _LOG.info("snapshot of push %d: %d bytes", head.number, size)
        except OSError as error:
            self._snapshot_failed(error)

    def _snapshot_failed(self, error: OSError) -> None:
        self.failed_snapshots += 1
        _LOG.error("a snapshot could not be written, the journal keeps growing: %s", error.strerror)

    # -- what it tells

    @staticmethod
    def content(deployment: Deployment) -> dict[str, Any]:
        """What a deployment keeps, and what it computes, in lines; called in the thread that computes."""
        kept = {"rows": deployment.kept_rows, "bytes": deployment.kept_bytes}
        return {"kept": kept, "plan": deployment.explain().splitlines()}

    def sizes(self) -> dict[str, dict[str, Any]]:
        """Rows and bytes that each deployment keeps; called in the thread that computes."""
        return {name: {"rows": one.kept_rows, "bytes": one.kept_bytes} for name, one in self.deployments.items()}


def _pushed_before(journal: Journal) -> ConfigurationError:
    return ConfigurationError(
        f"the journal {journal.folder} has rows that were pushed, and a checkpoint may have them too",
        condition="journal",
        help="start without --checkpoint, which goes on with the journal; or give an empty folder as --journal",
    )


def _tables(deployments: Sequence[Deployment]) -> dict[str, ServedTable]:
    tables: dict[str, ServedTable] = {}
    for deployment in deployments:
        for name, columns in deployment.tables.items():
            zone = zone_of(deployment.settings.time_zone)
            fresh = ServedTable(name, columns, deployment.schemas[name], [], zone, set())
            table = tables.setdefault(name.lower(), fresh)
            if list(table.columns.items()) != list(columns.items()) or table.zone != zone:
                other = table.readers[0][0].name
                raise ConfigurationError(
                    f"'{other}' and '{deployment.name}' read a table '{name}' with different columns or time zones",
                    condition="deployment-folder",
                    help="deploy them with the same --schema and settings, or serve them by two servers",
                )
            table.readers.append((deployment, name))
            inputs = [item for item in deployment.spec.inputs if item.table == name and item.kept.order is not None]
            table.times.update(filter(None, (item.source_of(str(item.kept.order)) for item in inputs)))
    return tables


def _check_times(deployment: Deployment, prepared: PreparedRows, table: str) -> None:
    """Raises RequestError for rows without a value of the column that orders an input."""
    for place, rows in prepared.by_input:
        item = deployment.spec.inputs[place]
        order = item.kept.order
        if order is not None and rows.column(order).null_count:
            column = item.source_of(order) or order
            raise RequestError(
                f"a row of '{table}' has no time: its '{column}' is NULL",
                condition="row-value",
                help=f"the deployment '{deployment.name}' orders the rows by it: send it with every row",
                place={"column": column},
            )
