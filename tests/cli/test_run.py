"""`sqlext run` and `sqlext demo`: results in every format. Commands of the docs: test_docs_console.py."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlext.cli.demo import differing
from tests.cli.conftest import WINDOW
from tests.command_line import Sqlext

pytestmark = pytest.mark.spark
EXPECTED = {1: 11, 2: 13, 3: 3}


@pytest.mark.every_spark("command line")
def test_table_of_a_script_on_stdin(here: Sqlext, data: Path) -> None:
    script = f"-- made first; used below\nCREATE TEMP VIEW made AS {WINDOW};\n"
    script += "SELECT id, s, NULL AS n, DATE'+10000-01-01' AS far FROM made ORDER BY id;\n"
    done = here("run", "--data", data, "-", stdin=script)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert lines[0] == ["id", "s", "n", "far"]
    far = "+10000-01-01"  # beyond Python's calendar
    assert lines[2:] == [["1", "11", "NULL", far], ["2", "13", "NULL", far], ["3", "3", "NULL", far], ["3", "rows"]]


def test_csv_to_stdout(here: Sqlext, data: Path) -> None:
    done = here("run", "--data", data, "-e", WINDOW, "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {int(row["id"]): int(row["s"]) for row in rows} == EXPECTED


def test_tables_of_a_uri(here: Sqlext, data: Path) -> None:
    done = here("run", "--data", f"file://{data}", "-e", WINDOW, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + len(EXPECTED)
    done = here("run", "--data", "s3a://bucket/tables", "-e", WINDOW)
    assert done.returncode == 2
    assert "hadoop-aws" in done.stderr


@pytest.mark.parametrize("name", ["out.json", "out.JSONL", "out.ndjson"])
def test_the_suffix_tells_the_format(here: Sqlext, data: Path, tmp_path: Path, name: str) -> None:
    sql = WINDOW.replace("AS s", "AS s, double('nan') AS x, timestamp '2024-01-02 03:04:05' AS t, array(1, 2) AS l")
    sql = sql.replace("AS s", "AS s, timestamp '+10000-01-01 00:00:01' AS far, struct(date '+10000-01-01') AS farther")
    out = tmp_path / name
    done = here("run", "--data", data, "-e", sql, "-o", out, "--conf", "spark.sql.session.timeZone=UTC")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    text = out.read_text()
    read = json.loads(text) if name == "out.json" else [json.loads(line) for line in text.splitlines()]
    rows = {row["id"]: row for row in read}
    assert {key: row["s"] for key, row in rows.items()} == EXPECTED
    assert (rows[1]["x"], rows[1]["l"]) == ("NaN", [1, 2])
    assert rows[1]["t"].startswith("2024-01-02T03:04:05")
    assert rows[1]["far"] == "+10000-01-01T00:00:01+00:00"
    assert rows[1]["farther"] == {"col1": "+10000-01-01"}


def test_parquet_and_a_table_of_text_to_files(here: Sqlext, data: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.parquet", tmp_path / "out.txt"
    file = tmp_path / "query.sql"
    file.write_text(WINDOW)
    done = here("run", "--data", data, file, "-o", out)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(out).to_pydict()
    assert dict(zip(table["id"], table["s"], strict=True)) == EXPECTED
    assert here("run", "--data", data, file, "-o", page).returncode == 0
    assert page.read_text().endswith("3 rows\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "out.txt", "query.sql"]


def test_results_without_rows(here: Sqlext, data: Path) -> None:
    shown = {"csv": "id\n", "json": "[]\n", "jsonl": ""}
    for format, text in shown.items():
        done = here("run", "--data", data, "-e", "SELECT id FROM a WHERE id > 9", "--format", format)
        assert (done.returncode, done.stdout) == (0, text), done.stderr


def test_a_failed_run_leaves_the_file_that_was_there(here: Sqlext, data: Path, tmp_path: Path) -> None:
    for name in ("out.csv", "out.parquet"):
        (tmp_path / name).write_text("before")
        done = here("run", "--data", data, "-e", "SELECT id, 1 / (id - 2) AS x FROM a", "-o", tmp_path / name)
        assert done.returncode == 2
        assert "DataError: Division by zero" in done.stderr
        assert "1 | SELECT id, 1 / (id - 2) AS x FROM a\n               ^^^^^^^^^^^^\n" in done.stderr
        assert (tmp_path / name).read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_json_needs_names_that_differ(here: Sqlext, data: Path) -> None:
    done = here("run", "--data", data, "-e", "SELECT id, k AS id FROM a", "--format", "json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "two columns of the result are named 'id'" in done.stderr


@pytest.mark.slow
def test_settings_reach_spark_and_the_planner(sqlext: Sqlext, data: Path) -> None:
    sql = "SELECT current_timezone() AS zone FROM a LIMIT 1"
    conf = ("--conf", "spark.sql.session.timeZone=Asia/Tokyo", "--conf", "sqlext.planner.alwaysLower=true")
    done = sqlext("run", "--data", data, "-e", sql, "--format", "csv", *conf)
    assert (done.returncode, done.stdout) == (0, "zone\nAsia/Tokyo\n"), done.stderr


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT 1;\nSELECT nothing OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS 1 PRECEDING)",
            "query:2:",
        ),
        (
            WINDOW.replace("id,", "id, nosuch(ts),"),
            "query:1:12\n1 | SELECT id, nosuch(ts), sum(v) OVER w AS s\n               ^^^^^^^^^^",
        ),
        ("SELECT 1;\nSELECT nothing FROM a", "query:2:8\n2 | SELECT nothing FROM a\n           ^^^^^^^\n"),
        ("SELECT 1;\nSELEC 1", "query:2:1\n2 | SELEC 1\n    ^^^^^\nhelp: did you mean SELECT?"),
        ("SELECT id FROM a FETCH 1", "query:1:24\n1 | SELECT id FROM a FETCH 1\n"),
        ("SELECT raise_error('stop here')", "stop here"),
    ],
    ids=["ours", "a function inside ours", "analysis", "a typo", "syntax", "run time"],
)
def test_a_mistake_in_the_sql_has_no_traceback(here: Sqlext, data: Path, sql: str, words: str) -> None:
    done = here("run", "--data", data, "-e", sql)
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert done.returncode == (1 if "raise_error" in sql else 2)


def test_demo_answers_in_both_ways_and_its_commands_work(here: Sqlext, tmp_path: Path) -> None:
    folder = tmp_path / "my shop"
    done = here("demo", "--rows", "3000", "--data", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("What had each user ordered")
    assert "Both give the same 2,000 rows" in done.stdout
    assert re.search(r"sqlext \d+\.\d\d s, plain Spark \d+\.\d\d s: \d+\.\d times", done.stdout)
    assert done.stdout.index("first 8 rows") < done.stdout.index("WITH both AS") < done.stdout.index("WindowUnionExec")
    (table,) = re.findall(r"─+ *\n(.*?)\n *\n", done.stdout, re.DOTALL)
    assert len({line.split()[0] for line in table.splitlines()}) == 1  # one user
    assert "NULL" not in table
    assert {path.name for path in folder.iterdir()} == {"views.parquet", "orders.parquet", "features.sql"}
    commands = [line for line in done.stdout.splitlines() if line.startswith("sqlext ") and "--data" in line]
    assert len(commands) == 3
    shown = []
    for command in commands:
        words = [word.replace("features.parquet", str(tmp_path / "features.parquet")) for word in shlex.split(command)]
        tried = here(*words[1:])
        assert tried.returncode == 0, tried.stderr
        shown.append(tried.stdout)
    assert re.search(r"^ +WindowUnionExec +2,000 \+ 1,000 +3,000 +2,000 ", shown[0], re.MULTILINE)
    assert pq.read_table(tmp_path / "features.parquet").num_rows == 2_000
    assert "bought_at" in shown[2]


def test_demo_tells_where_answers_differ(tmp_path: Path) -> None:
    table = pa.table({"user_id": [1, 2], "ts": [1, 1], "item": ["a", "a"], "n": [1, None], "x": [0.1, None]})
    close = table.set_column(4, "x", pa.array([0.1 + 1e-12, None]))
    assert differing(table, close.take([1, 0])) == []
    for name, values in (("n", [1, 1]), ("n", [2, None]), ("x", [0.1001, None]), ("x", [0.1, 0.0])):
        other = table.set_column(table.column_names.index(name), name, pa.array(values))
        assert differing(table, other) == [name]
    assert differing(table, table.slice(1)) != []


@pytest.mark.every_spark("command line")
def test_a_plan_with_what_was_measured(here: Sqlext, data: Path) -> None:
    done = here("plan", "--data", data, "-e", WINDOW, "--analyze")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("== physical ==\nOutputExec: id, s\n")
    assert re.search(r"^ +WindowUnionExec +3 \+ 1 +4 +3 ", done.stdout, re.MULTILINE)
    page = json.loads(here("plan", "--data", data, "-e", WINDOW, "--analyze", "--format", "json").stdout)
    assert list(page["stages"]) == ["physical"]
    found = page["measured"]
    assert found["rows"] == 3
    assert [item["place"] for item in found["nodes"]] == list(range(len(found["nodes"])))
    node = next(item for item in found["nodes"] if item["node"] == "WindowUnionExec")
    assert (node["rows_in"], node["moved_rows"], node["rows"]) == ([3, 1], 4, 3)
    assert node["parts"].keys() >= {"sort", "evaluate"}
    assert "WindowUnionExec" in here("plan", "--data", data, "-e", WINDOW, "--analyze", "--format", "html").stdout


def test_what_analyze_needs_is_told(here: Sqlext, data: Path, tmp_path: Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text("{}")
    without = here("plan", "-e", WINDOW, "--analyze")
    both = here("plan", "-e", WINDOW, "--analyze", "--data", data, "--schema", schema)
    drawn = here("plan", "-e", WINDOW, "--analyze", "--data", data, "--format", "dot")
    assert [done.returncode for done in (without, both, drawn)] == [2, 2, 2]
    assert "give its tables with --data" in " ".join(without.stderr.split())
    assert "shows nothing that was measured" in " ".join(drawn.stderr.split())


def test_files_of_any_name_and_layout(here: Sqlext, tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("k;at\n1.5;2020-01-02 08:00:00\n", encoding="utf-8")
    (tmp_path / "twice.csv").write_text("k,K\n1,2\n", encoding="utf-8")
    sql = "SELECT b.k, r.k AS other, hour(b.at) AS h FROM `a b` AS b LAST JOIN `a b` AS r ON b.k = r.k"
    done = here("run", "--data", tmp_path, "-e", sql, "--format", "csv", "--conf", "spark.sql.session.timeZone=UTC")
    assert (done.returncode, done.stdout) == (0, "k,other,h\n1.5,1.5,8\n"), done.stderr
    options = ("--read", "a b.types=k string", "--read", "header=true", "--compat", "openmldb")
    done = here("run", "--data", tmp_path, "-e", sql, "--format", "csv", *options)
    assert (done.returncode, done.stdout) == (0, "k,other,h\n1.5,1.5,8\n"), done.stderr
    done = here("run", "--data", tmp_path, "-e", "SELECT * FROM twice")
    assert done.returncode == 2
    assert "twice.csv' names column 'K' twice" in done.stderr
    done = here("run", "--data", tmp_path, "-e", "SELECT 1", "--read", "colour=red")
    assert done.returncode == 2
    assert "--read colour=red" in done.stderr
