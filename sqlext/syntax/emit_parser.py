"""``EMIT AFTER DELAY INTERVAL '7' SECONDS [COMPENSATE [USING name]] [CONFIDENCE 0.95]`` at the end of a query block.

EMIT is no keyword: it begins the clause only before AFTER, where a clause of a query may begin.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqlext.syntax.base_parser import BaseParser
from sqlext.syntax.emit_nodes import EMIT_FORM, EmitClause
from sqlext.syntax.spans import mark


class EmitParser(BaseParser):
    """Spark's parser with EMIT AFTER behind the clauses of a query."""

    def _at_emit(self) -> bool:
        """Whether EMIT AFTER comes next."""
        is_emit = self._curr.text.upper() == "EMIT" and self._curr.token_type != TokenType.IDENTIFIER
        return is_emit and self._next.text.upper() == "AFTER"

    def _parse_query_modifiers(self, this: Any) -> Any:
        found = super()._parse_query_modifiers(this)
        if isinstance(found, exp.Query) and self._at_emit():
            index = self._index
            found.set("emit", mark(self, self._parse_emit(), index))
            if "span" in found.meta:
                mark(self, found, index)
        return found

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
