"""SQL words that become names where Spark reads them as names.

Spark reserves none of its words. Where ALL or DISTINCT could begin a select list or the arguments of a function, it is
the quantifier if an expression follows, else a column; everywhere else it is a name. sqlglot decides by the word
alone, so ``SELECT all, a`` would lose a column. WINDOW before a parenthesis is Spark's function: ``GROUP BY window(ts,
'1 hour')`` is no clause. The functions here turn such tokens into names.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

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
