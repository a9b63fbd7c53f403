"""Patterns that mean the same in Java and Python: of dates and times, and regular expressions.

None for every other one: only Spark reads it.
"""

from __future__ import annotations

import re

_RUN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
#: The runs of one letter that are written alike.
_WRITTEN = re.compile(r"y{1,4}|M{1,4}|d{1,2}|D{1,3}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|S{1,9}|E{1,4}|a")
#: Characters that stand for something else in a pattern of times.
_RESERVED = frozenset("[]{}#")


def time_pattern(text: str) -> tuple[str, ...] | None:
    """A pattern of date_format as `sqlext_operators.expressions.time_texts` has it."""
    runs: list[str] = []
    at = 0
    while at < len(text):
        match = _RUN.match(text, at)
        if match is None:
            return None
        at = match.end()
        run = match[0]
        if run == "''":
            runs.append("''")
        elif run[0] == "'":
            runs.append("'" + run[1:-1].replace("''", "'"))
        elif run[0].isascii() and run[0].isalpha():
            if _WRITTEN.fullmatch(run) is None:
                return None
            runs.append(run)
        elif _RESERVED & set(run):
            return None
        else:
            runs.append("'" + run)
    return tuple(runs)


_ESCAPES = frozenset("dDwWsS")
_PLAIN_ESCAPES = frozenset("\\.^$|?*+()[]{}-/")
#: Java's "." and "$" know more ends of lines than Python's.
_DOT = r"[^\n\r\x85\u2028\u2029]"


def regular_expression(text: str) -> str | None:
    """A regular expression of Java as Python's, for `re.ASCII`."""
    parts: list[str] = []
    at, depth = 0, 0
    while at < len(text):
        letter, rest = text[at], text[at + 1 : at + 2]
        if letter == "\\":
            if not rest or rest not in _ESCAPES | _PLAIN_ESCAPES:
                return None
            parts.append(letter + rest)
            at += 2
            continue
        if letter == "[":
            match = _CLASS.match(text, at)
            if match is None:
                return None
            parts.append(match[0])
            at = match.end()
            continue
        if letter == "(":
            if rest == "?" and text[at : at + 3] != "(?:":
                return None
            depth += 1
            parts.append("(?:")
            at += 3 if rest == "?" else 1
            continue
        quantifier = _QUANTIFIER.match(text, at)
        if quantifier is not None:
            follows = text[quantifier.end() : quantifier.end() + 1]
            if not parts or parts[-1] in ("(?:", "|", "^") or (follows and follows in "+*?{"):
                return None
            parts.append(quantifier[0])
            at = quantifier.end()
            continue
        if letter in "]{}$" or ord(letter) > 0xFFFF:
            return None
        depth -= letter == ")"
        if depth < 0:
            return None
        parts.append(_DOT if letter == "." else letter)
        at += 1
    pattern = "".join(parts)
    return pattern if depth == 0 and _compiles(pattern) else None


_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??")
_CLASS = re.compile(r"\[\^?(?:[^\[\]\\&^~|-]|\\[dwsDWS\\.\]\[^-]|(?<=[0-9A-Za-z])-(?=[0-9A-Za-z])|-(?=\]))+\]")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern, re.ASCII)
    except re.error:
        return False
    return True


def plain_text(pattern: str) -> str | None:
    """The text that a regular expression without any special character finds; None for another one, and for ''."""
    text = re.sub(r"\\([^A-Za-z0-9])", "\0\\1", pattern)
    if not pattern or re.search(r"(?<!\0)[\\.^$|?*+()\[\]{}]", text):
        return None
    return text.replace("\0", "")
