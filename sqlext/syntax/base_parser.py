"""What every part of our grammar builds on: Spark's parser, errors with a place, durations; and two small parts.

``EMIT AFTER DELAY INTERVAL '7' SECONDS [COMPENSATE [USING name]] [CONFIDENCE 0.95]`` stands at the end of a query
block. Paths into a VARIANT or a JSON text, Spark's ``j:a.b[0]['c d']``, are one node, whose text is left to Spark:
sqlglot's Spark dialect reads ``j:p`` as a column with an alias.

EMIT is no keyword: it begins the clause only before AFTER, where a clause of a query may begin.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlext_planner.errors import Span
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.nodes import EMIT_FORM, Duration, EmitClause, VariantPath
from sqlext.syntax.spans import PlacedParseError, mark

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w)", re.IGNORECASE)
_SUFFIX_TYPES = {TokenType.SMALLINT: "s", TokenType.DOUBLE: "d"}  # Spark reads 10s as a SMALLINT, 3d as a DOUBLE


class BaseParser(SparkParser):
    """Spark's parser with errors that know their place and say what to do, and durations such as ``10s``."""

    def raise_error(self, message: str, token: Any = None, *, help: str | None = None) -> None:
        """Like sqlglot's, with the error's place and help. Raises PlacedParseError."""
        at = token or self._curr or self._prev or None
        try:
            super().raise_error(message, at) if at else super().raise_error(message)
        except SqlglotParseError as error:
            span = Span(at.start, at.end + 1) if at else Span(len(self.sql), len(self.sql))
            at_end = not token and not self._curr
            raise PlacedParseError(str(error), error.errors, span, help, at_end=at_end) from None

    def _parse_duration(self) -> Any:
        """``10s``, however Spark's tokenizer splits it; else an ordinary expression."""
        token = self._curr
        if not token:
            return None
        unit_token = self._tokens[self._index + 2] if self._index + 2 < self._tokens_size else None
        if token.token_type == TokenType.NUMBER and unit_token is not None and unit_token.start == token.start:
            unit = _SUFFIX_TYPES.get(unit_token.token_type)
            if unit and token.text.isdigit():
                self._advance(3)
                return self._duration(token, token.text, unit)
        match = _DURATION.fullmatch(token.text) if token.token_type == TokenType.VAR else None
        if match:
            self._advance()
            return self._duration(token, match[1], match[2].lower())
        return self._parse_bitwise()

    def _duration(self, token: Token, digits: str, unit: str) -> Duration:
        node = Duration(this=exp.Literal.number(digits), unit=exp.var(unit))
        node.meta["span"] = (token.start, token.end + 1)
        return node


class EmitParser(BaseParser):
    """Spark's parser with EMIT AFTER behind the clauses of a query."""

    def _at_emit(self) -> bool:
        """Whether EMIT AFTER comes next."""
        is_emit = self._curr.text.upper() == "EMIT" and self._curr.token_type != TokenType.IDENTIFIER
        return is_emit and self._next.text.upper() == "AFTER"

    def _parse_query_modifiers(self, this: Any) -> Any:
        query = super()._parse_query_modifiers(this)
        if isinstance(query, exp.Query) and self._at_emit():
            index = self._index
            query.set("emit", mark(self, self._parse_emit(), index))
            if "span" in query.meta:
                mark(self, query, index)
        return query

    def _parse_emit(self) -> EmitClause:
        self._advance(2)
        if not self._match_text_seq("DELAY"):
            self.raise_error("EMIT AFTER must be followed by DELAY and an interval", help=f"write {EMIT_FORM}")
        args = {"delay": self._parse_duration()}
        if args["delay"] is None:
            self.raise_error("an interval must follow DELAY", help=f"write {EMIT_FORM}")
        if self._match_text_seq("COMPENSATE") and self._match_text_seq("USING"):
            args["compensate"] = self._parse_id_var()
            if args["compensate"] is None:
                self.raise_error("the name of an estimator must follow USING", help="write COMPENSATE USING shrink")
        if self._match_text_seq("CONFIDENCE"):
            args["confidence"] = self._parse_unary()
            if args["confidence"] is None:
                self.raise_error("a number must follow CONFIDENCE", help="write CONFIDENCE 0.95")
        return self.expression(EmitClause(**args))


class VariantPathParser(SparkParser):
    """Spark's parser with paths behind columns and calls."""

    COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

    def _parse_colon_as_variant_extract(self, this: Any) -> Any:
        if this is None or self._curr.token_type != TokenType.COLON:
            return this
        index = self._index
        self._advance()
        first = self._curr
        if self._parse_id_var(any_token=False) is None and not self._parse_subscript():
            self.raise_error("a path must follow the colon, as in j:name or j:items[0].name", first)
        while self._parse_subscript() or (self._match(TokenType.DOT) and self._parse_id_var(any_token=True)):
            pass
        path = self.sql[first.start : self._prev.end + 1]
        node = mark(self, self.expression(VariantPath(this=this, path=path)), index, this)
        return self._parse_colon_as_variant_extract(self._parse_column_ops(node))  # j:p::variant:q

    def _parse_subscript(self) -> bool:
        """``[0]``, ``['name']``, ``[*]``."""
        inside = (TokenType.NUMBER, TokenType.STRING, TokenType.STAR)
        after = self._tokens[self._index + 1 : self._index + 3]
        is_path = [token.token_type for token in after][1:] == [TokenType.R_BRACKET] and after[0].token_type in inside
        if self._curr.token_type != TokenType.L_BRACKET or not is_path:
            return False
        self._advance(3)
        return True
