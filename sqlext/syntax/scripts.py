"""Reads OpenMLDB's scripts as plain queries (compat="openmldb"): the query inside DEPLOY, after the DDL it needs.

A script may hold one query. Anything around it that means nothing to a batch query is left out of the tokens; offsets
in the text stay the same, so errors point at the script as written:

- ``DEPLOY [IF NOT EXISTS] name [OPTIONS (...)]`` before the query, ``CONFIG (...)`` after it;
- the declarations before it: USE, SET @@variable, CREATE DATABASE, CREATE TABLE, CREATE INDEX. They are not run:
  the tables of a Session are Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from sqlext_planner.errors import ParseError, Span, SqlExtError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.spans import unsupported
from sqlext.syntax.sql_settings import SqlSettings, is_string, string_value

_no_equivalent = partial(unsupported, "no-equivalent")

_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN
_CREATED = ("DATABASE", "INDEX", "TABLE")

#: OpenMLDB statements without a counterpart, by their first words: what is wrong, what to do instead.
_REFUSED = {
    ("LOAD", "DATA", "INFILE"): (
        "LOAD DATA INFILE works only in OpenMLDB",
        "read the file: session.register(name, path)",
    ),
    ("DROP", "DEPLOYMENT"): ("nothing is deployed here", "leave the statement out"),
}
_VARIABLE = ("OpenMLDB's variables have no meaning here", "leave it out, or SET a Spark setting")


def query_tokens(tokens: list[Token], sql: str, compat: str | None) -> list[Token]:
    """The tokens of the script's only query, without the wrappers around it; all tokens if there is none.

    Raises ParseError for a second query or a DEPLOY without one, UnsupportedError for what only OpenMLDB's server does.
    """
    statements = split_tokens(tokens)
    if compat != "openmldb":
        if statements and words(statements[0], 1) == ("DEPLOY",) and len(statements[0]) > 2:
            message = "DEPLOY is OpenMLDB's"
            help = 'read the statement with compat="openmldb", or leave the word out: `sqlext deploy` deploys a query'
            raise ParseError(
                message, condition="syntax-error", span=span_of_tokens(statements[0][:1]), help=help, sql=sql
            )
        return tokens
    try:
        asked = [statement for statement in statements if not is_declaration(statement)]
        if len(asked) > 1:
            raise ParseError(
                f"the script contains {len(asked)} statements besides its declarations; this is the second",
                condition="several-statements",
                span=span_of_tokens(asked[1]),
                help="run them one by one; `sqlext run FILE` does",
            )
        if not asked:
            _refuse_alone(statements)
            return tokens
        _refuse(asked[0])
        return _without_config(_without_deploy(asked[0]))
    except SqlExtError as error:
        raise error.with_sql(sql) from None


def deployed_name(sql: str) -> str | None:
    """The name in a script's DEPLOY, without its database; None where there is no DEPLOY."""
    deploy = _deploy(sql)
    return str(deploy[_behind_name(deploy) - 1].text) if deploy else None


def deploy_options(sql: str) -> list[list[Token]]:
    """The items of OPTIONS (...) of a script's DEPLOY, before and behind its name: each as its tokens."""
    deploy = _deploy(sql)
    items: list[list[Token]] = []
    for at in (_before_name(deploy), _behind_name(deploy)) if deploy else ():
        while words(deploy[at:], 2) == ("OPTIONS", "("):
            end = closing(deploy, at + 1)
            commas = [place for place in range(at + 2, end) if deploy[place].token_type == TokenType.COMMA]
            items += [deploy[start + 1 : stop] for start, stop in pairwise((at + 1, *commas, end))]
            at = end + 1
    return [item for item in items if item]


def _deploy(sql: str) -> list[Token]:
    """The tokens of a script's DEPLOY; none where there is none."""
    try:
        statements = split_tokens(SqlExt().tokenize(sql))
    except SqlglotError:
        return []
    return next((statement for statement in statements if words(statement, 1) == ("DEPLOY",)), [])


def declares(statement: str) -> bool:
    """Whether a statement's text is a declaration; see `is_declaration`."""
    try:
        return is_declaration(SqlExt().tokenize(statement))
    except SqlglotError:
        return False


def split_tokens(tokens: Sequence[Token]) -> list[list[Token]]:
    """The statements between semicolons, empty ones left out."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def words(statement: Sequence[Token], count: int) -> tuple[str, ...]:
    """The first words in upper case."""
    return tuple(token.text.upper() for token in statement[:count])


def is_declaration(statement: Sequence[Token]) -> bool:
    """Whether a statement declares what a script's query runs on: USE, SET @@v, CREATE DATABASE, TABLE or INDEX.

    Spark creates a table that has a query or a format (USING).
    """
    first, second, *_ = (*words(statement, 2), "", "")
    if first == "CREATE" and second in _CREATED:
        return not any(token.token_type in (TokenType.SELECT, TokenType.USING) for token in statement)
    return first == "USE" or _sets_variable(statement)


def span_of_tokens(tokens: Sequence[Token]) -> Span:
    """From the first token to the last."""
    return Span(tokens[0].start, tokens[-1].end + 1)


def closing(tokens: Sequence[Token], at: int) -> int:
    """The index of the parenthesis that closes the one at `at`; the end if there is none."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += {_OPEN: 1, _CLOSE: -1}.get(tokens[place].token_type, 0)
        if depth == 0:
            return place
    return len(tokens)


def _sets_variable(statement: Sequence[Token]) -> bool:
    """``SET @@v = 1``, ``SET GLOBAL v = 1``, ``SET SESSION v = 1``; Spark's own SET has neither."""
    first, second, _, sign = (*words(statement, 4), "", "", "", "")[:4]
    return first == "SET" and (second == "@" or (second in ("GLOBAL", "SESSION") and sign == "="))


def _refuse_alone(statements: Sequence[Sequence[Token]]) -> None:
    """Raises UnsupportedError if only OpenMLDB could run a declaration; any other one alone goes to Spark."""
    for statement in statements:
        if _sets_variable(statement):
            raise _no_equivalent(span_of_tokens(statement), _VARIABLE[0], _VARIABLE[1])
        for place in range(2, len(statement) - 1):
            if words(statement[place : place + 2], 2) == ("INDEX", "(") and words(statement, 2) == ("CREATE", "TABLE"):
                raise _no_equivalent(
                    span_of_tokens(statement[place : closing(statement, place + 1) + 1]),
                    "tables are Spark tables here, and these have no INDEX",
                    "register the data under the table's name, or leave INDEX and OPTIONS out",
                )


def _refuse(statement: Sequence[Token]) -> None:
    for start, (message, help) in _REFUSED.items():
        if words(statement, len(start)) == start:
            raise _no_equivalent(span_of_tokens(statement[: len(start)]), message, help)
    for place, token in enumerate(statement[:-1]):
        if words(statement[place : place + 2], 2) == ("INTO", "OUTFILE") and token.token_type == TokenType.INTO:
            help = "write the DataFrame, or use `sqlext run -o FILE`"
            raise _no_equivalent(span_of_tokens(statement[place:]), "INTO OUTFILE works only in OpenMLDB", help)


def _without_deploy(statement: list[Token]) -> list[Token]:
    """The query of ``DEPLOY [IF NOT EXISTS] [OPTIONS (...)] name [OPTIONS (...)] query``."""
    if words(statement, 1) != ("DEPLOY",):
        return statement
    at = _behind_options(statement, _behind_name(statement))
    if at >= len(statement) or statement[at].token_type not in (TokenType.SELECT, TokenType.WITH, _OPEN):
        span = span_of_tokens(statement[at : at + 1] or statement[-1:])
        raise ParseError(
            "DEPLOY needs a query",
            condition="syntax-error",
            span=span,
            help="write DEPLOY name [OPTIONS (...)] SELECT ...",
        )
    return statement[at:]


def _before_name(statement: Sequence[Token]) -> int:
    """The place behind ``DEPLOY [IF NOT EXISTS]``."""
    return 4 if words(statement[1:], 3) == ("IF", "NOT", "EXISTS") else 1


def _behind_name(statement: Sequence[Token]) -> int:
    """The place behind DEPLOY's name, which may have a database."""
    at = _behind_options(statement, _before_name(statement)) + 1
    while at < len(statement) and statement[at].token_type == TokenType.DOT:
        at += 2
    return min(at, len(statement))


def _behind_options(statement: Sequence[Token], at: int) -> int:
    while words(statement[at:], 2) == ("OPTIONS", "("):
        at = closing(statement, at + 1) + 1
    return at


def _without_config(statement: list[Token]) -> list[Token]:
    """The query before ``CONFIG (key = value, ...)``. Raises UnsupportedError for rows of a request."""
    for place in range(len(statement) - 1, 0, -1):
        is_config = (
            words(statement[place : place + 2], 2) == ("CONFIG", "(")
            and closing(statement, place + 1) == len(statement) - 1
        )
        if not is_config or words(statement[place + 3 : -1], 1) != ("=",):
            continue
        inside = statement[place + 2 : -1]
        for key, sign in pairwise(inside):
            if key.text.upper() == "VALUES" and sign.token_type == TokenType.EQ:
                raise _no_equivalent(
                    span_of_tokens((key, inside[-1])),
                    "the rows of a request belong to OpenMLDB's online mode",
                    "put the rows into the FROM table",
                )
        return statement[:place]
    return statement


_EXECUTE = re.compile(r"\s*EXECUTE\s+IMMEDIATE\s+", re.IGNORECASE)
_TEXT = re.compile(r"[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_WHAT = "a sqlext window, LAST JOIN, ASOF JOIN or a period predicate"


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
    literal = _TEXT.match(text, start.end()) if start is not None else None
    if literal is None or not is_string(literal[0]):
        return
    try:
        ours = is_ours(string_value(literal[0], settings))
    except SqlExtError:  # it can only have been meant for us
        ours = True
    if ours:
        raise _error(
            f"EXECUTE IMMEDIATE runs its text in Spark, which does not know {_WHAT}",
            Span(*literal.span()),
            "run the text itself, as a statement of its own; session.sql(text, args=...) takes the values after USING",
            text,
        )


def _error(message: str, span: Span, help: str, sql: str) -> ParseError:
    return ParseError(message, condition="syntax-error", span=span, help=help, sql=sql)
