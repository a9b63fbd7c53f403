"""Finds the errors that our tasks mean for the user in Spark's exceptions."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from sqlext_planner.errors import ConfigurationError, DataError, Span, SqlExtError


def show_task_errors() -> None:
    """From now on, a Spark exception that carries an error of our tasks (`sqlext_operators.errors`) is raised as
    that error: a SqlExtError with its place.

    PySpark hands every exception that it has converted from Java to `recover_python_exception`, which looks for a
    Python traceback in its text; ours looks for our mark first. All other exceptions go through untouched.
    """
    import sys

    from pyspark.errors.exceptions import captured

    for module in (captured, sys.modules.get("pyspark.errors.exceptions.connect")):
        recover = getattr(module, "recover_python_exception", None)  # not in every version of PySpark
        if recover is not None and not hasattr(recover, "sqlext"):
            hooked: Any = module
            hooked.recover_python_exception = _with_task_errors(recover)


def _with_task_errors(recover: Callable[[BaseException], BaseException]) -> Callable[[BaseException], BaseException]:
    def recovered(error: BaseException) -> BaseException:
        found = task_error(error)
        return recover(error) if found is None else found

    recovered.sqlext = True  # type: ignore[attr-defined]
    return recovered


_TASK_ERRORS = {kind.__name__: kind for kind in (ConfigurationError, DataError)}


def task_error(error: BaseException) -> SqlExtError | None:
    """The error that one of our tasks meant for the user, found in Spark's exception; None for any other exception."""
    from sqlext_operators.errors import MARK

    cause = getattr(error, "_cause", None)
    if isinstance(cause, SqlExtError):
        return cause
    word = re.search(re.escape(MARK) + r" ([A-Za-z0-9+/=]+)", str(error))
    if word is None:
        return None
    try:
        found = json.loads(base64.b64decode(word[1], validate=True))
        place = found["place"]
        span, lines = (None, ()) if place is None else (Span(place[0], place[1]), tuple(place[2:]))
        return _TASK_ERRORS[found["kind"]](found["message"], help=found["help"], span=span, lines=lines)
    except (ValueError, KeyError, TypeError, IndexError):  # a text that only looks like ours
        return None
