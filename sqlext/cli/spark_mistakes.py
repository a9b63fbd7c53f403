"""Mistakes that Spark finds in a statement, as errors of ours: one paragraph, with the place in the user's text."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, DataError, ParseError, Span, SqlExtError

from sqlext.syntax.typos import misspelt

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CONDITION = re.compile(r"^\s*\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")


def placed(error: BaseException, statement: str) -> SqlExtError | None:
    """The error with its place in `statement`; None if it is none of Spark's, or Spark does not say the place."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import (
        AnalysisException,
        ArithmeticException,
        ArrayIndexOutOfBoundsException,
        DateTimeException,
        NumberFormatException,
        ParseException,
        PySparkException,
    )

    if not isinstance(error, PySparkException):
        return None
    span = _place(error, statement)
    if span is None:
        return None
    message, notes = _message(error)
    match error:
        case ParseException():
            return misspelt(statement) or ParseError(message, span=span, notes=notes)
        case AnalysisException():
            return AnalysisError(message, span=span, notes=notes)
        case ArithmeticException() | ArrayIndexOutOfBoundsException() | DateTimeException() | NumberFormatException():
            return DataError(message, span=span, notes=notes)
    return None


def _message(error: PySparkException) -> tuple[str, tuple[str, ...]]:
    """Spark's words, and a note with the name under which its documentation has the error."""
    text = (error.getMessage() or str(error)).strip()
    found = _CONDITION.match(text)
    words = " ".join(_STATE.sub("", _CONDITION.sub("", text)).split())
    return words, (f"Spark calls this error {found[1]}",) if found else ()


def _place(error: PySparkException, statement: str) -> Span | None:
    """The characters of the statement that the error is about."""
    from pyspark.errors import QueryContextType

    for context in error.getQueryContext() or []:
        if context.contextType() is QueryContextType.SQL:
            span = Span(context.startIndex(), context.stopIndex() + 1)
            # Of a view's text, or of a text that we have made, it says nothing about the user's.
            if statement[span.start : span.end] == context.fragment():
                return span
    found = _POSITION.search(str(error))
    if found is None:
        return None
    lines = statement.split("\n")
    line, column = int(found[1]), int(found[2])
    if line > len(lines):
        return None
    start = sum(len(one) + 1 for one in lines[: line - 1]) + column
    word = re.compile(r"\w+|.", re.DOTALL).match(statement, start)
    return Span(start, word.end() if word else start + 1)
