"""Functions of strings. Positions count code points, and begin with 1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.values import Kernel, Values, by_row, inexact, malformed

#: Letters whose upper case came with Unicode 15 and 16. For the other 144,757 characters of Unicode 14 Python's case is
#: that of Spark 4.3, upper and lower.
_LATE = "\u019b\u0264\ua7d3\ua7d5"


def _concat(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``concat(a, b, ...)``; NULL if one is."""
    return Values(pc.binary_join_element_wise(*arguments, pa.scalar("", pa.string())))


def _concat_ws(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The texts that are not NULL with the first argument between them."""
    separators, *texts = arguments
    joined = pc.binary_join_element_wise(*texts, separators, null_handling="skip")
    return Values(pc.if_else(pc.is_valid(separators), joined, pa.scalar(None, pa.string())))


def _length(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return Values(pc.cast(pc.utf8_length(arguments[0]), call.kind))


def _cased(arguments: Sequence[pa.Array], call: TaskCall, change: Callable[[str], str]) -> Values:
    """Upper or lower case. Letters that Unicode did not have when Python's tables were made are Spark's."""

    def changed(text: str) -> str:
        if text.isascii():
            return change(text)
        if any(letter in _LATE or unicodedata.category(letter) == "Cn" for letter in text):
            raise inexact(f"the case of {text!r}")
        return change(text)

    return by_row(arguments, call, changed)


def _substring(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``substring(text, position[, length])``: a position below 0 counts from the end, 0 is 1."""

    def taken(text: str, position: int, length: int = 2**31 - 1) -> str:
        start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
        end = min(start + length, 2**31 - 1)
        return text[max(start, 0) : end] if end > start and end > 0 else ""

    return by_row(arguments, call, taken)


def _trimmed(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Without the characters of the second argument (blanks if there is none) at the sides of the option."""
    side = call.options[0]
    strip: Callable[[str, str], str] = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[side]
    return by_row(arguments, call, lambda text, characters=" ": strip(text, characters) if characters else text)


def _like(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``text LIKE pattern``; option: whether case counts for nothing."""
    flags = re.DOTALL
    lower = str.lower if call.options[0] else str

    def matches(text: str, pattern: str) -> bool:
        return re.compile(_like_regex(lower(pattern)), flags).fullmatch(lower(text)) is not None

    return by_row(arguments, call, matches)


@lru_cache(1024)
def _like_regex(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            at += 1
            if at == len(pattern) or pattern[at] not in "_%\\":
                raise malformed(pattern, "pattern of LIKE: a backslash stands before % or _ or another one")
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"_": ".", "%": ".*"}.get(letter) or re.escape(letter))
        at += 1
    return "".join(parts)


def _rlike(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``text RLIKE pattern`` of a constant pattern that means the same in Java and Python; option: the pattern."""
    pattern = re.compile(call.options[0], re.ASCII)
    return by_row(arguments, call, lambda text: pattern.search(text) is not None)


def _tested(arguments: Sequence[pa.Array], call: TaskCall, test: Callable[[str, str], bool]) -> Values:
    return by_row(arguments, call, test)


def _replace(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Every occurrence of the second argument becomes the third one."""
    return by_row(arguments, call, lambda text, old, new="": text.replace(old, new) if old else text)


def _split(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The parts between the occurrences of a plain text (the option)."""
    between = call.options[0]
    return by_row(arguments, call, lambda text: text.split(between))


def _position(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``instr(text, part)``: 0 if it is nowhere."""
    return by_row(arguments, call, lambda text, part: text.find(part) + 1)


def _repeat(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, lambda text, count: text * max(count, 0))


def _padded(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``lpad`` and ``rpad(text, length, filling)``, by the option; a longer text is cut at its end."""
    left = call.options[0] == "left"

    def padded(text: str, length: int, filling: str) -> str:
        missing = length - len(text)
        if missing <= 0 or not filling:
            return text[: max(length, 0)]
        before = (filling * (missing // len(filling) + 1))[:missing]
        return before + text if left else text + before

    return by_row(arguments, call, padded)


def _reverse(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    return by_row(arguments, call, lambda text: text[::-1])


def _ends(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``left`` and ``right(text, count)``, by the option."""
    left = call.options[0] == "left"

    def cut(text: str, count: int) -> str:
        return "" if count <= 0 else text[:count] if left else text[-count:]

    return by_row(arguments, call, cut)


def _ascii(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The code point of the first character, 0 of an empty text."""
    return by_row(arguments, call, lambda text: np.int32(ord(text[0])) if text else 0)


KERNELS: dict[str, Kernel] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "length": _length,
    "upper": partial(_cased, change=str.upper),
    "lower": partial(_cased, change=str.lower),
    "substring": _substring,
    "trim": _trimmed,
    "like": _like,
    "rlike": _rlike,
    "startswith": partial(_tested, test=str.startswith),
    "endswith": partial(_tested, test=str.endswith),
    "contains": partial(_tested, test=str.__contains__),
    "replace": _replace,
    "split": _split,
    "position": _position,
    "repeat": _repeat,
    "pad": _padded,
    "reverse": _reverse,
    "ends": _ends,
    "ascii": _ascii,
}
