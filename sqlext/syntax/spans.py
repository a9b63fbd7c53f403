"""The places of syntax tree nodes in a statement's text, which the parser marks, and errors that know theirs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from sqlext_planner.conditions import Condition
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.tokenizer_core import TokenType


class NoPlaceError(ValueError):
    """A node that has no text: sqlglot made it up."""


class PlacedParseError(SqlglotParseError):
    """sqlglot's error with `span`, the offending token, `help`, and whether the text ended too early.

    `ours`: the text before it can only have been meant for our grammar.
    """

    ours = False

    def __init__(
        self, message: str, errors: list[dict[str, Any]], span: Span, help: str | None, *, at_end: bool
    ) -> None:
        super().__init__(message, errors)
        self.span = span
        self.help = help
        self.at_end = at_end


def span_of(node: exp.Expr) -> Span:
    """The place of the text of `node`; the span of its children for a node that the parser only derived.

    Raises NoPlaceError for a node that was not parsed from text.
    """
    span: Span | None = None
    stack = [node]  # long chains of AND and OR are deeper than Python's stack
    while stack:
        top = stack.pop()
        meta = top._meta or {}
        if "span" in meta:
            span = Span(*meta["span"]) | span
        elif "start" in meta and "end" in meta:
            span = Span(meta["start"], meta["end"] + 1) | span
        else:
            stack.extend(top.iter_expressions())
    if span is None:
        raise NoPlaceError(f"{type(node).__name__} has no place in the text")
    return span


def mistake(
    condition: Condition,
    place: exp.Expr | Span | None,
    message: str,
    help: str | Callable[[], str | None] | None = None,
    notes: tuple[str, ...] = (),
) -> AnalysisError:
    """The error for a mistake in a statement, at a node or a place of its text."""
    return AnalysisError(message, condition=condition, span=_span(place), help=help, notes=notes)


def unsupported(
    condition: Condition, place: exp.Expr | Span | None, message: str, help: str | None = None
) -> UnsupportedError:
    """The error for what a statement asks for and we do not do, at a node or a place of its text."""
    return UnsupportedError(message, condition=condition, span=_span(place), help=help)


def _span(place: exp.Expr | Span | None) -> Span | None:
    return span_of(place) if isinstance(place, exp.Expr) else place


def has_place(node: exp.Expr) -> bool:
    """Whether a node was parsed from text."""
    try:
        span_of(node)
    except NoPlaceError:
        return False
    return True


def deepest_span(tree: exp.Expr) -> Span | None:
    """The place of the node that is furthest from the root of `tree`."""
    span: Span | None = None
    level: list[exp.Expr] = [tree]
    while level:
        places = [meta["span"] for node in level if (meta := node._meta) is not None and "span" in meta]
        span = Span(*places[0]) if places else span
        level = [child for node in level for child in node.iter_expressions()]
    return span


def mark(parser: Any, node: Any, index: int, left: Any = None) -> Any:
    """Record on `node` the range of tokens that the parser consumed since `index`; returns the node.

    `left` is an operand that was parsed before and belongs to the node. A node that has a place keeps it, but a
    query's place grows with the clauses that follow it.
    """
    if not isinstance(node, exp.Expr) or node is left or parser._index <= max(index, 0):
        return node
    start = parser._tokens[max(index, 0)].start
    if isinstance(left, exp.Expr):
        if not has_place(left):
            return node
        start = span_of(left).start
    meta = node.meta
    end = parser._prev.end + 1
    if "span" not in meta:
        meta["span"] = (start, end)
    elif isinstance(node, exp.Query):
        known = meta["span"]
        meta["span"] = (min(start, known[0]), max(end, known[1]))
    return node


def mark_until(parser: Any, node: exp.Expr, index: int, left: exp.Expr, stop: TokenType) -> None:
    """Record on `node` the range from `left` up to the first `stop` token after `index`, outside parentheses."""
    depth = 0
    for previous, token in pairwise(parser._tokens[index - 1 :]):
        if token.token_type == stop and depth == 0:
            node.meta.setdefault("span", (span_of(left).start, previous.end + 1))
            return
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)


def located(method: Callable[..., Any], *, operand: bool = False) -> Any:
    """A parser method that marks the node it returns.

    With `operand` its first argument is an already parsed left operand, whose text belongs to the node.
    """

    def parse(self: Any, *args: Any, **kwargs: Any) -> Any:
        index = self._index
        node = method(self, *args, **kwargs)
        if not isinstance(node, exp.Expr) or (node._meta and "span" in node._meta and not isinstance(node, exp.Query)):
            return node  # nothing to mark, as with most nodes, which pass through several methods
        left = (args[0] if args else kwargs.get("this")) if operand else None
        return mark(self, node, index, left)

    return parse
