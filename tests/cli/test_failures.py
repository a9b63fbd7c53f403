"""Exit codes and messages: 2 and one paragraph for a user's mistake, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from sqlext_planner.errors import AnalysisError, InternalError, Span

from sqlext.cli.failures import report
from tests.cli.conftest import WINDOW
from tests.command_line import Sqlext

MISTAKES = {
    "unknown column": (WINDOW.replace("sum(v)", "sum(w)"), "w", "1"),
    "unknown table": (WINDOW.replace("FROM a", "FROM aa"), "aa", "2"),
    "unknown window": (WINDOW.replace("OVER w", "OVER x"), "x", "1"),
    "bad syntax": (WINDOW.replace("PRECEDING", "PRECEEDING"), "PRECEEDING", "3"),
    "MAXSIZE 0": (WINDOW.replace("CURRENT ROW", "CURRENT ROW MAXSIZE 0"), "MAXSIZE", "3"),
}


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_sql(sqlext: Sqlext, data: Path, case: tuple[str, str, str]) -> None:
    sql, word, line = case
    done = sqlext("plan", "--data", data, "-e", sql)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert f"--> query:{line}:" in done.stderr
    assert "^" in done.stderr
    assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "nowhere.sql"), "nowhere.sql"),
        (("plan",), "-e"),
        (("plan", "-e", "SELECT 1", "x.sql"), "-e"),
        (("plan", "-e", "SELECT 1", "--data", "/nonexistent"), "/nonexistent"),
        (("plan", "-e", "SELECT 1", "--schema", "/nonexistent.json"), "/nonexistent.json"),
        (("plan", "-e", "SELECT 1", "--format", "pdf"), "pdf"),
        (("plan", "-e", "SELECT 1", "--conf", "sqlext.nothing=1"), "sqlext.nothing"),
        (("plan", "-e", "SELECT 1", "--conf", "nothing"), "key=value"),
        (("run", "-e", "SELECT 1", "--format", "parquet"), "-o"),
        (("nothing",), "nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_in_the_arguments(sqlext: Sqlext, arguments: tuple[str, ...], words: str) -> None:
    done = sqlext(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def test_unreadable_schema_and_data(sqlext: Sqlext, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"a": ["id"]}')
    done = sqlext("plan", "--schema", schema, "-e", "SELECT 1")
    assert done.returncode == 2
    assert "is not a schema" in done.stderr
    (tmp_path / "bad.parquet").write_text("not parquet")
    done = sqlext("plan", "--data", tmp_path, "-e", "SELECT * FROM bad")
    assert done.returncode == 2
    assert "bad.parquet" in done.stderr


def test_help_teaches_with_examples(sqlext: Sqlext) -> None:
    top = sqlext("--help")
    assert top.returncode == 0
    for command in ("demo", "plan", "run", "bench"):
        assert command in top.stdout
        page = sqlext(command, "--help")
        assert page.returncode == 0
        assert "sqlext" in page.stdout
    assert sqlext("--version").stdout.startswith("sqlext ")


def test_no_command_shows_the_help(sqlext: Sqlext) -> None:
    done = sqlext()
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_user_errors_are_2_and_bugs_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    error = AnalysisError("no such column", condition="unknown-column", span=Span(7, 8), sql="SELECT x", help="use y")
    assert report(error) == 2
    assert capsys.readouterr().err.splitlines() == [
        "AnalysisError: no such column",
        "  --> query:1:8",
        "1 | SELECT x",
        "           ^",
        "help: use y",
        "see: docs/errors.md#unknown-column, or run: sqlext errors unknown-column",
    ]
    assert report(InternalError("a rule broke the plan")) == 1
    assert "this is a bug in sqlext" in capsys.readouterr().err
    assert report(KeyboardInterrupt()) == 130
    assert report(typer.BadParameter("no such option")) == 2
