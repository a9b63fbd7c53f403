"""Paths into a VARIANT or a JSON text, Spark's ``j:a.b[0]['c d']``: one node, whose text is left to Spark.

sqlglot's Spark dialect reads ``j:p`` as a column with an alias.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from sqlext.syntax.spans import mark


class VariantPath(exp.Expression):
    """``this:path``; `path` is the text behind the colon."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True}


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


def variant_path_sql(generator: Any, node: VariantPath) -> str:
    """The path as text."""
    return f"{generator.sql(node, 'this')}:{node.args['path']}"
