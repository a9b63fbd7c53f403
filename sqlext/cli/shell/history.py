"""What was typed in earlier sessions: a file that only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


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
