"""Statements of Spark that hold other statements, in which our syntax cannot be: pipes, scripts, EXECUTE IMMEDIATE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlext_planner.errors import ParseError, Span, SqlExtError
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.sql_settings import SqlSettings, is_string, string_value

_EXECUTE = re.compile(r"\s*EXECUTE\s+IMMEDIATE\s+", re.IGNORECASE)
_TEXT = re.compile(r"[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_WHAT = "a sqlext window, a LAST JOIN or a period predicate"


def pipe_error(pipe: Token, sql: str) -> ParseError:
    """The error for one of our constructs in a text with ``|>``."""
    return _error(
        f"|> cannot be combined with {_WHAT}",
        Span(pipe.start, pipe.end + 1),
        "write SELECT ... FROM; or make a view of the part that needs it, CREATE TEMPORARY VIEW v AS SELECT ..., and "
        "begin with FROM v |>",
        sql,
    )


def script_start(tokens: Sequence[Token]) -> Token | None:
    """The BEGIN of a script, which may have a label; None for any other statement."""
    for at in (0, 2):
        labelled = at == 0 or (len(tokens) > at and tokens[1].token_type == TokenType.COLON)
        if labelled and len(tokens) > at and tokens[at].text.upper() == "BEGIN":
            return tokens[at]
    return None


def script_error(begin: Token, sql: str) -> ParseError:
    """The error for one of our constructs in a script."""
    return _error(
        f"a script, BEGIN ... END, cannot hold {_WHAT}: Spark runs it as a whole",
        Span(begin.start, begin.end + 1),
        "run its statements one by one; or make a view of the query before, CREATE TEMPORARY VIEW v AS SELECT ..., and "
        "read v in the script",
        sql,
    )


def refuse_executed(text: str, settings: SqlSettings, is_ours: Callable[[str], bool]) -> None:
    """Raises ParseError for ``EXECUTE IMMEDIATE 'statement'`` if the statement holds our syntax."""
    start = _EXECUTE.match(text)
    found = _TEXT.match(text, start.end()) if start is not None else None
    if found is None or not is_string(found[0]):
        return
    try:
        ours = is_ours(string_value(found[0], settings))
    except SqlExtError:  # it can only have been meant for us
        ours = True
    if ours:
        raise _error(
            f"EXECUTE IMMEDIATE runs its text in Spark, which does not know {_WHAT}",
            Span(*found.span()),
            "run the text itself, as a statement of its own; session.sql(text, args=...) takes the values after USING",
            text,
        )


def _error(message: str, span: Span, help: str, sql: str) -> ParseError:
    return ParseError(message, condition="syntax-error", span=span, help=help, sql=sql)
