"""The tokens of a text as Spark reads them: numbers, names that begin with digits, words that become names.

Numbers are formed as Spark's lexer forms them (SqlBaseLexer.g4).

sqlglot's differ: it takes a sign after the whole exponent of ``1e3-1``, makes two tokens of ``.5e3`` and ``0x1F``, and
one of ``1..2``. Of a number and a name that begin at the same place the longer is the token, of two as long the number:
``1e3`` is a number, ``1e3x`` and ``1_000`` are names. A number with a point is none if a letter, a digit or an
underscore follows it: in ``t.1st`` the point stands alone.

Spark reserves none of its words. Where ALL or DISTINCT could begin a select list or the arguments of a function, it is
the quantifier if an expression follows, else a column; everywhere else it is a name. sqlglot decides by the word
alone, so ``SELECT all, a`` would lose a column. WINDOW before a parenthesis is Spark's function: ``GROUP BY window(ts,
'1 hour')`` is no clause. The functions here turn such tokens into names.
"""

from __future__ import annotations

import inspect
import re

from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenizerCore, TokenType

_EXPONENT = r"(?:E[+-]?[0-9]+)?"
_FLAGS = re.IGNORECASE | re.ASCII
_NUMBERS = (
    re.compile(r"([0-9]+)(L|S|Y)", _FLAGS),
    re.compile(rf"([0-9]+{_EXPONENT})(F|D|BD)?", _FLAGS),
    re.compile(rf"((?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT})(F|D|BD)?(?![A-Z0-9_])", _FLAGS),
)
_NAME = re.compile(r"\w+")
_PARAMETERS = tuple(inspect.signature(TokenizerCore.__init__).parameters)[1:]


class SparkTokens(TokenizerCore):
    """sqlglot's scanner with Spark's numbers. A suffix is a cast, as with sqlglot: ``3L`` is read as ``3::BIGINT``, in
    three tokens that begin at the same place."""

    __slots__ = ()

    def tokenize(self, sql: str) -> list[Token]:
        return _with_spaced_hex(super().tokenize(sql))

    def _scan_number(self) -> None:
        number = _number_at(self.sql, self._start)
        name = _NAME.match(self.sql, self._start)
        if number is None or (name is not None and name.end() > number.end()):
            self._take(name or number)
            self._add(TokenType.VAR)
            return
        self._take(number)
        self._add(TokenType.NUMBER, number[1])
        if number[2] is not None:
            self._add(TokenType.DCOLON, "::")
            self._add(self.keywords[self.numeric_literals[number[2].upper()]], number[2])

    def _scan_keywords(self) -> None:
        if self._char == "." and _number_at(self.sql, self._start) is not None:
            self._scan_number()
        else:
            super()._scan_keywords()

    def _take(self, found: re.Match[str] | None) -> None:
        """Moves to the end of `found`, of which the first character is taken."""
        if found is not None and found.end() > self._current:
            self._advance(found.end() - self._current)


class SparkTokenizer(Spark.Tokenizer):
    """Spark's tokenizer with Spark's numbers."""

    def _init_core(self) -> TokenizerCore:
        core = super()._init_core()
        return SparkTokens(**{name: getattr(core, name) for name in _PARAMETERS})


def _number_at(text: str, at: int) -> re.Match[str] | None:
    """The longest number that begins there: its digits, and its suffix."""
    found = [match for pattern in _NUMBERS if (match := pattern.match(text, at)) is not None]
    return max(found, key=lambda match: match.end(), default=None)


def _with_spaced_hex(tokens: list[Token]) -> list[Token]:
    """The tokens, with ``x '1F'`` as one: sqlglot knows only ``x'1F'``."""
    joined: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.STRING and joined and _is_hex(joined):
            start = joined.pop().start
            joined.append(
                Token(TokenType.HEX_STRING, token.text, token.line, token.col, start, token.end, token.comments)
            )
        else:
            joined.append(token)
    return joined


def _is_hex(tokens: list[Token]) -> bool:
    """Whether the last token is the X of a binary literal."""
    last = tokens[-1]
    named = len(tokens) > 1 and tokens[-2].token_type == TokenType.DOT
    return last.token_type == TokenType.VAR and last.text in ("x", "X") and not named


_QUANTIFIERS = (TokenType.ALL, TokenType.DISTINCT)
_WORDS = (*_QUANTIFIERS, TokenType.WINDOW)
#: Words before DISTINCT where it is not a name: UNION DISTINCT, IS [NOT] DISTINCT FROM.
_SET_WORDS = ("UNION", "INTERSECT", "EXCEPT", "MINUS", "IS", "NOT")
#: What cannot begin an expression: the word before it is a name.
_ENDS = frozenset(
    ", ) ; . = == <=> != <> < > <= >= / % || & | ^ << >> >>> :: ] AS FROM BETWEEN DIV".split()  # noqa: SIM905 - a table
)


def words_as_names(tokens: list[Token]) -> list[Token]:
    """The tokens, with ALL, DISTINCT and WINDOW as names where Spark reads them as names."""
    if not any(token.token_type in _WORDS for token in tokens):
        return tokens
    texts = ["" if token.token_type == TokenType.STRING else token.text.upper() for token in tokens]
    return [_name(token) if _is_name(tokens, texts, at) else token for at, token in enumerate(tokens)]


def _is_name(tokens: list[Token], texts: list[str], at: int) -> bool:
    token = tokens[at]
    if token.token_type == TokenType.WINDOW:
        return texts[at + 1 : at + 2] == ["("]
    if token.token_type not in _QUANTIFIERS:
        return False
    before = texts[at - 1] if at else ""
    after = texts[at + 1] if at + 1 < len(tokens) else ";"
    if after == "*":  # SELECT ALL * FROM t, SELECT all * 2 FROM t
        is_end = at + 2 < len(tokens) and texts[at + 2] not in (",", ")", ";", "FROM", "EXCEPT", "WHERE", "")
    else:
        is_end = after in _ENDS
    if before in ("SELECT", "(") or (at > 0 and tokens[at - 1].token_type == TokenType.HINT):
        return is_end
    if token.token_type == TokenType.ALL:
        return False  # sqlglot already reads it as a name where it is not the quantifier
    return before not in _SET_WORDS


def _name(token: Token) -> Token:
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
