"""Finds the errors that our tasks mean for the user in Spark's exceptions."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, get_args

from pyspark.errors import StreamingQueryException
from sqlext_operators.conditions import TaskCondition

from sqlext_planner.errors import ConfigurationError, DataError, Span, SqlExtError
from sqlext_planner.spark.versions import CONVERTING, checkpoint_error
from sqlext_planner.spark.workers import worker_error


def show_task_errors() -> None:
    """From now on, a Spark exception that carries an error of our tasks (`sqlext_operators.errors`) is raised as
    that error: a SqlExtError with its place.

    PySpark hands every exception from Java to a function (`CONVERTING`); ours looks for our mark in what that gives.
    All other exceptions go through untouched.

    What stopped a streaming query stays a StreamingQueryException too. `query.exception()` makes its exception without
    that call: the class that it uses is replaced by a function.
    """
    import sys

    from pyspark.errors.exceptions import captured

    for module in (captured, sys.modules.get("pyspark.errors.exceptions.connect")):
        name = next((name for name in CONVERTING if hasattr(module, name)), None)
        if name is not None and not hasattr(getattr(module, name), "sqlext"):
            setattr(module, name, _with_task_errors(getattr(module, name)))
    for name in ("pyspark.sql.streaming.query", "pyspark.sql.connect.streaming.query"):
        user: Any = sys.modules.get(name)
        make = getattr(user, _STOPPED, None)
        if make is not None and not hasattr(make, "sqlext"):
            setattr(user, _STOPPED, _with_task_errors(make))


#: The name under which the modules of streaming queries import the class of what stopped a query.
_STOPPED = "CapturedStreamingQueryException"


def _with_task_errors(make: Callable[..., BaseException]) -> Callable[..., BaseException]:
    """`make`, which gives an exception of Spark's, or the error of ours that this carries."""

    def made(*given: Any, **named: Any) -> BaseException:
        error = make(*given, **named)
        found = task_error(error)
        if found is None:
            return error
        return _stopped(error, found) if isinstance(error, StreamingQueryException) else found

    made.sqlext = True  # type: ignore[attr-defined]
    return made


def _stopped(error: BaseException, found: SqlExtError) -> BaseException:
    """Both exceptions in one, for code that catches Spark's as for code that catches ours; it reads as ours."""
    both: type[BaseException] = type(type(found).__name__, (type(found), type(error)), {})
    stopped = both.__new__(both, found.message)
    vars(stopped).update({**vars(error), **vars(found)})
    return stopped


_TASK_ERRORS = {kind.__name__: kind for kind in (ConfigurationError, DataError)}


def task_error(error: BaseException) -> SqlExtError | None:
    """The error that one of our tasks meant for the user, found in Spark's exception; None for any other exception."""
    from sqlext_operators.errors import MARK

    cause = getattr(error, "_cause", None)
    if isinstance(cause, SqlExtError):
        return cause
    text = str(error)
    word = re.search(re.escape(MARK) + r" ([A-Za-z0-9+/=]+)", text)
    if word is None:
        return worker_error(text) or checkpoint_error(text)
    try:
        found = json.loads(base64.b64decode(word[1], validate=True))
        place = found["place"]
        span, lines = (None, ()) if place is None else (Span(place[0], place[1]), tuple(place[2:]))
        return _TASK_ERRORS[found["kind"]](
            found["message"], condition=_known(found["condition"]), help=found["help"], span=span, lines=lines
        )
    except (ValueError, KeyError, TypeError, IndexError):  # a text that only looks like ours
        return None


def _known(condition: str) -> TaskCondition:
    """Raises KeyError for a word that no task of this version says."""
    return _CONDITIONS[condition]


_CONDITIONS: dict[str, TaskCondition] = {known: known for known in get_args(TaskCondition)}
