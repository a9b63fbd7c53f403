"""The type that Spark gives arithmetic on numbers, decimals included, where it is certain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr
from sqlext_planner.expressions.sql_tokens import Token, closing, is_blank, split_arguments, tokens
from sqlext_planner.expressions.types import normalize

SMALL_INTEGERS = ("tinyint", "smallint", "int")
INTEGERS = (*SMALL_INTEGERS, "bigint")
FLOATS = ("float", "double")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(bd|[lsydf])?", re.IGNORECASE)
_SUFFIXES = {"l": "bigint", "s": "smallint", "y": "tinyint", "d": "double", "f": "float"}
#: Decimal digits that Spark keeps after the point when a result has more than 38.
_KEPT_SCALE = 6


def decimal_shape(dtype: str | None) -> tuple[int, int] | None:
    """(10, 2) for ``decimal(10,2)``; None for any other type."""
    found = _DECIMAL.fullmatch(dtype or "")
    return (int(found[1]), int(found[2])) if found else None


def arithmetic_type(expression: Expression, known: Mapping[Column, str | None]) -> str | None:
    """The type of a number that is computed with + - * /, CAST, CASE and the like; None where it is not certain.

    The same with ANSI mode on and off: where the modes differ (integer with float) it is None.
    """
    found = _of(expression, known)
    return None if found is None else found.dtype


@dataclass(frozen=True)
class _Type:
    """`digits` is set for a whole-number literal, which beside decimals counts as a decimal of that many digits."""

    dtype: str
    digits: int | None = None

    @property
    def shape(self) -> tuple[int, int] | None:
        if self.dtype in _DIGITS:
            return (self.digits or _DIGITS[self.dtype], 0)
        return decimal_shape(self.dtype)


def _of(expression: Expression, known: Mapping[Column, str | None]) -> _Type | None:
    if isinstance(expression, Column):
        dtype = known.get(expression)
        return None if dtype is None else _Type(dtype)
    if isinstance(expression, Literal):
        return _number(expression.text)
    if not isinstance(expression, SparkExpr):
        return None
    if expression.dtype is not None and not _NUMBER.fullmatch(
        "".join(p for p in expression.parts if isinstance(p, str))
    ):
        return _Type(expression.dtype)
    return _Reader(tuple(token for token in tokens(expression) if not is_blank(token)), known).whole()


#: Longer than any number literal that Spark accepts.
_MOST_LENGTH = 1_000


def _number(text: str) -> _Type | None:
    found = _NUMBER.fullmatch(text.strip()) if len(text) <= _MOST_LENGTH else None
    if found is None:
        return None
    suffix = (found[3] or "").lower()
    if suffix in ("d", "f"):
        return _Type(_SUFFIXES[suffix])
    if suffix in _SUFFIXES and found[1].isdigit():
        return _Type(_SUFFIXES[suffix], len(str(int(found[1]))))
    if found[2] and not suffix:
        return _Type("double")
    if "." in found[1] or suffix:
        value = Decimal(found[1] + (found[2] or "")).as_tuple()
        scale = max(0, -int(value.exponent))
        return _Type(f"decimal({max(len(value.digits), scale)},{scale})")
    number = int(found[1])
    return _Type("int" if number < 2**31 else "bigint", len(str(number))) if number < 2**63 else None


class _Reader:
    """Recursive descent: sums of products of factors; None as soon as anything else appears."""

    def __init__(self, found: tuple[Token, ...], known: Mapping[Column, str | None]) -> None:
        self._found = found
        self._known = known
        self._at = 0

    def whole(self) -> _Type | None:
        result = self._chain(("+", "-"))
        return result if self._at == len(self._found) else None

    def _peek(self) -> Token | None:
        return self._found[self._at] if self._at < len(self._found) else None

    def _chain(self, signs: tuple[str, ...]) -> _Type | None:
        inner = ("*", "/")
        result = self._chain(inner) if signs != inner else self._factor()
        while result is not None and self._peek() in signs:
            sign = str(self._peek())
            self._at += 1
            right = self._chain(inner) if signs != inner else self._factor()
            result = _combined(sign, result, right) if right is not None else None
        return result

    def _factor(self) -> _Type | None:
        token = self._peek()
        self._at += 1
        if token is None:
            return None
        if not isinstance(token, str):
            return _of(token, self._known)
        if token == "(":
            return self._sub(self._inside())
        if token == "-":
            inner = self._factor()
            return None if inner is None or inner.digits is not None else inner
        word = token.lower()
        if word == "case":
            return self._case()
        if self._peek() == "(" and word in ("coalesce", "nvl", "ifnull", "if", "cast", "try_cast", "abs"):
            self._at += 1
            return self._function(word, self._inside())
        return _number(token)

    def _inside(self) -> tuple[Token, ...]:
        """The tokens inside the parentheses that were just opened; moves past the closing one."""
        begin = self._at
        end = closing(self._found, begin - 1)
        if end is None:
            self._at = len(self._found) + 1
            return ()
        self._at = end + 1
        return self._found[begin:end]

    def _sub(self, found: tuple[Token, ...]) -> _Type | None:
        return _Reader(found, self._known).whole() if found else None

    def _function(self, word: str, inner: tuple[Token, ...]) -> _Type | None:
        if word in ("cast", "try_cast"):
            words = [str(token).lower() if isinstance(token, str) else "" for token in inner]
            if "as" not in words:
                return None
            try:
                at = len(words) - 1 - words[::-1].index("as")
                return _Type(normalize("".join(words[at + 1 :])))
            except UnsupportedError:
                return None
        arguments = split_arguments(inner)
        if word == "abs":
            return self._sub(inner) if len(arguments) == 1 else None
        if word == "if":
            arguments = arguments[1:]
        return _common([self._sub(part) for part in arguments if not _is_null(part)])

    def _case(self) -> _Type | None:
        """``CASE WHEN c THEN a [WHEN ...] [ELSE b] END``; the word CASE has been read."""
        branches: list[tuple[Token, ...]] = []
        depth, begin = 0, None
        while self._at < len(self._found):
            token = self._found[self._at]
            word = token.lower() if isinstance(token, str) else ""
            self._at += 1
            if word in ("(", "case"):
                depth += 1
            elif depth:
                depth -= word in (")", "end")
            elif word == "then":
                begin = self._at
            elif word in ("when", "else", "end"):
                if begin is not None:
                    branches.append(self._found[begin : self._at - 1])
                if word == "end":
                    return _common([self._sub(part) for part in branches if not _is_null(part)])
                begin = self._at if word == "else" else None
        return None


def _is_null(found: tuple[Token, ...]) -> bool:
    return len(found) == 1 and str(found[0]).lower() == "null"


def _combined(sign: str, left: _Type, right: _Type) -> _Type | None:
    """Spark's type of ``left sign right``."""
    kinds = (left.dtype, right.dtype)
    if "double" in kinds and all(kind in (*INTEGERS, *FLOATS) or decimal_shape(kind) for kind in kinds):
        return _Type("double")
    if all(kind in INTEGERS for kind in kinds):
        return _Type("double" if sign == "/" else max(kinds, key=INTEGERS.index))
    if kinds == ("float", "float"):
        return _Type("double" if sign == "/" else "float")
    a, b = left.shape, right.shape
    if a is None or b is None:
        return None
    if sign == "*":
        return _bounded(a[0] + b[0] + 1, a[1] + b[1])
    if sign == "/":
        scale = max(_KEPT_SCALE, a[1] + b[0] + 1)
        return _bounded(a[0] - a[1] + b[1] + scale, scale)
    scale = max(a[1], b[1])
    return _bounded(max(a[0] - a[1], b[0] - b[1]) + scale + 1, scale)


def _bounded(precision: int, scale: int) -> _Type | None:
    """None beyond 38 digits, where the type depends on a Spark setting."""
    return _Type(f"decimal({precision},{scale})") if precision <= 38 else None


def _common(found: list[_Type | None]) -> _Type | None:
    """The type of an expression that takes one of several values."""
    kinds = {None if item is None else item.dtype for item in found}
    if not found or None in kinds:
        return None
    known = [item for item in found if item is not None]
    if len(kinds) == 1:
        return _Type(known[0].dtype)
    if all(item.dtype in INTEGERS for item in known):
        return _Type(max((item.dtype for item in known), key=INTEGERS.index))
    # A whole-number literal beside decimals is an int, ten digits, here.
    shapes = [
        decimal_shape(item.dtype) or ((_DIGITS[item.dtype], 0) if item.dtype in _DIGITS else None) for item in known
    ]
    if any(shape is None for shape in shapes):
        return None
    fitting = [shape for shape in shapes if shape is not None]
    scale = max(shape[1] for shape in fitting)
    return _bounded(max(shape[0] - shape[1] for shape in fitting) + scale, scale)
