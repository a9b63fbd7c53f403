"""`sqlext plan`: stages, formats, the JSON contract, and that it needs no Java."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import WINDOW
from tests.command_line import Sqlext

WITHOUT_JAVA = {"JAVA_HOME": "/nonexistent", "PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/")}
PLAIN = "SELECT k, count(*) AS n FROM a GROUP BY k"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    columns = {"id": "int", "k": "string", "ts": "bigint", "v": "bigint"}
    path = tmp_path_factory.mktemp("schema") / "tables.json"
    path.write_text(json.dumps({"a": columns, "b": columns}))
    return path


def check_tree(tree: dict[str, Any]) -> None:
    assert set(tree) == {"node", "args", "children"}
    assert isinstance(tree["node"], str)
    assert isinstance(tree["args"], dict)
    for child in tree["children"]:
        check_tree(child)


def test_default_shows_the_plan_before_and_after_and_the_choice(sqlext: Sqlext, data: Path) -> None:
    done = sqlext("plan", "--data", data, "-e", WINDOW, env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    headings = [line for line in done.stdout.splitlines() if line.startswith("==")]
    assert headings == ["== analyzed ==", "== optimized ==", "== physical =="]
    assert "WindowUnion:" in done.stdout
    assert "WindowUnionExec" in done.stdout


def test_json_contract(process: Sqlext, schema: Path) -> None:
    done = process("plan", "--schema", schema, "-e", WINDOW, "--stage", "all", "--format", "json", env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    page = json.loads(done.stdout)
    assert list(page) == ["sql", "stages", "umjoins", "extensions"]
    assert page["sql"] == WINDOW
    assert list(page["stages"]) == ["parsed", "analyzed", "optimized", "physical"]
    assert page["umjoins"] == []
    assert page["extensions"] == ["WindowUnionExec"]
    for tree in page["stages"].values():
        check_tree(tree)
    assert page["stages"]["analyzed"]["node"] == "Output"


def test_plain_sql_has_no_extension(sqlext: Sqlext, schema: Path) -> None:
    done = sqlext("plan", "--schema", schema, "-e", PLAIN, "--format", "json")
    assert json.loads(done.stdout)["extensions"] == []
    done = sqlext("plan", "--schema", schema, "-e", PLAIN)
    assert done.stdout.rstrip().endswith("the text goes to spark.sql as it is.")


def test_statements_of_sparks_own(sqlext: Sqlext) -> None:
    done = sqlext("plan", "-e", "SHOW TABLES", "--stage", "all", "--format", "json")
    assert done.returncode == 0
    assert set(json.loads(done.stdout)["stages"]) == {"parsed"}


@pytest.mark.few(2)
@pytest.mark.parametrize("stage", ["parsed", "analyzed", "optimized", "physical"])
def test_one_stage(sqlext: Sqlext, schema: Path, stage: str) -> None:
    done = sqlext("plan", "--schema", schema, "-e", WINDOW, "--stage", stage)
    assert [line for line in done.stdout.splitlines() if line.startswith("==")] == [f"== {stage} =="]


@pytest.mark.parametrize(
    ("format", "start"), [("mermaid", "flowchart"), ("dot", "digraph"), ("html", "<!DOCTYPE html>"), ("text", "==")]
)
def test_formats_go_to_a_file(sqlext: Sqlext, schema: Path, tmp_path: Path, format: str, start: str) -> None:
    out = tmp_path / "plan.out"
    done = sqlext("plan", "--schema", schema, "-e", WINDOW, "--format", format, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.read_text().startswith(start)


def test_a_diagram_holds_one_stage(sqlext: Sqlext, schema: Path) -> None:
    done = sqlext("plan", "--schema", schema, "-e", WINDOW, "--format", "dot", "--stage", "all")
    assert done.returncode == 2
    assert "--stage physical" in done.stderr


def test_the_text_may_come_from_a_file_or_stdin(sqlext: Sqlext, schema: Path, tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text(WINDOW)
    from_file = sqlext("plan", "--schema", schema, file)
    from_stdin = sqlext("plan", "--schema", schema, "-", stdin=WINDOW)
    assert from_file.stdout == from_stdin.stdout != ""


def test_csv_headers_and_folders_are_tables(sqlext: Sqlext, data: Path) -> None:
    done = sqlext(
        "plan", "--data", data, "-e", "SELECT c.v FROM c JOIN b USING (id)", "--format", "json", "--stage", "analyzed"
    )
    assert done.returncode == 0, done.stderr
    fields = json.dumps(json.loads(done.stdout)["stages"]["analyzed"])
    assert "c.v double" in fields


def test_no_spark_and_no_kernels_are_loaded(sqlext: Sqlext, schema: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        "names = ('pyspark.java_gateway', 'py4j', 'pyspark', 'numba')\n"
        "atexit.register(lambda: print(*[n for n in names if n in sys.modules], file=sys.stderr))\n"
    )
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import sitecustomize; import runpy; "
        f"sys.argv = ['sqlext', 'plan', '--schema', {str(schema)!r}, '-e', {WINDOW!r}]; "
        "runpy.run_module('sqlext', run_name='__main__')"
    )
    import subprocess

    root = Path(__file__).resolve().parent.parent.parent
    path = os.pathsep.join(map(str, (root, root / "planner", root / "operators")))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == ""
