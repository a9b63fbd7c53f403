"""Commands that need no Spark."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.catalog import DictCatalog
from sqlext.cli.shell.commands import run_command
from sqlext.cli.shell.engine import Engine
from sqlext.cli.shell.state import LeaveError, Shell
from sqlext.cli.shell.tables import KnownTables


@pytest.fixture
def shell() -> Shell:
    """A shell whose Spark is never started."""
    engine = Engine(Session(), None, {})
    tables = KnownTables(DictCatalog({"views": {"user_id": "bigint", "ts": "timestamp"}}), engine.catalog)
    out = Console(file=io.StringIO(), width=200)
    return Shell(engine, tables, out, run_command, {}, is_interactive=False)


def printed(shell: Shell, command: str) -> str:
    shell.run_text(command)
    assert isinstance(shell.out.file, io.StringIO)
    return " ".join(shell.out.file.getvalue().split())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"\d", "views 2"),
        (r"\d views;", "user_id bigint ts timestamp"),
        (r"\df distinct_c", "distinct_count(x)"),
        (r"\h rows_range", "ROWS_RANGE BETWEEN"),
        (r"\h met by", "PERIOD(a, b) MET BY PERIOD(c, d)"),
        (r"\h period_length", "period_length(start, end)"),
        (r"\h allen_meets()", "holds if b = c"),
        (r"\h sqlext.exchange.blockBytes", "4194304"),
        (r"\h", "LAST JOIN Gives each left row the last right row"),
        (r"\?", r"\plan [analyze | html FILE] [SQL]"),
        ("help", "Ctrl-R"),
    ],
)
def test_what_is_printed(shell: Shell, command: str, shown: str) -> None:
    assert shown in printed(shell, command)


@pytest.mark.parametrize(
    ("command", "message", "help"),
    [
        (r"\plann", r"there is no command \plann", r"did you mean \plan?"),
        (r"\h distinct_cuont", "nothing is known about 'distinct_cuont'", "did you mean distinct_count?"),
        (r"\df nothing", "no function has 'nothing' in its name", r"\df"),
        (r"\plan", "no statement has run yet", r"\plan SELECT"),
        (r"\plan html", "a file for the page is missing", "plan.html"),
        (r"\timing maybe", "'maybe' is neither on nor off", "on, off"),
        (r"\limit -3", "'-3' is no number of rows", r"\limit 5000"),
        (r"\o result.doc", "'.doc'", ".csv"),
        (r"\i", "the name of a file is missing", r"\i query.sql"),
        (r"\i nothing.sql", "cannot read nothing.sql", "check the path"),
        (r"\e", r"\e works only at the prompt", "leave it out"),
    ],
)
def test_mistakes(shell: Shell, command: str, message: str, help: str) -> None:
    with pytest.raises(SqlExtError) as caught:
        shell.run_text(command)
    assert message in str(caught.value)
    assert help in str(caught.value)


def test_switches(shell: Shell, tmp_path: Path) -> None:
    shell.run_text(f"\\x\n\\timing off\n\\pager\n\\limit 5,000\n\\o {tmp_path}/out.csv")
    options = shell.options
    assert (options.vertical, options.timing, options.pager, options.rows) == (True, False, False, 5000)
    assert options.output == tmp_path / "out.csv"
    shell.run_text("\\x\n\\timing on\n\\pager\n\\o")
    assert (options.vertical, options.timing, options.pager, options.output) == (False, True, True, None)
    with pytest.raises(LeaveError):
        shell.run_text("\\q\n\\nothing")


def test_a_file_that_runs_itself(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "loop.sql").write_text(f"\\i {tmp_path}/loop.sql\n")
    with pytest.raises(SqlExtError, match="is run by a file that it runs"):
        shell.run_text(f"\\i {tmp_path}/loop.sql")
    assert shell.depth == 0


def test_the_editor_gives_the_next_text(shell: Shell, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/one/two/ "$1"\n')
    editor.chmod(0o755)
    shell.is_interactive, shell.last = True, "SELECT 1 AS one"
    shell.environment = {"EDITOR": str(editor)}
    shell.run_text(r"\e")
    assert shell.next_text == "SELECT 1 AS two;"
