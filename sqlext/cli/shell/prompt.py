"""The line where one types: keys, colours, completion, and what was typed in earlier sessions: a file that only its
owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from sqlext.cli.shell.help import SqlExtLexer
from sqlext.cli.shell.script import is_complete

PROMPT = "sqlext> "
CONTINUED = "   ...> "

_STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "continuation": "ansibrightblack",
        "auto-suggestion": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
        "pygments.keyword": "ansiblue bold",
        "pygments.name.function": "ansicyan",
        "pygments.name.builtin": "ansicyan",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "ansibrightblack italic",
    }
)


class Prompt:
    """Asks for a statement or a command. `is_starting` shows that Spark still starts."""

    def __init__(
        self,
        completer: Completer,
        history: History,
        *,
        vi: bool = False,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", PROMPT)],
            multiline=True,
            prompt_continuation=_before_line,
            lexer=PygmentsLexer(SqlExtLexer),
            style=_STYLE,
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=True,
            auto_suggest=AutoSuggestFromHistory(),
            history=history,
            search_ignore_case=True,
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            key_bindings=_keys(),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            input=input,
            output=output,
        )

    def ask(self, text: str = "") -> str:
        """What was typed, `text` before it. Raises KeyboardInterrupt for Ctrl-C, EOFError for Ctrl-D at its start."""
        return self._session.prompt(default=text)

    def spark_starts(self) -> None:
        """Say below the line that Spark is starting."""
        self._session.bottom_toolbar = "Spark is starting; you can type already"

    def spark_started(self) -> None:
        """Take that away again. May be called from any thread."""
        self._session.bottom_toolbar = None
        self._session.app.invalidate()


def _before_line(width: int, line: int, wraps: int) -> StyleAndTextTuples:
    """What stands before a later line; only blanks where the line above goes on because it is too long."""
    return [("class:continuation", CONTINUED if wraps == 0 else " " * len(CONTINUED))]


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=completion_is_selected)
    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=~completion_is_selected & Condition(_is_typing))
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _is_typing() -> bool:
    """Whether keys go to the statement, not to the search in the history."""
    from prompt_toolkit.application import get_app
    from prompt_toolkit.enums import DEFAULT_BUFFER

    app: Any = get_app()
    return bool(app.layout.has_focus(DEFAULT_BUFFER))


def history_path(environment: Mapping[str, str]) -> Path | None:
    """`sqlext/history` in the folder for state (XDG); None where there is no home."""
    state = environment.get("XDG_STATE_HOME", "")
    if Path(state).is_absolute():
        return Path(state) / "sqlext" / "history"
    home = environment.get("HOME", "")
    return Path(home) / ".local" / "state" / "sqlext" / "history" if home else None


def open_history(path: Path | None) -> History:
    """The history in this file; one that ends with the session if the file cannot be written."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return _OwnHistory(path)


class _OwnHistory(FileHistory):
    """A file whose loss does not stop the shell: a full disk, a folder that is gone."""

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            return
