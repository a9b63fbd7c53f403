"""User errors: the classes, their places in the SQL text, and what no message may show; internal errors.

Errors that are raised where the rows are, by Spark's expressions or by our tasks, find their place too: while a Session
plans and lowers a statement, `statement` holds the mapping from the planned text to the user's.

With them, where the pages of the documentation are that an error names.
"""

from __future__ import annotations

import logging
import re
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.conditions import Condition, look_up

if TYPE_CHECKING:
    from sqlext_operators.conditions import TaskCondition
    from sqlext_operators.errors import Place


@dataclass(frozen=True)
class Span:
    """A half-open range of character offsets in the text of one statement."""

    start: int
    end: int

    def __or__(self, other: Span | None) -> Span:
        """The smallest span that covers both."""
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


#: Width of a message's excerpt, in columns, if the width of the reader's screen is unknown.
WIDTH = 120
#: Characters that a terminal obeys or does not show: one column each in an excerpt, so that the carets line up.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class SqlExtError(Exception):
    """A mistake that the user can fix: one message, the place in the text, what to do.

    `message` says what is wrong, `condition` is the name under which docs/errors.md explains it, `help` says what to
    do, `notes` add facts (one sentence each). A help text that is costly to find is given as a function, which is
    called only when somebody reads the help.
    Code that knows the text of the statement can attach it later with `with_sql`. `lines` show the place
    if the text itself is not at hand: in an error that a task found. Credentials in URIs are not shown (`masked`).
    """

    def __init__(
        self,
        message: str,
        *,
        condition: Condition,
        span: Span | None = None,
        help: str | Callable[[], str | None] | None = None,
        notes: tuple[str, ...] = (),
        sql: str | None = None,
        lines: tuple[str, ...] = (),
    ) -> None:
        super().__init__(masked(message))
        self.message = masked(message)
        self.condition: Condition = condition
        self.span = span
        self._help = help
        self.notes = tuple(map(masked, notes))
        self.sql = sql
        self.lines = lines
        #: The error is about one of our hints: it is reported even if the statement could run without the hint.
        self.of_hint = False
        #: The error is about a window over a stream, which Spark refuses too, but only when the query starts.
        self.of_window = False

    @property
    def help(self) -> str | None:
        """What to do."""
        if callable(self._help):
            self._help = self._help()
        return None if self._help is None else masked(self._help)

    @help.setter
    def help(self, help: str | None) -> None:
        self._help = help

    def about_hint(self) -> SqlExtError:
        """Mark the error as one about our hints; returns self."""
        self.of_hint = True
        return self

    def about_window(self) -> SqlExtError:
        """Mark the error as one about a window over a stream; returns self."""
        self.of_window = True
        return self

    def with_sql(self, sql: str) -> SqlExtError:
        """Attach the statement's text, unless it is known already; returns self."""
        if self.sql is None:
            self.sql = sql
        return self

    def __str__(self) -> str:
        return "\n".join(self._lines(WIDTH))

    def text(self, width: int = WIDTH) -> str:
        """The whole message for a person at a screen of `width` columns: `str(error)`, and where to read more."""
        return "\n".join([*self._lines(width), look_up(self.condition)])

    def _lines(self, width: int) -> list[str]:
        lines = [f"{type(self).__name__}: {self.message}"]
        if self.sql is not None and self.span is not None:
            lines += excerpt(self.sql, self.span, width)
        else:
            lines += map(masked, self.lines)
        lines += [f"note: {note}" for note in self.notes]
        if self.help is not None:
            lines.append(f"help: {self.help}")
        return lines


class ParseError(SqlExtError):
    """The text is not a statement of the language."""


class AnalysisError(SqlExtError):
    """The statement names something that does not exist, or has the wrong type."""


class UnsupportedError(SqlExtError):
    """The statement is legal but asks for something that this product does not do."""


class ConfigurationError(SqlExtError):
    """The environment is not fit for the statement: a missing file, Java, or package on an executor."""


class DataError(SqlExtError):
    """The rows hold what the statement cannot work with: a sum that overflows, a period that ends before it starts."""


class InternalError(Exception):
    """A bug in this product; never the user's fault."""


def excerpt(sql: str, span: Span, width: int = WIDTH) -> list[str]:
    """The line of `sql` where `span` starts, with a caret line below it, in at most `width` columns."""
    sql = masked(sql, same_length=True)
    start = min(max(span.start, 0), len(sql))
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    number = sql.count("\n", 0, start) + 1
    column = start - line_start
    text = _UNSEEN.sub(lambda found: " " if found[0] in "\t\r" else "?", sql[line_start:line_end])
    length = max(1, min(span.end, line_end) - start)
    label = f"{number} | "
    room = max(20, width - len(label) - 3)
    cut = max(0, column - room // 2) if column + min(length, room // 2) > room else 0
    shown = ("..." if cut else "") + text[cut : cut + room]
    before, marked = text[cut:column], text[column : column + length][: cut + room - column]
    caret = " " * (_columns(before) + (3 if cut else 0)) + "^" * max(1, _columns(marked))
    return [f"  --> query:{number}:{column + 1}", label + shown, " " * len(label) + caret]


def _columns(text: str) -> int:
    """How wide a terminal shows the text: East Asian letters take two columns, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


_MASK = "***"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`<>]+")
#: Before the host: `s3a://KEY:SECRET@bucket`, whose secret may hold slashes, and `ftp://user:password@host`. A name
#: without a colon is no secret: the container of `abfss://container@account`.
_USER = re.compile(r"(?<=://)(?:(?<=s3://)|(?<=s3[an]://))[^:@/]+:.+(?=@)|(?<=://)[^:@/]*:[^@/]+(?=@)")
#: After a question mark: `?sig=...` of Azure, `&X-Amz-Signature=...` of S3, `;password=...` of JDBC.
_VALUE = re.compile(
    r"(?<=[?&;])(?P<name>(?:[\w.%-]*[-_.])?(?:aws)?(?:sig|signature|token|secret|password|passwd|pwd|credentials?|"
    r"(?:access|secret|account|sharedaccess|api)?[_-]?key(?:id)?)=)(?P<value>[^&;]+)",
    re.IGNORECASE,
)


def masked(text: str, *, same_length: bool = False) -> str:
    """The text with `***` in URIs in place of what proves who one is; `same_length` keeps all others in place."""
    return _URI.sub(lambda uri: _without_secrets(uri[0], same_length), text) if "://" in text else text


def _without_secrets(uri: str, same_length: bool) -> str:
    def mask(secret: str) -> str:
        return "*" * len(secret) if same_length else _MASK

    uri = _USER.sub(lambda found: mask(found[0]), uri)
    return _VALUE.sub(lambda found: found["name"] + mask(found["value"]), uri)


def without_credentials(record: logging.LogRecord) -> bool:
    """A filter for loggers: messages and tracebacks are masked."""
    record.msg, record.args = masked(record.getMessage()), ()
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        record.exc_text = masked("".join(traceback.format_exception(record.exc_info[1]))).rstrip()
    return True


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


def page(name: str) -> Path:
    """The page `docs/NAME` of the checkout, or its copy in the installed package (pyproject.toml lists those)."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent / "docs" / name
    return checkout if checkout.is_file() else package / "docs" / name
