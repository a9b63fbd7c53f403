"""Colours for SQL: Spark's, with the words of this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pygments.lexers.sql import SqlLexer
from pygments.token import Error, Keyword, Name, Text, _TokenType

_WORDS = frozenset(
    [
        *("ALLEN", "ANTI", "CLOSED", "COMPENSATE", "CONCURRENT", "CONFIDENCE", "CURRENT_ROW", "CURRENT_TIME", "DELAY"),
        *(
            "EMIT",
            "EXCLUDE",
            "EXPLAIN",
            "FOLLOWING",
            "GAPS",
            "IMMEDIATELY",
            "INSTANCE_NOT_IN_WINDOW",
            "LAST",
            "MAXSIZE",
        ),
        *("NORMALIZE", "OVER", "OVERLAPS", "PARTITION", "PERIOD", "PRECEDES", "PRECEDING", "RANGE", "REPLACE"),
        *("ROWS_RANGE", "SEMI", "STRICTLY", "SUCCEEDS", "TEMP", "UNBOUNDED", "WINDOW", "WITHIN"),
    ]
)


class SqlExtLexer(SqlLexer):
    """SQL as Pygments reads it. Our words are keywords, and parameters and braces are text rather than errors."""

    name = "SQL for time on Spark"
    aliases: ClassVar[list[str]] = ["sql"]
    filenames: ClassVar[list[str]] = []

    def get_tokens_unprocessed(self, text: str, *rest: str) -> Iterator[tuple[int, _TokenType, str]]:
        for at, token, value in super().get_tokens_unprocessed(text, *rest):
            if token in Name and value.upper() in _WORDS:
                yield at, Keyword, value
            else:
                yield at, Text if token is Error else token, value
