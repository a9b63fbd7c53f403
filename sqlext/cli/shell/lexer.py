"""Colours for SQL: Pygments' lexer, with the words of the dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword, Name, Number, String

from sqlext.cli.shell.words import functions, keywords

_DURATION = re.compile(r"(?:ms|[smhdw])\b", re.IGNORECASE)


class SqlExtLexer(SqlLexer):
    """Colours keywords of the dialect, calls of its functions, and durations such as ``10s``."""

    name = "sqlext"
    aliases: ClassVar[list[str]] = ["sqlext"]
    filenames: ClassVar[list[str]] = []
    mimetypes: ClassVar[list[str]] = []

    def get_tokens_unprocessed(self, text: str, *stack: Any) -> Iterator[tuple[int, Any, str]]:
        """Places, kinds and texts, as Pygments has them."""
        before: Any = None
        for at, kind, value in super().get_tokens_unprocessed(text, *stack):
            if kind in Name or kind is Keyword:
                kind = _kind(text, at, value, before)
            elif kind is String.Symbol:  # in Spark it is a text
                kind = String
            before = kind
            yield at, kind, value


def _kind(text: str, at: int, value: str, before: Any) -> Any:
    if before in Number and _DURATION.fullmatch(value):
        return Number
    if text.startswith("(", at + len(value)) and value.lower() in functions():
        return Name.Function
    return Keyword if value.upper() in _words() else Name


@cache
def _words() -> frozenset[str]:
    return frozenset(word for phrase in keywords() for word in phrase.split())
