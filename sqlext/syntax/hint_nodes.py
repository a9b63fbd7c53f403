"""Hints (``/*+ BROADCAST(d), UMJOIN(a, b) */``), read from the text as Spark's grammar defines them.

    hint := name [ '(' parameter (',' parameter)* ')' ], with or without commas between hints

sqlglot parses a hint's text as expressions and keeps anything else as a string without a place. Here a hint is a name
and parameters as text, so that reading them cannot fail; the code that follows the hint decides what they mean.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sqlext_planner.config import PARTITIONERS
from sqlext_planner.errors import ParseError, Span
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

#: Whether the joins of a block are to be interval joins, as far as their conditions allow.
SWEEP = {"SWEEP": True, "NO_SWEEP": False}
#: Whether they are to be one multi-way join.
UMJOIN = {"UMJOIN": True, "NO_UMJOIN": False}
#: How the exchanges of a block's operators spread their rows, as the parameter says.
PARTITIONER = "PARTITIONER"
#: Its names.
_PARTITIONERS = ("auto", *PARTITIONERS)
#: What each of them asks for, by its name and parameters as they are written.
HINT_DOCS: Mapping[str, str] = {
    "SWEEP": "Joins of this SELECT on periods, or on inequalities that mean the same, run as interval joins.",
    "NO_SWEEP": "Spark compares the rows of these joins.",
    "UMJOIN": "Every group of three or more joined relations of this SELECT runs as one multi-way join.",
    "UMJOIN(a, b, c)": "The group with these relations runs as one multi-way join.",
    "NO_UMJOIN": "The joins of this SELECT stay joins of two.",
    "PARTITIONER(name)": "How the windows and joins of this SELECT spread their rows: "
    + ", ".join(f"`{name}`" for name in _PARTITIONERS)
    + ".",
}

_PIECE = re.compile(
    r"""
    (?P<gap> \s+ | --[^\n]* )
  | (?P<start> /\*(?!\+) ) | (?P<end> \*/ )
  | (?P<text> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
  | (?P<name> `(?:[^`]|``)*` | \w+ )
  | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BETWEEN = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*(?!\+)(?>(?:[^*]|\*(?!/))*)\*/)*+")
_NAME = re.compile(r"(?:`(?:[^`]|``)*`|\w+)(?:\s*\.\s*(?:`(?:[^`]|``)*`|\w+))*+")


class HintParameter(exp.Expression):
    """One parameter of a hint, as text."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def relation(self) -> str | None:
        """The last part of a name, without backticks; None if this is not a name."""
        if _NAME.fullmatch(self.name) is None:
            return None
        last = re.findall(r"`(?:[^`]|``)*`|\w+", self.name)[-1]
        return last[1:-1].replace("``", "`") if last.startswith("`") else str(last)


class HintCall(exp.Expression):
    """One hint: its name in upper case and its parameters. If the text read so far is not a hint, `problem` says why;
    the name is then the last one before it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "problem": False}

    @property
    def is_ours(self) -> bool:
        return self.name in SWEEP or self.name in UMJOIN or self.name == PARTITIONER


def hint_call_sql(generator: Any, call: HintCall) -> str:
    """The hint as text."""
    given = ", ".join(item.name for item in call.expressions)
    return f"{call.name}({given})" if given else call.name


def read_hints(sql: str, start: int) -> exp.Hint:
    """The hints in the comment at `start`, and in those that follow it directly, each with its place."""
    calls: list[HintCall] = []
    while sql.startswith("/*+", start):
        end = hint_end(sql, start)
        calls += _calls(sql, start + 3, end - 2 if sql.endswith("*/", start, end) else end)
        between = _BETWEEN.match(sql, end)
        start = between.end() if between is not None else len(sql)
    return exp.Hint(expressions=calls)


def hint_end(sql: str, start: int) -> int:
    """The place after the ``*/`` that closes the hint at `start`; a comment or string inside does not close it."""
    depth, place = 1, start + 3
    while depth and (piece := _PIECE.match(sql, place)) is not None:
        depth += {"start": 1, "end": -1}.get(str(piece.lastgroup), 0)
        place = piece.end()
    return place


def without_inner_ends(sql: str, tokens: list[Token]) -> str:
    """The text with blanks for every ``*/`` inside a hint that does not end it: the tokenizer stops at the first."""
    for token in tokens:
        if token.token_type == TokenType.HINT and (end := hint_end(sql, token.start)) != token.end + 1:
            inside = sql[token.start + 3 : end - 2]
            blanked = re.sub(r"/\*|\*/", "  ", _COMMENT.sub(lambda found: " " * len(found.group()), inside))
            return sql[: token.start + 3] + blanked + sql[end - 2 :]
    return sql


_COMMENT = re.compile(r"/\*(?>(?:[^*]|\*(?!/))*)\*/", re.DOTALL)


def refuse_malformed(sql: str, calls: Iterable[HintCall]) -> None:
    """Raises ParseError, at its place, if one of our hints is malformed; other hints are left to Spark."""
    for call in calls:
        if not call.is_ours:
            continue
        place, name = Span(*call.meta["span"]), call.name
        if call.args.get("problem"):
            more = f" or /*+ {name}(a, b, c) */" if name in UMJOIN else ""
            help = f"write /*+ {name}(name) */" if name == PARTITIONER else f"write /*+ {name} */{more}"
            raise _malformed(sql, place, f"the hint {name} cannot be read: {call.args['problem']}", help)
        if name in SWEEP and call.expressions:
            raise _malformed(sql, place, f"the hint {name} takes no parameters", f"write /*+ {name} */")
        if name == PARTITIONER:
            _check_partitioner(call, place, sql)
            continue
        for item in call.expressions:
            if item.relation is None:
                raise _malformed(
                    sql,
                    Span(*item.meta["span"]) if item.name else place,
                    f"'{item.name}' in the hint {name} is not the name of a relation",
                    f"separate names by commas: /*+ {name}(a, b, c) */",
                )


def _malformed(sql: str, span: Span, message: str, help: str) -> ParseError:
    return ParseError(message, condition="malformed-hint", span=span, help=help, sql=sql)


def _check_partitioner(call: HintCall, place: Span, sql: str) -> None:
    names = [item.name.lower() for item in call.expressions]
    if len(names) == 1 and names[0] in _PARTITIONERS:
        return
    nearest = difflib.get_close_matches(names[0], _PARTITIONERS, n=1) if len(names) == 1 else []
    what = f"has no partitioner '{call.expressions[0].name}'" if len(names) == 1 else "takes one name"
    raise _malformed(
        sql,
        Span(*call.expressions[0].meta["span"]) if len(names) == 1 and names[0] else place,
        f"the hint {PARTITIONER} {what}",
        f"did you mean '{nearest[0]}'?" if nearest else f"use one of {', '.join(_PARTITIONERS)}",
    )


def _calls(sql: str, start: int, end: int) -> Iterator[HintCall]:
    """The hints between two places of the text."""
    pieces = [piece for piece in _pieces(sql, start, end) if piece.lastgroup != "gap"]
    at, last = 0, ""
    while at < len(pieces):
        piece = pieces[at]
        if piece.lastgroup != "name":
            if piece.group() != "," or at == 0 or at + 1 == len(pieces) or pieces[at - 1].group() == ",":
                yield _problem(last, f"found {piece.group()!r} where a name is expected", *piece.span())
                return
            at += 1
            continue
        last = piece.group().strip("`").upper()
        if at + 1 == len(pieces) or pieces[at + 1].group() != "(":
            yield _call(last, [], piece.start(), piece.end())
            at += 1
            continue
        close = _closing(pieces, at + 1)
        if close is None:
            yield _problem(last, "a parenthesis is not closed", piece.start(), pieces[-1].end())
            return
        inside = list(_parameters(sql, pieces[at + 2 : close], pieces[close].start()))
        yield _call(last, inside, piece.start(), pieces[close].end())
        at = close + 1


def _pieces(sql: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """The pieces between two places; comments are left out."""
    depth, place = 0, start
    while place < end and (piece := _PIECE.match(sql, place, end)) is not None:
        place = piece.end()
        depth += {"start": 1, "end": -1}.get(str(piece.lastgroup), 0)
        if depth == 0 and piece.lastgroup != "end":
            yield piece


def _closing(pieces: list[re.Match[str]], at: int) -> int | None:
    depth = 0
    for place in range(at, len(pieces)):
        depth += {"(": 1, ")": -1}.get(pieces[place].group(), 0)
        if depth == 0:
            return place
    return None


def _parameters(sql: str, pieces: list[re.Match[str]], end: int) -> Iterator[HintParameter]:
    """The parameters between parentheses; none if there is nothing between them."""
    if not pieces:
        return
    groups: list[list[re.Match[str]]] = [[]]
    depth = 0
    for piece in pieces:
        depth += {"(": 1, ")": -1}.get(piece.group(), 0)
        if piece.group() == "," and depth == 0:
            groups.append([])
        else:
            groups[-1].append(piece)
    for group in groups:
        first, last = (group[0].start(), group[-1].end()) if group else (end, end)
        parameter = HintParameter(this=sql[first:last])
        parameter.meta["span"] = (first, last)
        yield parameter


def _call(name: str, parameters: list[HintParameter], start: int, end: int) -> HintCall:
    call = HintCall(this=name, expressions=parameters)
    call.meta["span"] = (start, end)
    return call


def _problem(name: str, problem: str, start: int, end: int) -> HintCall:
    call = HintCall(this=name, problem=problem)
    call.meta["span"] = (start, end)
    return call
