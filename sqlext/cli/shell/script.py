"""What somebody has typed, or a script: statements and commands that begin with a backslash, in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from sqlext_planner.errors import Span

from sqlext.cli.source import statements_from

_BLANK = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_LINE = re.compile(r"[^\n]*")
#: A command's statement goes on in the next lines, up to an empty one or the next command.
_MORE = re.compile(r"(?:\n(?!\s*\n|\s*\\)[^\n]*)*+")
_WORD = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<word>\w+)", re.DOTALL)
#: What END may close by name, inside a script; only CASE is also an expression.
_NAMED_ENDS = ("IF", "WHILE", "LOOP", "REPEAT", "FOR")
#: Commands that people type without a backslash, alone in a line.
_BARE = {"quit": r"\q", "exit": r"\q", "help": r"\?"}
_BARE_LINE = re.compile(rf"({'|'.join(_BARE)})[ \t]*;?[ \t]*(?=\n|\Z)", re.IGNORECASE)


@dataclass(frozen=True)
class ScriptPart:
    """A statement or a command, and its place in the text. `text` is that of a statement without its semicolon, that of
    a command with its backslash. `is_whole`: nothing more has to come."""

    place: Span
    text: str
    is_command: bool
    is_whole: bool


def parts(text: str) -> Iterator[ScriptPart]:
    """The statements and commands of a text, each found when it is asked for."""
    at = _after_blank(text, 0)
    while at < len(text):
        bare = _BARE_LINE.match(text, at)
        if bare is not None or text[at] == "\\":
            part = _command(text, at) if bare is None else _command_at(Span(*bare.span()), _BARE[bare[1].lower()])
            end = part.place.end
        else:
            piece = next(statements_from(text, at), None)
            if piece is None:
                end = len(text) if text[at] != ";" else at + 1
                at = _after_blank(text, end)
                continue
            place = piece.place
            end = place.end + piece.is_ended
            statement = text[place.start : place.end]
            is_whole = piece.is_ended or (not piece.opened and _is_ended_script(statement))
            part = ScriptPart(place, statement, is_command=False, is_whole=is_whole)
        yield part
        at = _after_blank(text, end)


def is_complete(text: str) -> bool:
    """Whether what was typed can run: its last statement has its semicolon, its last command its line."""
    last = last_part(text)
    return last is None or last.is_whole


def last_part(text: str) -> ScriptPart | None:
    """The last statement or command of a text; None if there is none."""
    return next(iter(deque(parts(text), maxlen=1)), None)


def _command_at(place: Span, text: str) -> ScriptPart:
    return ScriptPart(place, text, is_command=True, is_whole=True)


def _command(text: str, at: int) -> ScriptPart:
    line = _LINE.match(text, at)
    end = len(text) if line is None else line.end()
    if re.match(r"\\plan\s+(?!html\b)\S", text[at:end]) and ";" not in text[at:end]:
        more = _MORE.match(text, end)
        end = end if more is None else more.end()
        semicolon = text.find(";", at, end)
        end = end if semicolon < 0 else semicolon + 1
    return _command_at(Span(at, end), text[at:end].strip())


def _is_ended_script(text: str) -> bool:
    """Whether ``BEGIN ... END;`` has as many ends as beginnings."""
    if re.match(r"BEGIN\b", text, re.IGNORECASE) is None or not text.rstrip().endswith(";"):
        return False
    depth, words = 0, [found["word"].upper() for found in _WORD.finditer(text) if found["word"]]
    for at, word in enumerate(words):
        if word == "END":
            depth -= words[at + 1 : at + 2] == [] or words[at + 1] not in _NAMED_ENDS
        elif word in ("BEGIN", "CASE") and (at == 0 or words[at - 1] != "END"):
            depth += 1
    return depth == 0


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
