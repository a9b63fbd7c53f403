"""What every part of our grammar builds on: Spark's parser, errors with a place, durations."""

from __future__ import annotations

import re
from typing import Any

from sqlext_planner.errors import Span
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.openmldb_nodes import Duration
from sqlext.syntax.spans import PlacedParseError

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
