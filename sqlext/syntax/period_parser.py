"""The grammar of period predicates (docs/reference/periods.md, section 4), as a parser to build on.

    period := PERIOD [CLOSED] '(' expr ',' expr [OPEN [BY expr, ...]] ')' | '(' expr ',' expr ')'
            | a column of a struct of two ends
    pred   := period [NOT] relation period [WITHIN bounds] | period CONTAINS expr

None of the words is a keyword: they are a relation only between an operand and something that can start another.

The grammar of operations over periods in FROM (docs/period-algebra.md), as a parser to build on.

    operation := (NORMALIZE | GAPS | CONCURRENT) '(' periods ')' | NORMALIZE '(' periods EXCEPT periods ')'
    periods   := (table | '(' query ')') [[AS] name] [PARTITION BY key [AS name], ...] period

None of the words is a keyword: they mean an operation only where a relation may begin, before parentheses that hold a
relation with PARTITION BY or PERIOD behind it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, ClassVar

from sqlext_operators.interval_join.relations import PeriodRelation
from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from sqlext.syntax.base_parser import BaseParser
from sqlext.syntax.nodes import (
    BOUND_WORDS,
    LONGEST_PHRASE,
    OTHER_WORDS,
    PERIOD_TABLE_FORM,
    PERIOD_TABLES,
    PHRASES,
    PeriodComparison,
    PeriodOperand,
    PeriodSource,
    PeriodTable,
)
from sqlext.syntax.spans import PlacedParseError, mark

#: Units of time that may follow a number in WITHIN; the analyzer refuses those without a fixed length.
UNIT_WORDS = frozenset(
    f"{unit}{plural}".upper()
    for unit in "microsecond millisecond second minute hour day week month quarter year".split()  # noqa: SIM905
    for plural in ("", "s")
)
_FIRST_WORDS = frozenset(words[0] for words in PHRASES)
#: The token types of these words and of NOT; any other token after an operand rules a relation out at once.
_FIRST_TOKENS = frozenset(
    (TokenType.VAR, TokenType.NOT, TokenType.OVERLAPS, TokenType.LEFT, TokenType.RIGHT, TokenType.END)
)


class PeriodParser(BaseParser):
    """Spark's parser with period predicates where it takes a comparison."""

    #: OVERLAPS is one relation of many, and an alias if no operand follows.
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        kind: parser for kind, parser in SparkParser.RANGE_PARSERS.items() if kind != TokenType.OVERLAPS
    }

    #: Tokens that start a value but not a period.
    _VALUE_TOKENS: ClassVar[frozenset[TokenType]] = frozenset(
        (
            TokenType.STRING,
            TokenType.NUMBER,
            TokenType.DASH,
            TokenType.PARAMETER,
            TokenType.PLACEHOLDER,
            TokenType.COLON,
            TokenType.CASE,
            TokenType.INTERVAL,
            TokenType.NULL,
            *SparkParser.NO_PAREN_FUNCTIONS,
        )
    )

    def _parse_atom(self) -> Any:
        return self._parse_period_operand() or super()._parse_atom()

    def _parse_range(self, this: Any = None, *args: Any, **kwargs: Any) -> Any:
        this = this or self._parse_bitwise()  # sqlglot hands on `parse_is` from 30.24 on
        return super()._parse_range(self._parse_period_comparison(this), *args, **kwargs)

    def _refuse(self, message: str, token: Any = None, *, help: str) -> None:
        """Raises PlacedParseError for a text that is not Spark SQL either."""
        try:
            self.raise_error(message, token, help=help)
        except PlacedParseError as error:
            error.ours = True
            raise

    def _word(self, ahead: int) -> str:
        """The unquoted word `ahead` tokens further, in upper case; '' for a quoted one, a string, or the end."""
        at = self._index + ahead
        if at >= self._tokens_size or self._tokens[at].token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return ""
        return str(self._tokens[at].text).upper()

    def _token_type(self, ahead: int) -> Any:
        at = self._index + ahead
        return self._tokens[at].token_type if at < self._tokens_size else None

    def _parse_period_operand(self) -> Any:
        """PERIOD CLOSED (...), or PERIOD(...) with OPEN; None for anything else."""
        if self._word(0) != "PERIOD" or self._prev.token_type == TokenType.DOT:
            return None
        closed = self._word(1) == "CLOSED" and self._token_type(2) == TokenType.L_PAREN
        if not closed and not (self._token_type(1) == TokenType.L_PAREN and self._open_inside()):
            return None
        index = self._index
        first = self._curr
        self._advance(3 if closed else 2)
        ends = self._parse_csv(self._parse_period_end)
        self._match_r_paren()
        if ends and ends[0][1]:
            self._refuse("only the end of a period can be OPEN", first, help="write PERIOD(start, end OPEN)")
        if len(ends) != 2:
            self._refuse(f"PERIOD takes two ends, not {len(ends)}", first, help="write PERIOD(start, end)")
        (start, _, _), (end, end_open, by) = ends
        node = self.expression(PeriodOperand(this=start, expression=end, closed=closed, open=end_open, by=by))
        return mark(self, node, index)

    def _open_inside(self) -> bool:
        """Whether OPEN follows an end of the PERIOD( here."""
        for ahead in self._inside():
            ends = self._token_type(ahead + 1) in (TokenType.R_PAREN, TokenType.COMMA) or self._word(ahead + 1) == "BY"
            stands_alone = self._token_type(ahead - 1) in (TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT)
            if self._word(ahead) == "OPEN" and ends and not stands_alone:
                return True
        return False

    def _inside(self) -> Iterator[int]:
        """How far ahead the tokens are between the parentheses that follow the next token, but not in inner ones."""
        depth, ahead = 0, 1
        while (kind := self._token_type(ahead)) is not None:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth == 0:
                return
            if depth == 1:
                yield ahead
            ahead += 1

    def _parse_period_end(self) -> Any:
        """(the end, whether it is OPEN, what comes after BY); None for nothing."""
        value = self._parse_disjunction()
        if value is None:
            return None
        is_open = bool(self._match_text_seq("OPEN"))
        if not is_open or self._word(0) != "BY":
            return value, is_open, None
        self._advance()
        by = self._parse_csv(self._parse_disjunction)
        if not by:
            self._refuse("a column is missing after BY", help="write PERIOD(start, end OPEN BY id)")
        return value, is_open, by

    def _parse_period_comparison(self, this: Any) -> Any:
        """`this`, with the relation and the operand that follow it, if any."""
        if self._curr.token_type not in _FIRST_TOKENS or not _may_be_period(this):
            return this
        index, skipped = self._index, 1 if self._word(0) == "NOT" else 0
        words = self._phrase_ahead(skipped)
        if not words:
            self._refuse_unknown_relation(this, skipped)
            return this
        relation = PHRASES[words]
        if not self._operand_ahead(skipped + len(words), value=relation.point):
            return this
        self._advance(skipped + len(words))
        right = self._parse_bitwise()
        if right is None:
            self._refuse(f"a period must follow {' '.join(words)}", help="write PERIOD(start, end)")
        bounds = self._parse_within(words, relation)
        node = PeriodComparison(
            this=this, expression=right, relation=relation.name, negated=bool(skipped) or None, **bounds
        )
        node = mark(self, self.expression(node), index, this)
        again = self._phrase_ahead(0)
        if again and self._operand_ahead(len(again), value=PHRASES[again].point):
            self._refuse(
                "a relation compares two periods, not three",
                self._curr,
                help="write two predicates with AND between them",
            )
        return node

    def _phrase_ahead(self, skipped: int) -> tuple[str, ...]:
        """The longest spelling of a relation here; () for none."""
        if self._word(skipped) not in _FIRST_WORDS:
            return ()
        words = tuple(self._word(skipped + i) for i in range(LONGEST_PHRASE))
        return next((words[:size] for size in range(LONGEST_PHRASE, 0, -1) if words[:size] in PHRASES), ())

    def _operand_ahead(self, ahead: int, *, value: bool) -> bool:
        """Whether an operand can start there: a period, or with `value` any value. Neither can follow an alias."""
        kind, after = self._token_type(ahead), self._token_type(ahead + 1)
        if kind in (TokenType.L_PAREN, TokenType.VAR, TokenType.IDENTIFIER, TokenType.CASE):
            return True
        if kind in self.ID_VAR_TOKENS and after in (TokenType.DOT, TokenType.L_PAREN):
            return True
        two = kind in self.TYPE_TOKENS and after == TokenType.STRING
        return value and (two or kind in self._VALUE_TOKENS)

    def _period_ahead(self, ahead: int) -> bool:
        """Whether PERIOD(...) starts there."""
        follows = self._token_type(ahead + 1) == TokenType.L_PAREN or self._word(ahead + 1) == "CLOSED"
        return self._word(ahead) == "PERIOD" and follows

    def _refuse_unknown_relation(self, this: Any, skipped: int) -> None:
        """Raises PlacedParseError for words between two periods that are not a relation."""
        first, is_name = self._word(skipped), self._token_type(skipped + 1) in (TokenType.VAR, TokenType.OVERLAPS)
        if first in ("STRICTLY", "ALLEN") and is_name and self._operand_ahead(skipped + 2, value=False):
            self._refuse_qualified(skipped)
        if not _is_written_period(this):
            return
        for size in range(1, LONGEST_PHRASE + 1):
            if not self._word(skipped + size - 1).isalpha():
                return
            near = self._token_type(skipped + size) == TokenType.L_PAREN and _nearest(self._words(skipped, size))
            if self._period_ahead(skipped + size) or (near and isinstance(this, (exp.Tuple, PeriodOperand))):
                self._raise_unknown(skipped, size)

    def _words(self, skipped: int, size: int) -> str:
        return " ".join(self._word(skipped + i) for i in range(size))

    def _refuse_qualified(self, skipped: int) -> None:
        """Raises PlacedParseError for STRICTLY or ALLEN with a relation that does not take it."""
        if self._words(skipped, 2) == "STRICTLY OVERLAPS":
            self._refuse(
                "STRICTLY OVERLAPS means something else in every system",
                self._tokens[self._index + skipped],
                help="write ALLEN OVERLAPS (r starts first, s ends last), STRICTLY CONTAINS (as in XTDB, with the "
                "sides swapped), or OVERLAPS (they share time)",
            )
        self._raise_unknown(skipped, 3 if self._word(skipped + 2) in ("BY", "IN") else 2)

    def _raise_unknown(self, skipped: int, size: int) -> None:
        words = self._words(skipped, size)
        near = _nearest(words)
        known = sorted({" ".join(phrase) for phrase in PHRASES})
        help = f"did you mean {near}?" if near else f"relations: {', '.join(known)}"
        self._refuse(f"unknown relation of periods: {words}", self._tokens[self._index + skipped], help=help)

    def _parse_within(self, words: tuple[str, ...], relation: PeriodRelation) -> dict[str, Any]:
        """WITHIN amount, WITHIN START amount, WITHIN (START amount, END amount); {} if there is none."""
        named = self._word(1) in BOUND_WORDS
        amount = self._word(1) != "GROUP" and self._operand_ahead(1, value=True)
        if self._word(0) != "WITHIN" or not (named or amount):
            return {}
        if not relation.parameters:
            self._refuse(
                f"{' '.join(words)} does not take WITHIN",
                self._curr,
                help="WITHIN can be used with the relations of ISEQL: BEFORE, AFTER, START PRECEDING, END FOLLOWING, "
                "LEFT OVERLAP, RIGHT OVERLAP, DURING, REVERSE DURING and their inverses",
            )
        self._advance()
        amounts: dict[str, Any] = {}
        if self._token_type(0) == TokenType.L_PAREN and self._word(1) in BOUND_WORDS:
            self._advance()
            self._parse_csv(lambda: self._parse_bound_of(words, relation, amounts))
            self._match_r_paren()
        elif self._word(0) in BOUND_WORDS:
            self._parse_bound_of(words, relation, amounts)
        else:
            amounts[relation.parameters[0]] = self._parse_amount()
        return amounts

    def _parse_bound_of(self, words: tuple[str, ...], relation: PeriodRelation, amounts: dict[str, Any]) -> None:
        token = self._curr
        name = BOUND_WORDS.get(self._word(0))
        if name is None:
            self._refuse("a bound of WITHIN must begin with START or END", help="write WITHIN (START 5, END 10)")
            return
        if name not in relation.parameters:
            other = "START" if name == "epsilon" else "END"
            self._refuse(f"{' '.join(words)} does not take {token.text.upper()}", token, help=f"write WITHIN {other} 5")
        if name in amounts:
            self._refuse(f"{token.text.upper()} is given twice", token, help="remove one of them")
        self._advance()
        amounts[name] = self._parse_amount()

    def _parse_amount(self) -> Any:
        """``5``, ``5 MINUTES``, ``5m``, ``INTERVAL 5 MINUTES``; the analyzer refuses anything else."""
        index = self._index
        amount = self._parse_duration()
        if amount is None:
            self._refuse("an amount is missing", help="write a number, 5 MINUTES, or INTERVAL '5' MINUTE")
        if isinstance(amount, exp.Literal) and not amount.is_string and self._word(0) in UNIT_WORDS:
            unit = exp.var(self._curr.text.upper())
            self._advance()
            amount = exp.Interval(this=exp.Literal.string(amount.name), unit=unit)
        return mark(self, amount, index)


def _may_be_period(node: Any) -> bool:
    """Whether a period predicate may begin with this operand, which says its type later. An alias that looks like a
    relation can follow any; no operand follows an alias."""
    if isinstance(node, (exp.Star, exp.Column)):  # to sqlglot a query that selects a star is a star too
        return not node.is_star
    return isinstance(node, exp.Expr) and not isinstance(node, (exp.Interval, exp.Predicate))


def _is_written_period(node: Any) -> bool:
    called = isinstance(node, exp.Anonymous) and node.name.upper() == "PERIOD"
    return called or isinstance(node, (exp.Tuple, PeriodOperand))


def _nearest(words: str) -> str | None:
    """The relation that was meant. Passive words are no misspelling of the active ones, which are the inverse."""
    if words in OTHER_WORDS:
        return OTHER_WORDS[words]
    known = [" ".join(phrase) for phrase in PHRASES if (phrase[-1] == "BY") >= words.endswith(" BY")]
    near = difflib.get_close_matches(words, known, n=1, cutoff=0.7)
    return near[0] if near else None


class PeriodTableParser(PeriodParser):
    """Spark's parser with operations over periods where it takes a table."""

    def reset(self) -> None:
        super().reset()
        self._in_operation = False

    def _at_period_table(self) -> bool:
        """Whether an operation over periods comes next."""
        if self._word(0) not in PERIOD_TABLES or self._token_type(1) != TokenType.L_PAREN or self._word(2) == "TABLE":
            return False
        return any(
            ahead > 2
            and self._token_type(ahead - 1) != TokenType.COMMA
            and (self._token_type(ahead) == TokenType.PARTITION_BY or self._period_ahead(ahead))
            for ahead in self._inside()
        )

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
