"""User errors raised where the rows are, by Spark's expressions or by our tasks: how they find their place in the text.

While a Session plans and lowers a statement, `statement` holds the mapping from the planned text to the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span, excerpt

if TYPE_CHECKING:
    from sqlext_operators.conditions import TaskCondition
    from sqlext_operators.errors import Place

#: Where a span of a statement is in the user's text.
Locate = Callable[[Span], "Place"]

_LOCATE: ContextVar[Locate | None] = ContextVar("sqlext_statement", default=None)


@contextmanager
def statement(sql: str, original: Callable[[Span], Span]) -> Iterator[None]:
    """A context to plan and lower the statement with the user's text `sql`; `original` maps its spans to that text."""

    def locate(span: Span) -> Place:
        from sqlext_operators.errors import Place

        found = original(span)
        return Place(found.start, found.end, tuple(excerpt(sql, found)))

    token = _LOCATE.set(locate)
    try:
        yield
    finally:
        _LOCATE.reset(token)


def current_statement() -> Locate | None:
    """How to find places in the statement that is being lowered; None if there is no text."""
    return _LOCATE.get()


def raise_error(message: str, help: str, span: Span | None, *, condition: TaskCondition) -> str:
    """Spark SQL that fails with a DataError. `message` and `help` are without quotes and backslashes."""
    locate = current_statement()
    if locate is None:  # nothing is run: the text is for people
        return f"raise_error('{message}')"
    from sqlext_operators.errors import MARK, marked

    place = None if span is None else locate(span)
    text = f"{message} {MARK} {marked('DataError', condition, message, help, place)}"
    return "raise_error('" + re.sub(r"['\\]", " ", text) + "')"
