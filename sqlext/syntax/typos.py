"""Misspelt keywords of a statement that nobody can parse: `SELEC 1`, `SELECT a FORM t`."""

from __future__ import annotations

import difflib
import re

from sqlext_planner.errors import ParseError, Span

from sqlext.syntax.parser import parse
from sqlext.syntax.sql_settings import DEFAULT, SqlSettings

#: Words with which statements begin that we parse.
FIRST_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "INSERT", "CREATE")
#: Words of their clauses.
LATER_WORDS = tuple(
    """
    SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET QUALIFY WINDOW JOIN INNER LEFT RIGHT FULL OUTER
    CROSS LATERAL ON USING UNION EXCEPT INTERSECT OVER PARTITION ROWS RANGE BETWEEN PRECEDING FOLLOWING CURRENT
    UNBOUNDED CASE WHEN THEN ELSE END AND OR NOT IN LIKE IS NULL AS INTO TABLE VIEW VALUES
    """.split()  # noqa: SIM905 - a table of words
)
#: Comments and quoted text are parts too, so that no word is found in them.
_PARTS = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|(?P<word>[A-Za-z_]\w*)", re.DOTALL
)
#: Words before the place where parsing stopped that may be the cause.
_WORDS_BACK = 3
_LIKENESS = 0.7


def misspelt(text: str, settings: SqlSettings = DEFAULT) -> ParseError | None:
    """An error that names a misspelt keyword and its place: a word with whose correction the text can be parsed.

    None for a text that can be parsed, and where no correction helps: Spark may know words that we do not.
    """
    statement = parse(text, settings=settings)
    if statement.ast is not None:
        return None
    words = [part for part in _PARTS.finditer(text) if part["word"]]
    if not words:
        return None
    stop = statement.stopped.end if statement.stopped is not None else 0
    for part in (*reversed([word for word in words if word.start() < stop][-_WORDS_BACK:]), words[0]):
        for keyword in _near(part["word"], FIRST_WORDS if part is words[0] else LATER_WORDS):
            if _is_parsed(text[: part.start()] + keyword + text[part.end() :], settings):
                return ParseError(
                    f"the statement cannot be parsed: '{part['word']}' is no keyword",
                    condition="syntax-error",
                    span=Span(part.start(), part.end()),
                    help=f"did you mean {keyword}?",
                    sql=text,
                )
    return None


def _near(word: str, keywords: tuple[str, ...]) -> list[str]:
    if word.upper() in keywords:
        return []
    return difflib.get_close_matches(word.upper(), keywords, n=3, cutoff=_LIKENESS)


def _is_parsed(text: str, settings: SqlSettings) -> bool:
    try:
        return parse(text, settings=settings).ast is not None
    except ParseError:
        return False
