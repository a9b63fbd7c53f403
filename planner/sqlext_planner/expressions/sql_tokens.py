"""The words of opaque Spark SQL."""

from __future__ import annotations

import re

from sqlext_planner.expressions.nodes import Expression, SparkExpr

#: A word, number, string, quoted name or sign of the text, or a column or expression in it.
Token = str | Expression

_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/
    | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`
    | (?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[a-z]* | \w+ | .""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def tokens(expression: SparkExpr) -> tuple[Token, ...]:
    """The text in order, blanks and comments included: joined, they are the text again."""
    found: list[Token] = []
    for part in expression.parts:
        found.extend(_TOKEN.findall(part) if isinstance(part, str) else (part,))
    return tuple(found)


def is_blank(token: Token) -> bool:
    """True for white space and comments."""
    return isinstance(token, str) and (token.isspace() or token.startswith(("--", "/*")))


def is_word(token: Token) -> bool:
    """True for a name, keyword or function; not for a number."""
    return isinstance(token, str) and (token[0].isalpha() or token[0] == "_")


def joined(found: tuple[Token, ...] | list[Token]) -> tuple[Token, ...]:
    """The tokens with neighbouring texts in one piece, as a SparkExpr holds them."""
    parts: list[Token] = []
    for token in found:
        if isinstance(token, str) and parts and isinstance(parts[-1], str):
            parts[-1] += token
        else:
            parts.append(token)
    return tuple(parts)


def closing(found: tuple[Token, ...], at: int) -> int | None:
    """The place of the parenthesis that closes the one at `at`; None if there is none."""
    depth = 0
    for place in range(at, len(found)):
        depth += {"(": 1, ")": -1}.get(found[place], 0) if isinstance(found[place], str) else 0  # type: ignore[arg-type]
        if depth == 0:
            return place
    return None


def split_arguments(found: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """The parts between the commas that are outside parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts]
