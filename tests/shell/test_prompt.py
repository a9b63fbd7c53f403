"""Keys at the prompt, the history file, and work that Ctrl-C ends; without a terminal and without Spark."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from sqlext.cli.shell import engine
from sqlext.cli.shell.engine import CancelledError, cancellable
from sqlext.cli.shell.prompt import Prompt, history_path, open_history

Ask = Callable[[str], str]


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


@pytest.fixture
def prompt(keys: PipeInput) -> Prompt:
    history = InMemoryHistory(["SELECT 1,\n  2;"])
    return Prompt(DummyCompleter(), history, input=keys, output=DummyOutput())


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("SELECT 1;\r", "SELECT 1;"),
        ("SELECT ';\r';\r", "SELECT ';\n';"),
        ("SELECT 1\rFROM t;\r", "SELECT 1\nFROM t;"),
        ("\\d views\r", r"\d views"),
        ("SELECT 1;\x1b\rSELECT 2;\r", "SELECT 1;\nSELECT 2;"),  # Alt-Enter
        ("\x1b[A\r", "SELECT 1,\n  2;"),  # up: the whole statement
        ("\x12ELECT 1\r\r", "SELECT 1,\n  2;"),  # Ctrl-R: Enter takes it, and runs it
    ],
)
def test_enter(keys: PipeInput, prompt: Prompt, typed: str, text: str) -> None:
    keys.send_text(typed)
    assert prompt.ask() == text


def test_ctrl_c_and_ctrl_d(keys: PipeInput, prompt: Prompt) -> None:
    keys.send_text("SELECT\x03")
    with pytest.raises(KeyboardInterrupt):
        prompt.ask()
    keys.send_text("\x04")
    with pytest.raises(EOFError):
        prompt.ask()


def test_history_is_private_and_lasts(tmp_path: Path) -> None:
    path = history_path({"XDG_STATE_HOME": str(tmp_path), "HOME": "/nowhere"})
    assert path == tmp_path / "sqlext" / "history"
    open_history(path).append_string("SELECT 1,\n  2;")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(open_history(path).load_history_strings()) == ["SELECT 1,\n  2;"]
    path.unlink()
    path.mkdir()
    open_history(path).append_string("SELECT 1;")  # a session without a file still works


def test_where_no_history_can_be() -> None:
    assert history_path({"XDG_STATE_HOME": "relative"}) is None
    assert history_path({"HOME": "/home/x"}) == Path("/home/x/.local/state/sqlext/history")
    assert isinstance(open_history(Path("/dev/null/sqlext/history")), InMemoryHistory)


def interrupted(function: Callable[[], None], cancel: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """What becomes of work that gets a Ctrl-C: whether it goes on by itself."""
    monkeypatch.setattr(engine, "_INTERRUPTED_AFTER", 0.3)
    monkeypatch.setattr(engine, "_LEFT_AFTER", 0.6)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(CancelledError) as caught:
        cancellable(function, cancel)
    assert signal.getsignal(signal.SIGINT) is before
    return caught.value.is_left


def test_work_without_ctrl_c() -> None:
    assert cancellable(lambda: 1 + 1, lambda: None) == 2
    with pytest.raises(ZeroDivisionError):
        cancellable(lambda: 1 / 0, lambda: None)


def test_ctrl_c_cancels_until_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Semaphore(0)

    def two_jobs() -> None:
        cancelled.acquire(timeout=10)
        cancelled.acquire(timeout=10)

    assert not interrupted(two_jobs, cancelled.release, monkeypatch)


def test_ctrl_c_interrupts_python(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def planning() -> None:
        try:
            while True:
                try:
                    time.sleep(0.01)
                except Exception:
                    continue
        finally:
            ended.set()

    assert not interrupted(planning, lambda: None, monkeypatch)
    assert ended.is_set()


def test_ctrl_c_leaves_what_cannot_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def stuck() -> None:
        go_on.wait(10)

    assert interrupted(stuck, lambda: None, monkeypatch)
    go_on.set()
