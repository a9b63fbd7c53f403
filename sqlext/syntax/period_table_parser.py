"""The grammar of operations over periods in FROM (docs/period-algebra.md), as a parser to build on.

    operation := (NORMALIZE | GAPS | CONCURRENT) '(' periods ')' | NORMALIZE '(' periods EXCEPT periods ')'
    periods   := (table | '(' query ')') [[AS] name] [PARTITION BY key [AS name], ...] period

None of the words is a keyword: they mean an operation only where a relation may begin, before parentheses that hold a
relation with PARTITION BY or PERIOD behind it.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqlext.syntax.period_nodes import PERIOD_TABLE_FORM, PERIOD_TABLES, PeriodOperand, PeriodSource, PeriodTable
from sqlext.syntax.period_parser import PeriodParser
from sqlext.syntax.spans import mark


class PeriodTableParser(PeriodParser):
    """Spark's parser with operations over periods where it takes a table."""

    def reset(self) -> None:
        super().reset()
        self._in_operation = False

    def _at_period_table(self) -> bool:
        """Whether an operation over periods comes next."""
        if self._word(0) not in PERIOD_TABLES or self._token_type(1) != TokenType.L_PAREN or self._word(2) == "TABLE":
            return False
        depth, ahead = 0, 1
        while (kind := self._token_type(ahead)) is not None:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth == 0:
                return False
            if depth == 1 and ahead > 2 and self._token_type(ahead - 1) != TokenType.COMMA and self._at_clause(ahead):
                return True
            ahead += 1
        return False

    def _at_clause(self, ahead: int) -> bool:
        """Whether PARTITION BY or a period comes after `ahead` tokens."""
        return self._token_type(ahead) == TokenType.PARTITION_BY or self._period_ahead(ahead)

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        """Inside an operation, PERIOD (a, b) is no alias with names of columns."""
        return None if self._in_operation and self._period_ahead(0) else super()._parse_table_alias(alias_tokens)

    def _parse_period_table(self) -> Any:
        """``NORMALIZE(...) [AS name]``; None for anything else."""
        if not self._at_period_table():
            return None
        index, word = self._index, self._word(0)
        self._advance(2)
        args: dict[str, Any] = {"word": word, "this": self._parse_period_source(word)}
        if self._match(TokenType.EXCEPT):
            if word != "NORMALIZE":
                self._refuse(f"{word} does not take EXCEPT", self._prev, help="write NORMALIZE(a ... EXCEPT b ...)")
            args["removed"] = self._parse_period_source(word)
        if not self._match(TokenType.R_PAREN):
            more = " or EXCEPT" if word == "NORMALIZE" else ""
            self._refuse(f"a closing parenthesis{more} must follow the PERIOD of {word}", self._curr, help=_form(word))
        node = mark(self, self.expression(PeriodTable(**args)), index)
        node.set("alias", self._parse_table_alias())
        return node

    def _parse_period_source(self, word: str) -> Any:
        index = self._index
        outer, self._in_operation = self._in_operation, True
        source = self._parse_table()
        self._in_operation = outer
        keys = None
        if self._match(TokenType.PARTITION_BY):
            keys = self._parse_csv(self._parse_period_key)
        first = self._curr
        period = self._parse_unary() if self._period_ahead(0) else None
        if not isinstance(period, PeriodOperand) and not (
            isinstance(period, exp.Anonymous) and period.name.upper() == "PERIOD"
        ):
            self._refuse(f"a PERIOD is missing in {word}", first, help=_form(word))
        return mark(self, self.expression(PeriodSource(this=source, keys=keys, period=period)), index)

    def _parse_period_key(self) -> Any:
        """An expression with or without a name; a name needs AS, because PERIOD could be one."""
        index = self._index
        key = self._parse_disjunction()
        if key is None or not self._match(TokenType.ALIAS):
            return key
        return mark(self, self.expression(exp.Alias(this=key, alias=self._parse_id_var())), index)


def _form(word: str) -> str:
    return f"write {word}{PERIOD_TABLE_FORM}"
