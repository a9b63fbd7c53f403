"""Schemas read from CREATE TABLE statements, OpenMLDB's or Spark's, for planning without data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlext_planner.errors import AnalysisError, ParseError, SqlExtError
from sqlext_planner.expressions.types import normalize
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.analyzer.compat_functions import TYPE_NAMES
from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.scripts import closing, span_of_tokens, split_tokens, words

_malformed = partial(ParseError, condition="schema-file")

#: What may follow a column's type.
_OPTIONS = ("NOT", "NULL", "DEFAULT", "COMMENT", "PRIMARY", "GENERATED")
_HELP = "write CREATE TABLE name (column type, ..., INDEX (...)) OPTIONS (...)"


def read_ddl(text: str) -> dict[str, dict[str, str]]:
    """``{"table": {"column": "spark type"}}`` of every CREATE TABLE in a script; other statements define no schemas and
    are skipped. A table's name is the last part of the written name.

    NOT NULL, DEFAULT, INDEX and OPTIONS are about storage and change no type. Raises ParseError or AnalysisError, with
    the place in `text`, for text that is not such a statement, an unknown type, a column or table that repeats.
    """
    try:
        statements = split_tokens(SqlExt().tokenize(text))
    except SqlglotError as error:
        raise _malformed(f"the text is not SQL: {error}", sql=text) from None
    tables: dict[str, dict[str, str]] = {}
    try:
        for statement in statements:
            is_query = any(token.token_type == TokenType.SELECT for token in statement)
            if words(statement, 2) == ("CREATE", "TABLE") and not is_query:
                _read_table(text, statement, tables)
    except SqlExtError as error:
        raise error.with_sql(text) from None
    return tables


def _read_table(text: str, statement: Sequence[Token], tables: dict[str, dict[str, str]]) -> None:
    at = 5 if words(statement[2:], 3) == ("IF", "NOT", "EXISTS") else 2
    while words(statement[at + 1 :], 1) == (".",):
        at += 2
    opening = at + 1
    end = closing(statement, opening) if words(statement[opening:], 1) == ("(",) else len(statement)
    if end >= len(statement):
        place = statement[opening : opening + 1] or statement[-1:]
        raise _malformed("the columns of the table are missing", span=span_of_tokens(place), help=_HELP)
    name = statement[at].text
    if name.lower() in {known.lower() for known in tables}:
        if at >= 5:  # IF NOT EXISTS: the first one counts
            return
        raise AnalysisError(
            f"table '{name}' is created twice",
            condition="duplicate-name",
            span=span_of_tokens(statement[at : at + 1]),
            help="remove one of them",
        )
    columns: dict[str, str] = {}
    for element in _elements(statement[opening + 1 : end]):
        _read_column(text, element, columns)
    if not columns:
        raise _malformed("the table has no columns", span=span_of_tokens(statement[opening : end + 1]), help=_HELP)
    tables[name] = columns


def _elements(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between commas that are outside parentheses and angle brackets."""
    elements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
        if token.token_type == TokenType.COMMA and depth == 0:
            elements.append([])
        else:
            elements[-1].append(token)
    return [element for element in elements if element]


def _read_column(text: str, element: Sequence[Token], columns: dict[str, str]) -> None:
    head = element[0]
    if head.token_type == TokenType.INDEX and any(token.token_type == TokenType.EQ for token in element):
        return  # INDEX [name] (KEY = ...); a column may also be called index
    if len(element) < 2:
        raise _malformed(f"column '{head.text}' has no type", span=span_of_tokens(element), help=_HELP)
    if head.text.lower() in {known.lower() for known in columns}:
        raise AnalysisError(
            f"column '{head.text}' is defined twice",
            condition="duplicate-name",
            span=span_of_tokens(element[:1]),
            help="rename one of them",
        )
    end = next((at for at in range(2, len(element)) if element[at].text.upper() in _OPTIONS), len(element))
    written = span_of_tokens(element[1:end])
    columns[head.text] = _type(text[written.start : written.end], element[1:end])


def _type(written: str, tokens: Sequence[Token]) -> str:
    name = " ".join(written.lower().split())
    if name.startswith("varchar"):
        return "string"
    try:
        return normalize(TYPE_NAMES.get(name, name))
    except SqlExtError:
        known = "int, bigint, smallint, float, double, bool, string, date, timestamp"
        raise AnalysisError(
            f"'{written}' is not a column type",
            condition="unknown-type",
            span=span_of_tokens(tokens),
            help=f"use {known}, or a Spark type",
        ) from None
