"""Requests that wait for a deployment's answers. Those that wait at the same time are answered together: each takes a
part of the time then that it takes alone, so that a server that is behind catches up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa
from sqlext_operators.columns.batches import whole
from sqlext_planner.errors import SqlExtError
from sqlext_planner.spark.workers import task_error

from sqlext.serving.deployment import TOGETHER, Answer, Deployment

_T = TypeVar("_T")


def with_known_errors(work: Callable[[], _T]) -> _T:
    """Do this; what tasks report to users are errors of ours."""
    try:
        return work()
    except SqlExtError:
        raise
    except Exception as error:
        known = task_error(error)
        if known is None:
            raise
        raise known from None


@dataclass(frozen=True)
class _Request(Generic[_T]):
    """Rows that are read of a body, and what is shown of their answers."""

    read: Callable[[], pa.RecordBatch]
    shown: Callable[[list[Answer]], _T]
    done: Future[tuple[list[Answer], _T] | pa.RecordBatch] = field(default_factory=Future)

    def rows(self) -> pa.RecordBatch | None:
        """The rows; None if nobody waits any longer, or if it has got its error."""
        if not self.done.set_running_or_notify_cancel():
            return None
        try:
            return with_known_errors(self.read)
        except BaseException as error:
            self.done.set_exception(error)
            return None

    def answer(self, answers: Callable[[], list[Answer]]) -> None:
        """Give it its answers, or its error."""
        try:
            results = with_known_errors(answers)
            self.done.set_result((results, self.shown(results)))
        except BaseException as error:
            self.done.set_exception(error)


class WaitingRequests:
    """The requests to one deployment. `at_once`: one with more rows gets its rows back, and is not answered here."""

    def __init__(self, deployment: Deployment, at_once: int) -> None:
        self._deployment, self._at_once = deployment, at_once
        self._waiting: deque[_Request[Any]] = deque()

    def add(
        self, read: Callable[[], pa.RecordBatch], shown: Callable[[list[Answer]], _T]
    ) -> Future[tuple[list[Answer], _T] | pa.RecordBatch]:
        """One more request; its results and what is shown of them, or its rows, in time."""
        request = _Request(read, shown)
        self._waiting.append(request)
        return request.done

    def answer(self) -> None:
        """Answer those that wait, called as often as requests were added, in the thread that computes."""
        asked: list[tuple[_Request[Any], pa.RecordBatch]] = []
        count = 0
        while count < TOGETHER:
            try:
                request = self._waiting.popleft()
            except IndexError:
                break
            rows = request.rows()
            if rows is None:
                continue
            if rows.num_rows > self._at_once:
                request.done.set_result(rows)
                continue
            asked.append((request, rows))
            count += rows.num_rows
        together: list[Answer] | None = None
        if len(asked) > 1:
            with suppress(Exception):  # of one of them, which gets it when it is answered alone
                together = self._deployment.answers(whole(asked[0][1].schema, [rows for _, rows in asked]))
        for request, rows in asked:
            if together is None:
                request.answer(partial(self._deployment.answers, rows))
            else:
                request.answer(together[: rows.num_rows].copy)
                del together[: rows.num_rows]
