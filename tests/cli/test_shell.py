"""`sqlext shell` as a script, and its commands, on the shared Spark. tests/shell has the prompt and the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Sqlext

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def spark_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlext.cli.shell.engine.end_java", lambda: None)


def test_a_script_prints_every_result(here: Sqlext, data: Path) -> None:
    script = f"SET sqlext.planner.alwaysLower = true;\n{WINDOW} ORDER BY id;\nSELECT 'a;b' AS t, NULL AS n\n"
    done = here("shell", "--data", data, stdin=script)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert ["1", "11"] in lines
    assert ["a;b", "NULL"] in lines
    assert "\x1b" not in done.stdout
    assert "sqlext>" not in done.stdout


def test_the_first_error_ends_a_script(here: Sqlext, data: Path) -> None:
    done = here("shell", "--data", data, stdin="SELECT 1 AS one;\nSELECT vv\nFROM a;\nSELECT 3 AS three;")
    assert done.returncode == 2
    assert "one" in done.stdout
    assert "three" not in done.stdout
    assert "query:2:8" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (r"\d", ["a 4 3", "parquet", "b 4 1", "c 4"]),
        (r"\d a", ["id int", "k string", "ts bigint", "3 rows"]),
        ("CREATE TEMP VIEW made AS SELECT 1 AS one;\n\\d made\n\\d", ["one int", "made 1 Spark's"]),
        (r"\df distinct_c", ["distinct_count(x)"]),
        (r"\h rows_range", ["ROWS_RANGE BETWEEN", "docs/windows.md"]),
        (r"\h met by", ["PERIOD(a, b) MET BY PERIOD(c, d)", "d = a"]),
        (r"\h period_length", ["period_length(start, end)"]),
        (r"\h sqlext.exchange.blockBytes", ["4194304"]),
        (r"\h", ["LAST JOIN", "EMIT AFTER"]),
        ("\\x\nSELECT 1 AS one, NULL AS two;", ["one 1", "two NULL", "1 row"]),
        ("\\limit 2\nSELECT id FROM range(5);", ["the first 2 rows"]),
        ("\\set sqlext.planner.alwaysLower true\n\\conf alwayslower", ["sqlext.planner.alwaysLower true"]),
        ("\\set spark.sql.session.timeZone", ["spark.sql.session.timeZone UTC"]),
        ("SELECT id FROM a;\n\\plan", ["== physical ==", "ScanExec: a [id]"]),
        (f"\\plan {WINDOW};", ["WindowUnionExec"]),
        (f"\\plan analyze {WINDOW};\n\\plan", ["== measured ==", "3 rows", "== optimized =="]),
        ("EXPLAIN SELECT id FROM a;", ["== Physical Plan =="]),
        ("SELECT 1 AS one;\nquit\nSELECT 2 AS two;", ["one"]),
        (r"\?", [r"\plan [analyze | html FILE] [SQL]", "Ctrl-R"]),
    ],
)
def test_commands(here: Sqlext, data: Path, script: str, shown: list[str]) -> None:
    done = here("shell", "--data", data, "--conf", "spark.sql.session.timeZone=UTC", stdin=script)
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert [text for text in shown if text not in words] == []
    assert " two " not in words or "NULL" in words


@pytest.mark.parametrize(
    ("script", "message", "help"),
    [
        (r"\plann", r"there is no command \plann", r"did you mean \plan?"),
        (r"\d ab", "there is no table 'ab'", "did you mean a?"),
        (r"\h distinct_cuont", "nothing is known about 'distinct_cuont'", "did you mean distinct_count?"),
        (r"\df nothing", "no function has 'nothing' in its name", r"\df"),
        (r"\plan", "no statement has run yet", r"\plan SELECT"),
        (r"\plan SELECT idd FROM a", "idd", "query:1:8"),
        (r"\plan html", "a file for the page is missing", "plan.html"),
        (r"\timing maybe", "'maybe' is neither on nor off", "on, off"),
        (r"\limit -3", "'-3' is no number of rows", r"\limit 5000"),
        (r"\o result.doc", "'.doc'", ".csv"),
        (r"\i nothing.sql", "cannot read nothing.sql", "check the path"),
        (r"\set nothing.of.this", "no setting has 'nothing.of.this' in its name", r"\set"),
        (r"\e", r"\e works only at the prompt", "leave it out"),
    ],
)
def test_mistakes_in_commands(here: Sqlext, data: Path, script: str, message: str, help: str) -> None:
    done = here("shell", "--data", data, stdin=script)
    assert done.returncode == 2
    assert message in done.stderr
    assert help in done.stderr


def test_files(here: Sqlext, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inner.sql").write_text("\\o out.csv\nCREATE OR REPLACE TEMP VIEW two AS SELECT 2 AS n;\nSELECT * FROM two;\n")
    Path("loop.sql").write_text("\\i loop.sql\n")
    Path("wrong.sql").write_text("SELECT 1;\nSELECT idd FROM a;\n")
    done = here("shell", "--data", data, "-e", "\\i inner.sql\n\\plan html plan.html\nSELECT 3 AS three;")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("out.csv").read_text() == "n\n2\n"
    assert "three" in done.stdout
    assert "<html" in Path("plan.html").read_text()
    done = here("shell", "--data", data, "-e", r"\i loop.sql")
    assert "loop.sql is run by a file that it runs" in done.stderr
    done = here("shell", "--data", data, "-e", r"\i wrong.sql")
    assert "query:2:8" in done.stderr
    assert "note: this is in wrong.sql" in done.stderr


def test_a_stream_is_refused(here: Sqlext, data: Path) -> None:
    script = "CREATE TABLE ticks (n int) USING parquet;\nSELECT * FROM STREAM ticks;"
    done = here("shell", "--data", data, stdin=f"DROP TABLE IF EXISTS ticks;\n{script}")
    here("shell", "--data", data, stdin="DROP TABLE ticks;")
    assert done.returncode == 2
    assert "this is a query over a stream" in done.stderr


def test_what_cannot_start(here: Sqlext, tmp_path: Path) -> None:
    assert "does not exist" in here("shell", "--data", tmp_path / "nothing", stdin="SELECT 1;").stderr
    assert "unknown setting" in here("shell", "--conf", "sqlext.nothing=1", stdin="SELECT 1;").stderr
