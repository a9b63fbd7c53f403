"""The shell in a real terminal, on a Spark of its own: one session does many checks."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from sqlext.cli.demo import write_tables

ROOT = Path(__file__).resolve().parent.parent.parent
#: A statement that takes hours.
ENDLESS = "SELECT count(*) FROM views a, views b, views c, views d WHERE a.price + b.price + c.price + d.price < 0;"
CTRL_C, CTRL_R = "\x03", "\x12"

pytestmark = pytest.mark.spark


class Terminal:
    """A shell that is typed into; what it has printed since the last look is looked through."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
        own = {"TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1", "PAGER": "sed s/^/paged:/"}
        environment = {**os.environ, **own, "PYTHONPATH": path, "XDG_STATE_HOME": str(folder / "state")}
        words = ["-m", "sqlext", "shell", "--data", str(folder / "shop"), "--conf", "spark.driver.memory=1g"]
        self.process = pexpect.spawn(
            sys.executable, words, env=environment, dimensions=(40, 120), encoding="utf-8", timeout=120, cwd=str(folder)
        )
        self.process.str_last_chars = 2000  # in the message of a failure
        self.shows(r"\? for help")
        self.shows("tables: orders, views")
        self.shows("sqlext>")

    def types(self, text: str) -> None:
        self.process.send(text)

    def runs(self, text: str) -> None:
        self.types(text + "\r")

    def completes(self, text: str) -> None:
        """Type a text and Tab; what fits is looked for in a thread, and the next key would end that."""
        self.types(text)
        time.sleep(0.5)
        self.types("\t")
        time.sleep(0.5)

    def shows(self, pattern: str, timeout: float = 120) -> str:
        """Wait until the pattern is printed; returns what came before it."""
        self.process.expect(pattern, timeout=timeout)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", str(self.process.before))

    def leaves(self) -> int | None:
        self.runs(r"\q")
        self.process.expect(pexpect.EOF, timeout=60)
        self.process.close()
        return self.process.exitstatus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal")
    write_tables(path / "shop", 3000, seed=1)
    return path


@pytest.fixture(scope="module")
def terminal(folder: Path) -> Iterator[Terminal]:
    started = Terminal(folder)
    yield started
    if started.process.isalive():  # a check has failed
        started.process.kill(signal.SIGTERM)
        started.process.expect(pexpect.EOF, timeout=60)
    started.process.close()


def test_a_session(terminal: Terminal, folder: Path) -> None:
    _tables_before_spark(terminal)
    _completion(terminal)
    _error(terminal)
    _cancel(terminal)
    _plan_time_and_rows(terminal)
    _pager(terminal)
    assert terminal.leaves() == 0
    _history(folder)


def _tables_before_spark(terminal: Terminal) -> None:
    terminal.runs(r"\d orders")
    assert "user_id   bigint" in terminal.shows("1,000 rows")
    terminal.runs(r"\dd")
    terminal.shows(r"there is no command \\dd")
    terminal.shows(r"did you mean \\d")


def _completion(terminal: Terminal) -> None:
    """Of a table, and of a column, in the second line."""
    terminal.runs("SELECT count(*) AS n")
    terminal.shows(r"\.\.\.>")
    terminal.completes("FROM vie")
    terminal.completes(" WHERE user_i")
    terminal.runs(" IS NOT NULL;")
    terminal.shows(r"\b2000\b")
    terminal.shows(r"\d s\b")


def _error(terminal: Terminal) -> None:
    terminal.runs("SELECT prise FROM orders;")
    assert "AnalysisError" in terminal.shows(r"\^\^\^\^\^")


def _cancel(terminal: Terminal) -> None:
    terminal.runs(ENDLESS)
    terminal.shows("Stage|Running")  # after two seconds
    start = time.monotonic()
    terminal.types(CTRL_C)
    terminal.types(CTRL_C)
    terminal.shows("cancelled", timeout=30)
    assert time.monotonic() - start < 15  # on busy cores; on quiet ones it is well below two
    terminal.types("SELECT half" + CTRL_C + CTRL_C)
    terminal.runs("SELECT 40 + 2 AS n;")
    terminal.shows(r"\b42\b")


def _plan_time_and_rows(terminal: Terminal) -> None:
    terminal.runs(r"\timing off")
    terminal.shows("times: off")
    terminal.runs(r"\plan")
    terminal.shows("== physical ==")
    terminal.runs(r"\plan html plan.html")
    terminal.shows("written to plan.html")
    terminal.runs(r"\x")
    terminal.shows("a line for each column: on")
    terminal.runs("SELECT 7 AS one, NULL AS two;")
    assert re.search(r"one\s+7\s+two\s+NULL", terminal.shows("1 row"))
    terminal.runs(r"\x off")
    terminal.shows("column: off")


def _pager(terminal: Terminal) -> None:
    terminal.runs("SELECT id FROM range(60);")
    assert "paged: 59" in terminal.shows("paged:60 rows")
    terminal.runs(r"\limit 5")
    terminal.shows("at most 5 rows")
    terminal.runs("SELECT id FROM range(60);")
    terminal.shows("the first 5 rows")


def _history(folder: Path) -> None:
    """What the first session had is in the next one, which leaves while Spark still starts."""
    second = Terminal(folder)
    second.types(CTRL_R + "LIMIT")
    time.sleep(0.5)
    second.types("\r")
    time.sleep(0.2)
    second.types("\r")
    second.shows("at most 5 rows")
    assert second.leaves() == 0
