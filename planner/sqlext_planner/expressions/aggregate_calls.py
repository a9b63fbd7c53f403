"""Spark's aggregate calls inside the text of an expression."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Expression, SparkExpr
from sqlext_planner.expressions.sql_tokens import Token, closing, is_blank, is_word, joined, split_arguments, tokens

_NAMES = {"count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max"}
#: Words that may appear beside the calls: they compute with results row by row.
_WORDS = (
    "abs and as between bigint bround case cast ceil ceiling coalesce date decimal double else end exp false float "
    "floor greatest if ifnull in int is isnotnull isnull least like ln log10 negative not null nullif nvl or pow power "
    "round sign sqrt string then true try_add try_cast try_divide try_multiply try_subtract when"
)
_SCALAR = frozenset(_WORDS.split())
_CONSTANT = re.compile(r"\d[\w.]*|\.\d\w*|'.*'|true|false", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class AggregateCall:
    """``name([DISTINCT] arguments) [FILTER (WHERE condition)]``; no arguments mean ``count(*)``.

    `text` is the call as it was written.
    """

    name: str
    distinct: bool
    arguments: tuple[Expression, ...]
    condition: Expression | None
    text: tuple[Token, ...]

    @property
    def counts_rows(self) -> bool:
        """True for ``count(*)`` and ``count(1)``."""
        return self.name == "count" and not self.distinct and all(map(is_constant, self.arguments))

    @property
    def sees_multiplicity(self) -> bool:
        """False if one row and many equal ones give the same result."""
        return not self.distinct and self.name not in ("min", "max")

    @property
    def filtered_argument(self) -> Expression | None:
        """The values that the call takes, with NULL for those that the FILTER leaves out; None for all rows."""
        value = None if self.counts_rows else self.arguments[0]
        if self.condition is None:
            return value
        given: Token = "1" if value is None else value
        return SparkExpr(joined(("CASE WHEN ", self.condition, " THEN ", given, " END")))


def aggregate_calls(expression: Expression) -> tuple[Token | AggregateCall, ...] | None:
    """The pieces of an opaque expression, in order: texts, columns, aggregate calls.

    ``sum(a.x) / count(*)`` gives (sum(a.x), " / ", count(*)). None for other expressions, and for a text with functions
    that may be aggregates: only texts that compute with results are known to hold none.
    """
    if not isinstance(expression, SparkExpr):
        return None
    if not expression.deterministic or expression.has_subquery or expression.has_window:
        return None
    found = tokens(expression)
    pieces: list[Token | AggregateCall] = []
    at = 0
    while at < len(found):
        token = found[at]
        begin = _next(found, at)
        if is_word(token) and str(token).lower() in _NAMES and begin < len(found) and found[begin] == "(":
            call, at = _call(found, at, begin)
            if call is None:
                return None
            pieces.append(call)
        elif is_word(token) and str(token).lower() not in _SCALAR:
            return None
        else:
            pieces.append(token)
            at += 1
    return _merged(pieces)


def is_constant(expression: Expression) -> bool:
    """True for a number, a string, TRUE or FALSE: a value that is not NULL."""
    return not expression.references and _CONSTANT.fullmatch(str(expression).strip()) is not None


def _call(found: tuple[Token, ...], start: int, begin: int) -> tuple[AggregateCall | None, int]:
    """The call whose name is at `start`, and the place after it."""
    end = closing(found, begin)
    if end is None:
        return None, start
    inner = _trimmed(found[begin + 1 : end])
    words = [str(token).lower() for token in inner[:1]]
    distinct = words == ["distinct"]
    if words in (["distinct"], ["all"]):
        inner = _trimmed(inner[1:])
    name = _NAMES[str(found[start]).lower()]
    if not inner or (inner == ("*",) and name != "count"):
        return None, start
    arguments = () if inner == ("*",) else tuple(map(_expression, split_arguments(inner)))
    condition, stop = _filter(found, end + 1)
    if (len(arguments) > 1 and not distinct) or (not arguments and distinct):
        return None, start
    return AggregateCall(name, distinct, arguments, condition, joined(found[start:stop])), stop


def _filter(found: tuple[Token, ...], at: int) -> tuple[Expression | None, int]:
    """The condition of a FILTER that follows, and the place after it."""
    word = _next(found, at - 1)
    begin = _next(found, word)
    if word >= len(found) or str(found[word]).lower() != "filter" or begin >= len(found) or found[begin] != "(":
        return None, at
    end = closing(found, begin)
    where = _next(found, begin)
    if end is None or str(found[where]).lower() != "where":
        return None, at
    return _expression(found[where + 1 : end]), end + 1


def _next(found: tuple[Token, ...], at: int) -> int:
    """The place of the next token that is not blank."""
    at += 1
    while at < len(found) and is_blank(found[at]):
        at += 1
    return at


def _trimmed(found: tuple[Token, ...]) -> tuple[Token, ...]:
    places = [place for place, token in enumerate(found) if not is_blank(token)]
    return found[places[0] : places[-1] + 1] if places else ()


def _expression(found: tuple[Token, ...]) -> Expression:
    parts = joined(_trimmed(found))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Expression) else SparkExpr(parts)


def _merged(pieces: list[Token | AggregateCall]) -> tuple[Token | AggregateCall, ...]:
    merged: list[Token | AggregateCall] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)
