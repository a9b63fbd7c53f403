"""`sqlext shell` as a script, and its commands, on the shared Spark. tests/shell has the prompt and the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW
from tests.command_line import Sqlext

pytestmark = pytest.mark.spark


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


SCRIPT = rf"""
\d
\d a
CREATE TEMP VIEW made AS SELECT 1 AS one;
\d made
\x
SELECT 1 AS one, NULL AS two;
\x off
\limit 2
SELECT id FROM range(5);
\set sqlext.planner.alwaysLower true
\conf alwayslower
\set spark.sql.session.timeZone
SELECT id FROM a;
\plan
\plan {WINDOW};
\plan analyze {WINDOW};
\plan
EXPLAIN SELECT id FROM a;
\h array_max
quit
SELECT 'not reached' AS never;
"""
SHOWN = """a 4 3 * parquet b 4 1 * c 4 * id int k string ts bigint v bigint 3 rows * one int * one 1 two NULL 1 row *
the first 2 rows * sqlext.planner.alwaysLower true * spark.sql.session.timeZone UTC * == physical == *
ScanExec: a [id] * WindowUnionExec * == measured == 3 rows * == optimized == * WindowUnion * == physical == *
== Physical Plan == *
array_max(array) - Returns the maximum value in the array"""


def test_commands(here: Sqlext, data: Path) -> None:
    done = here("shell", "--data", data, "--conf", "spark.sql.session.timeZone=UTC", stdin=SCRIPT)
    assert (done.returncode, done.stderr) == (0, "")
    words, at = " ".join(done.stdout.split()), 0
    for shown in SHOWN.replace("\n", " ").split(" * "):
        assert shown.strip() in words[at:], words
        at = words.index(shown.strip(), at) + len(shown.strip())
    assert "not reached" not in words


@pytest.mark.parametrize(
    ("script", "message", "help"),
    [
        (r"\d aa", "there is no table 'aa'", "did you mean a?"),
        (r"\plan SELECT idd FROM a", "idd", "query:1:8"),
        (r"\set nothing.of.this", "no setting has 'nothing.of.this' in its name", r"\set"),
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
    Path("wrong.sql").write_text("SELECT 1;\nSELECT idd FROM a;\n")
    done = here("shell", "--data", data, "-e", "\\i inner.sql\n\\plan html plan.html\nSELECT 3 AS three;")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("out.csv").read_text() == "n\n2\n"
    assert "three" in done.stdout
    assert "<html" in Path("plan.html").read_text()
    done = here("shell", "--data", data, "-e", r"\i wrong.sql")
    assert "query:2:8" in done.stderr
    assert "note: this is in wrong.sql" in done.stderr


@pytest.mark.spark_since("4.1", "STREAM in FROM")
def test_a_stream_is_refused(here: Sqlext, data: Path) -> None:
    script = "CREATE TABLE ticks (n int) USING parquet;\nSELECT * FROM STREAM ticks;"
    done = here("shell", "--data", data, stdin=f"DROP TABLE IF EXISTS ticks;\n{script}")
    here("shell", "--data", data, stdin="DROP TABLE ticks;")
    assert done.returncode == 2
    assert "this is a query over a stream" in done.stderr


def test_what_cannot_start(here: Sqlext, tmp_path: Path) -> None:
    assert "does not exist" in here("shell", "--data", tmp_path / "nothing", stdin="SELECT 1;").stderr
    assert "unknown setting" in here("shell", "--conf", "sqlext.nothing=1", stdin="SELECT 1;").stderr
