"""Failures of our planning over ordinary statements, which users never see, are errors in the tests."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: What users are told of their statement (`sqlext.fallback`), which is no failure.
_OF_USERS = "Spark compares rows where an operator of sqlext was asked for"


class _Told(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(_OF_USERS):
            return
        raise AssertionError(record.getMessage()) from sys.exc_info()[1]


@contextmanager
def bugs_told() -> Iterator[None]:
    """What the planner notes as a failure of its own is raised."""
    logger, handler = logging.getLogger("sqlext"), _Told(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def bugs_noted() -> Iterator[None]:
    """As users have it: a failure is a line in the log."""
    logger = logging.getLogger("sqlext")
    handlers = [handler for handler in logger.handlers if isinstance(handler, _Told)]
    for handler in handlers:
        logger.removeHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            logger.addHandler(handler)
