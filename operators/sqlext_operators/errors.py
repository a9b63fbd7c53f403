"""What a task reports to the user: a mistake in the rows, or of the machine that it runs on, with its place in the SQL.

The error's text ends with a line that the driver reads back (`MARK` and a word), however it passes through Spark.
"""

from __future__ import annotations

import base64
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from sqlext_operators.conditions import TaskCondition

MARK = "[SQLEXT_ERROR]"


@dataclass(frozen=True)
class Place:
    """Characters [start, end) of the statement, and the lines in which a message shows them."""

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Places:
    """The place of an operator in the statement, and of those of its results that have a place of their own."""

    whole: Place | None = None
    named: Mapping[str, Place] = field(default_factory=dict)

    def of(self, name: str | None) -> Place | None:
        """The place of a result, else the operator's."""
        return self.whole if name is None else self.named.get(name, self.whole)


class TaskError(Exception):
    """One sentence for the user, and what to do. `about` names the operator's result that it is about.

    `condition` is the name under which the documentation explains it. `kind` is the class of the planner's error that
    the driver raises.
    """

    kind: ClassVar[str] = "ConfigurationError"

    def __init__(self, message: str, help: str | None = None, *, condition: TaskCondition) -> None:
        super().__init__(message)
        self.message = message
        self.condition: TaskCondition = condition
        self.help = help
        self.about: str | None = None
        self.place: Place | None = None

    def __str__(self) -> str:
        lines = [self.message, *(self.place.lines if self.place is not None else ())]
        lines += [f"help: {self.help}"] if self.help is not None else []
        return "\n".join([*lines, f"{MARK} {marked(self.kind, self.condition, self.message, self.help, self.place)}"])


class RowError(TaskError):
    """The rows hold values that the statement cannot work with."""

    kind = "DataError"


class RowOverflowError(RowError, OverflowError):
    """A result that does not fit its type."""


def marked(kind: str, condition: TaskCondition, message: str, help: str | None, place: Place | None) -> str:
    """The error as one word of ASCII (JSON in base64): no quoting and no encoding on its way changes it."""
    found = None if place is None else [place.start, place.end, *place.lines]
    text = json.dumps({"kind": kind, "condition": condition, "message": message, "help": help, "place": found})
    return base64.b64encode(text.encode()).decode()


def explained(places: Places, entry: Callable[..., Iterator[pa.RecordBatch]], *args: Any) -> Iterator[pa.RecordBatch]:
    """The batches of `entry(*args)`; errors that it raises for the user get their place."""
    try:
        yield from entry(*args)
    except TaskError as error:
        if error.place is None:  # the innermost operator knows best
            error.place = places.of(error.about)
        raise
    except (ConnectionError, EOFError):  # Spark's own pipes
        raise
    except OSError as error:
        raise _machine_error(error) from error
    except MemoryError as error:
        raise TaskError(
            "a task ran out of memory",
            "give the machine more memory, run fewer tasks at a time (spark.executor.cores), or split the work into "
            "more parts with a smaller sqlext.exchange.targetPartitionBytes",
            condition="out-of-memory",
        ) from error


def _machine_error(error: OSError) -> TaskError:
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    return TaskError(
        f"a task could not read or write a file: {where}{what}",
        "make sure that the files exist, and run the statement again",
        condition="file-access",
    )


class _About:
    """A class, since a generator takes ten times as long, for each result of each request."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TaskError):
            error.about = error.about or self._name


def about(name: str) -> AbstractContextManager[None]:
    """Wraps the computation of one result of an operator: errors raised inside are about that result."""
    return _About(name)


@contextmanager
def spilling(folder: str) -> Iterator[None]:
    """Wraps code that reads or writes temporary files in `folder`: its errors name the folder and the remedy."""
    try:
        yield
    except OSError as error:
        raise _spill_error(folder, error) from error


_OTHER_DISK = "point spark.local.dir (SPARK_LOCAL_DIRS on a cluster) to a folder with enough space"


def _spill_error(folder: str, error: OSError) -> TaskError:
    place = f"the temporary folder {folder}"
    condition: TaskCondition = "temporary-folder"
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            what, condition = f"the disk of {place} is full", "disk-full"
            help = f"free some space there, or {_OTHER_DISK}"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            what, help = f"{place} is not writable", f"change its permissions, or {_OTHER_DISK}"
        case errno.ENOENT | errno.ENOTDIR:
            what = f"{place} does not exist, or its files were deleted"
            help = f"make sure that nothing deletes it while a statement runs, or {_OTHER_DISK}"
        case errno.EMFILE | errno.ENFILE:
            what, condition = f"too many files are open to use {place}", "too-many-open-files"
            help = "raise the limit of open files (ulimit -n), or run fewer tasks at a time"
        case code:
            what = f"{place} cannot be used: {os.strerror(code) if code else error}"
            help = f"check that disk, or {_OTHER_DISK}"
    return TaskError(what, help, condition=condition)
