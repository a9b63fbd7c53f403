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

_LOCATE: ContextVar[_Statement | None] = ContextVar("sqlext_statement", default=None)


class _Statement:
    """A `Locate` for the user's text."""

    def __init__(self, sql: str, original: Callable[[Span], Span]) -> None:
        self._sql = sql
        self._original = original
        self._firsts: dict[str, Span] = {}

    def __call__(self, span: Span) -> Place:
        return self._place(self._original(span))

    def first(self, span: Span) -> Place:
        """The place where the same text stands first: Spark compares the expressions of GROUP BY and of the items by
        their texts, and a place is part of them."""
        found = self._original(span)
        text = " ".join(self._sql[found.start : found.end].split())
        return self._place(self._firsts.setdefault(text, found))

    def _place(self, found: Span) -> Place:
        from sqlext_operators.errors import Place

        return Place(found.start, found.end, tuple(excerpt(self._sql, found)))


@contextmanager
def statement(sql: str, original: Callable[[Span], Span]) -> Iterator[None]:
    """A context to plan and lower the statement with the user's text `sql`; `original` maps its spans to that text."""
    token = _LOCATE.set(_Statement(sql, original))
    try:
        yield
    finally:
        _LOCATE.reset(token)


def current_statement() -> Locate | None:
    """How to find places in the statement that is being lowered; None if there is no text."""
    return _LOCATE.get()


def raise_error(message: str, help: str, span: Span | None, *, condition: TaskCondition) -> str:
    """Spark SQL that fails with a DataError. `message` and `help` are without quotes and backslashes."""
    found = _LOCATE.get()
    if found is None:  # nothing is run: the text is for people
        return f"raise_error('{message}')"
    from sqlext_operators.errors import MARK, marked

    place = None if span is None else found.first(span)
    text = f"{message} {MARK} {marked('DataError', condition, message, help, place)}"
    return "raise_error('" + re.sub(r"['\\]", " ", text) + "')"
