"""The OPTIONS of OpenMLDB's DEPLOY, checked where a script is deployed.

A deployment takes all of them and needs none: long windows are condensed without being named, there are no indexes, and
how long rows are kept is its `lateness`. A mistake in them is refused all the same: somebody relies on what they say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlext_planner.errors import AnalysisError, ParseError, Span
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.scripts import deploy_options, span_of_tokens

_LONG_WINDOWS = "LONG_WINDOWS"
#: The window of a part of long_windows, and the length or number of rows of its blocks.
_LONG_WINDOW = re.compile(r"\s*(\w+)\s*(?::\s*\d+\s*[smhd]?)?\s*", re.IGNORECASE)
_LONG_HELP = 'write long_windows="w1:1d,w2:100": names of windows, each with a length (s, m, h, d) or a number of rows'
_BOOLEAN = (re.compile("true|false", re.IGNORECASE), "write true or false")
#: By option the form of its value, and what to write. No form: LONG_WINDOWS, which is read part by part.
_OPTIONS: dict[str, tuple[re.Pattern[str], str] | None] = {
    _LONG_WINDOWS: None,
    "SKIP_INDEX_CHECK": _BOOLEAN,
    "SYNC": _BOOLEAN,
    "RANGE_BIAS": (re.compile(r"inf|\d+\s*[smhd]?", re.IGNORECASE), "write a length, 10d or 90s, milliseconds or inf"),
    "ROWS_BIAS": (re.compile(r"inf|\d+", re.IGNORECASE), "write a number of rows, or inf"),
}


def check_deploy_options(sql: str, query: exp.Query) -> None:
    """Look at the options of a script's DEPLOY, whose query this is.

    Raises ParseError for an option that DEPLOY does not have and for a value that an option does not take,
    AnalysisError for a long window that the query does not have.
    """
    for item in deploy_options(sql):
        key, value = item[0], item[2:]
        if key.text.upper() not in _OPTIONS:
            known = ", ".join(name.lower() for name in _OPTIONS)
            raise _mistake(f"DEPLOY has no option '{key.text}'", item[:1], sql, f"its options are {known}")
        if not value or item[1].token_type != TokenType.EQ:
            raise _mistake(f"the option '{key.text}' has no value", item, sql, f"write {key.text} = ...")
        form = _OPTIONS[key.text.upper()]
        if form is None:
            _check_long_windows(value, sql, query)
        elif form[0].fullmatch(_text(value, sql)) is None:
            raise _mistake(f"{_text(value, sql)} is no value of the option '{key.text}'", value, sql, form[1])


def _text(value: Sequence[Token], sql: str) -> str:
    """A value without its quotes."""
    first, last = value[0], value[-1]
    return first.text if first.token_type == TokenType.STRING else sql[first.start : last.end + 1]


def _check_long_windows(value: Sequence[Token], sql: str, query: exp.Query) -> None:
    if len(value) != 1 or value[0].token_type != TokenType.STRING:
        raise _mistake("the value of long_windows is no text", value, sql, _LONG_HELP)
    named = {
        window.this.name.lower(): window.this.name
        for select in query.find_all(exp.Select)
        for window in select.args.get("windows") or []
    }
    at = value[0].start + 1
    for part in sql[at : value[0].end].split(","):
        match = _LONG_WINDOW.fullmatch(part)
        if match is None:
            raise _mistake(f"'{part.strip()}' is no long window", value, sql, _LONG_HELP)
        if match[1].lower() not in named:
            raise AnalysisError(
                f"the query has no window '{match[1]}'",
                condition="unknown-window",
                span=Span(at + match.start(1), at + match.end(1)),
                help=f"its windows are {', '.join(named.values())}"
                if named
                else "it names no window: WINDOW name AS (...)",
                sql=sql,
            )
        at += len(part) + 1


def _mistake(message: str, tokens: Sequence[Token], sql: str, help: str) -> ParseError:
    return ParseError(message, condition="syntax-error", span=span_of_tokens(tokens), help=help, sql=sql)
