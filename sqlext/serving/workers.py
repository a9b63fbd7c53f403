"""A deployment in several processes, each with the rows of some keys: `sqlext serve --workers N`.

This process reads bodies, prepares pushed rows and writes the journal; the others keep rows and compute answers. What
one of them gets is done in the order in which it was sent, so an answer sees every push that was acknowledged before.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.serving.store import KeptState
from sqlext_planner import errors
from sqlext_planner.errors import InternalError, SqlExtError
from sqlext_planner.spark.workers import task_error

from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.arrow_bodies import arrow_stream
from sqlext.serving.deployment import Answer, Deployment, PreparedRows
from sqlext.serving.division import Division
from sqlext.serving.folder import SavedDeployment

_END_SECONDS = 30


class Divided(Deployment):
    """A deployment whose rows are in processes of its own, by the values of a column. `when_lost` is called, in some
    thread, if one of them ends."""

    def __init__(
        self, saved: SavedDeployment, division: Division, workers: int, when_lost: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(
            saved.sql,
            DictCatalog(saved.tables),
            request=saved.request,
            settings=saved.settings,
            name=saved.name,
            compat=saved.compat,
            lateness=saved.lateness,
        )
        self._division = division
        self._workers = [_Worker(saved, f"sqlext-{saved.name}-{number}", when_lost) for number in range(workers)]

    def store(self, prepared: PreparedRows) -> None:
        """Store prepared rows; they are stored when this returns."""
        sent = []
        for worker, by_input in zip(self._workers, self._divided(prepared.by_input), strict=True):
            if by_input:
                sent.append(worker.send("store", by_input, prepared.clock))
        for future in sent:
            future.result()

    def _divided(self, by_input: Sequence[tuple[int, pa.RecordBatch]]) -> list[list[tuple[int, bytes]]]:
        """What each process keeps of rows by input."""
        by_worker: list[list[tuple[int, bytes]]] = [[] for _ in self._workers]
        for place, rows in by_input:
            parts = self._division.parts(rows, self._division.inputs[place], len(self._workers))
            for part, places in zip(by_worker, parts, strict=True):
                if len(places):
                    part.append((place, _packed(take_rows(rows, places))))
        return by_worker

    def answers(self, batch: pa.RecordBatch) -> list[Answer]:
        """The results for rows of the request table."""
        return self.asked(batch).result()

    def asked(self, batch: pa.RecordBatch) -> Future[list[Answer]]:
        """The results for rows of the request table, when all processes have answered."""
        parts = self._division.parts(batch, self._division.column, len(self._workers))
        answers: list[Answer | None] = [None] * batch.num_rows
        done: Future[list[Answer]] = Future()
        done.set_running_or_notify_cancel()
        waiting = [(worker, places) for worker, places in zip(self._workers, parts, strict=True) if len(places)]
        left, lock = [len(waiting)], threading.Lock()

        def answered(places: Any, future: Future[Any]) -> None:
            error = future.exception()
            with lock:
                if done.done():
                    return
                if error is not None:
                    done.set_exception(error)
                    return
                for place, (rows, is_partial) in zip(places.tolist(), future.result(), strict=True):
                    answers[place] = Answer(_unpacked(rows), self.spec.names, is_partial)
                left[0] -= 1
                if not left[0]:
                    done.set_result([answer for answer in answers if answer is not None])

        if not waiting:
            done.set_result([])
        for worker, places in waiting:
            worker.send("answers", _packed(take_rows(batch, places))).add_done_callback(partial(answered, places))
        return done

    def settle(self) -> None:
        """Sort the rows that were stored."""
        for future in [worker.send("settle") for worker in self._workers]:
            future.result()

    def state(self) -> list[KeptState]:
        """What the inputs keep, for a snapshot."""
        by_worker = [future.result() for future in [worker.send("state") for worker in self._workers]]
        return [
            KeptState(
                tuple(_unpacked(rows) for state in states for rows in state[0]),
                max(state[1] for state in states),
                max(state[2] for state in states),
            )
            for states in zip(*by_worker, strict=True)
        ]

    def restore(self, place: int, state: KeptState) -> None:
        """Give an input back what a snapshot has of it."""
        column = self._division.inputs[place]
        parts: list[list[bytes]] = [[] for _ in self._workers]
        for batch in state.batches:
            for part, places in zip(parts, self._division.parts(batch, column, len(parts)), strict=True):
                if len(places):
                    part.append(_packed(take_rows(batch, places)))
        sent = [
            worker.send("restore", place, part, state.newest, state.cutoff)
            for worker, part in zip(self._workers, parts, strict=True)
        ]
        for future in sent:
            future.result()

    def kept_of(self, place: int) -> tuple[int, int]:
        """The rows of an input that the processes keep, and their Arrow bytes."""
        sizes = [future.result()[place] for future in [worker.send("kept") for worker in self._workers]]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    @property
    def kept_rows(self) -> int:
        """How many rows the processes keep."""
        return sum(self.kept_of(place)[0] for place in range(len(self.spec.inputs)))

    @property
    def kept_bytes(self) -> int:
        """The Arrow bytes of these rows."""
        return sum(self.kept_of(place)[1] for place in range(len(self.spec.inputs)))

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()


class _Worker:
    """A process, and the futures of what was sent to it, in order."""

    def __init__(self, saved: SavedDeployment, name: str, when_lost: Callable[[], None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(saved, theirs), name=name, daemon=True)
        self._process.start()
        theirs.close()
        self._waiting: deque[Future[Any]] = deque()
        self._lock = threading.Lock()
        self._when_lost, self._is_closed = when_lost, False
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)
        self._reader.start()

    def send(self, what: str, *content: Any) -> Future[Any]:
        """The result of a call there, in time."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.append(future)
            try:
                self._connection.send((what, *content))
            except OSError as error:
                self._waiting.pop()
                future.set_exception(_lost(error))
        return future

    def _read(self) -> None:
        while True:
            try:
                is_error, result = self._connection.recv()
            except (EOFError, OSError) as error:
                with self._lock:
                    waiting, self._waiting = self._waiting, deque()
                for future in waiting:
                    future.set_exception(_lost(error))
                if not self._is_closed:
                    self._when_lost()
                return
            with self._lock:
                future = self._waiting.popleft()
            if is_error:
                future.set_exception(_raised(*result))
            else:
                future.set_result(result)

    def close(self) -> None:
        """End the process when it has done what was sent."""
        self._is_closed = True
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
        self._connection.close()
        self._reader.join(_END_SECONDS)


def _lost(error: Exception) -> Exception:
    return InternalError(f"a process of the server has ended: {error!r}")


def _work(saved: SavedDeployment, connection: Connection) -> None:
    """What a process does until its pipe ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server ends it
    deployment = Deployment.of(saved)
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        if message is None:
            return
        what, *content = message
        try:
            reply = (False, _CALLS[what](deployment, *content))
        except Exception as error:
            reply = (True, _error_parts(error))
        connection.send(reply)


def _error_parts(error: Exception) -> tuple[str, ...]:
    """An error on its way to the server: kind, message, condition and help; those without a condition are faults."""
    known = error if isinstance(error, SqlExtError) else task_error(error)
    if known is None:
        return (repr(error),)
    return type(known).__name__, known.message, known.condition, known.help or ""


def _raised(kind: str, message: str = "", condition: Any = None, help: str = "") -> Exception:
    """The error that `_error_parts` has told."""
    if condition is None:
        return InternalError(kind)
    made: type[SqlExtError] = getattr(errors, kind)
    return made(message, condition=condition, help=help or None)


def _store(deployment: Deployment, by_input: Sequence[tuple[int, bytes]], clock: int) -> None:
    rows = tuple((place, _unpacked(packed)) for place, packed in by_input)
    deployment.store(PreparedRows(0, rows, clock))


def _answers(deployment: Deployment, packed: bytes) -> list[tuple[bytes, bool]]:
    return [(_packed(answer.result), answer.is_partial) for answer in deployment.answers(_unpacked(packed))]


def _state(deployment: Deployment) -> list[tuple[list[bytes], int, int]]:
    return [(list(map(_packed, state.batches)), state.newest, state.cutoff) for state in deployment.state()]


def _restore(deployment: Deployment, place: int, batches: Sequence[bytes], newest: int, cutoff: int) -> None:
    deployment.restore(place, KeptState(tuple(map(_unpacked, batches)), newest, cutoff))


def _sizes(deployment: Deployment) -> list[tuple[int, int]]:
    return [deployment.kept_of(place) for place in range(len(deployment.spec.inputs))]


_CALLS: dict[str, Callable[..., Any]] = {
    "store": _store,
    "answers": _answers,
    "state": _state,
    "restore": _restore,
    "kept": _sizes,
    "settle": Deployment.settle,
}


def _packed(batch: pa.RecordBatch) -> bytes:
    return arrow_stream(batch.schema, [batch])


def _unpacked(packed: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(packed)) as reader:
        batches = list(reader)
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=reader.schema)
