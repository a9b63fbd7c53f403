"""Output for the terminal: text that it can show, and streams that accept any text."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

#: Control characters (except tab and newline), marks that change the direction of writing, line separators, and
#: surrogate halves: a terminal would obey them, or show another text than the real one.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with every such character as an escape: ``\\x1b``, ``\\u202e``."""
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def json_visible(text: str) -> str:
    """The same for JSON text. Its data stays the same, because its strings may hold the escapes."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def prepare_streams() -> None:
    """Make the standard streams exist and accept any text: what their encoding lacks is written as an escape.

    A closed one becomes /dev/null, so that no file that is opened later takes its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def exact_output() -> Iterator[TextIO]:
    """Standard output for data: UTF-8 whatever the terminal's encoding, as in a file."""
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        yield sys.stdout
        return
    sys.stdout.flush()
    import io

    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
    try:
        yield stream
        stream.flush()
    finally:
        stream.detach()


@contextlib.contextmanager
def writing(output: Path) -> Iterator[None]:
    """Adds the file's name to errors raised inside: those of an open stream or of pyarrow do not have it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), str(output)) from error


@contextlib.contextmanager
def keys_unseen() -> Iterator[None]:
    """What is typed inside is not shown, and is there for the next who reads: shown, it would break what is drawn.

    Does nothing where standard input is no terminal.
    """
    import termios

    try:
        before = termios.tcgetattr(0)
    except termios.error:
        yield
        return
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(0, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def width_of(stream: TextIO, default: int) -> int:
    """The width of a terminal in columns, `default` for anything else."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else default
    except (OSError, ValueError, AttributeError):
        return default
