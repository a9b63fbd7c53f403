"""Scripts of OpenMLDB's on the command line: their DDL is the schema of `plan`, and `run` leaves it out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_plan import WITHOUT_JAVA
from tests.command_line import Sqlext

DDL = """CREATE TABLE IF NOT EXISTS a(id int, k string, ts bigint, v bigint, index(key=(k), ttl=0m, ts=`ts`));
CREATE TABLE b(id int, k string, ts bigint, v bigint) OPTIONS(replicanum=1);
"""
DEPLOY = """DEPLOY demo SELECT id, sum(v) OVER w AS s, FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW);
"""


def test_plan_reads_a_schema_of_create_table_statements(sqlext: Sqlext, tmp_path: Path) -> None:
    (tmp_path / "create.sql").write_text(DDL)
    (tmp_path / "deploy.sql").write_text(DEPLOY)
    arguments = ("--schema", tmp_path / "create.sql", tmp_path / "deploy.sql", "--compat", "openmldb")
    done = sqlext("plan", *arguments, "--stage", "physical", env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    assert "WindowUnionExec" in done.stdout


def test_plan_reads_the_declarations_of_one_script(sqlext: Sqlext) -> None:
    script = f"USE db; SET @@execute_mode='offline';\n{DDL}{DEPLOY}"
    done = sqlext("plan", "-", "--compat", "openmldb", "--stage", "physical", stdin=script, env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    assert "WindowUnionExec" in done.stdout


@pytest.mark.parametrize(
    ("ddl", "shown"),
    [("CREATE TABLE a(id nope)", "query:1:19"), ("SELECT 1", "creates no table")],
)
def test_a_mistake_in_the_schema(sqlext: Sqlext, tmp_path: Path, ddl: str, shown: str) -> None:
    (tmp_path / "create.sql").write_text(ddl)
    done = sqlext("plan", "--schema", tmp_path / "create.sql", "-e", "SELECT 1 AS x")
    assert done.returncode == 2
    assert shown in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_run_leaves_the_declarations_out_and_says_so(here: Sqlext, data: Path) -> None:
    script = f"USE db;\n{DDL}{DEPLOY}"
    done = here("run", "--data", data, "-", "--compat", "openmldb", "--format", "csv", stdin=script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["1,11", "2,13", "3,3", "id,s"]
    notes = done.stderr.splitlines()
    assert [note.split(": ")[1] for note in notes] == ["line 1", "line 2", "line 3"]
    assert notes[1].startswith("not run, because the tables come from --data: line 2: CREATE TABLE IF NOT EXISTS a(")
