"""`sqlext tpch` and `sqlext tpcds`, as people run them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlext.tpc import BENCHMARKS
from tests.cli.test_plan import WITHOUT_JAVA, check_tree
from tests.command_line import Sqlext

Tables = Callable[[str], Path]


def test_plan_needs_no_java_and_no_data(sqlext: Sqlext) -> None:
    done = sqlext("tpch", "plan", "--format", "json", env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    page = json.loads(done.stdout)
    assert list(page) == ["benchmark", "queries"]
    assert page["benchmark"] == "tpch"
    assert list(page["queries"]) == [str(number) for number in range(1, 23)]
    for number, query in page["queries"].items():
        assert list(query) == ["sql", "stages", "umjoins", "extensions"]
        assert query["sql"] == BENCHMARKS["tpch"].query(int(number))
        for tree in query["stages"].values():
            check_tree(tree)
    assert len(page["queries"]["5"]["umjoins"][0]["inputs"]) >= 6


def test_plan_of_some_queries_to_a_file(sqlext: Sqlext, tmp_path: Path) -> None:
    out = tmp_path / "plans.txt"
    done = sqlext("tpcds", "plan", "--queries", "3,52-53", "-o", out, env=WITHOUT_JAVA)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    headings = [line for line in out.read_text().splitlines() if line.startswith("====")]
    assert headings == [f"==== TPC-DS query {number} ====" for number in (3, 52, 53)]


def test_plan_over_data(sqlext: Sqlext, tables: Tables) -> None:
    done = sqlext("tpch", "plan", "--queries", "5", "--data", tables("tpch"), "--format", "json", env=WITHOUT_JAVA)
    assert (done.returncode, done.stderr) == (0, "")
    (group,) = json.loads(done.stdout)["queries"]["5"]["umjoins"]
    assert len(group["inputs"]) >= 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tpch", "plan", "--queries", "23"), "TPC-H has no query 23"),
        (("tpcds", "plan", "--queries", "0"), "TPC-DS has no query 0"),
        (("tpch", "plan", "--queries", "two"), "write numbers as in 3,5 or 1-9"),
        (("tpch", "plan", "--queries", "5-3"), "names no query"),
        (("tpch", "plan", "--conf", "spark.a=b"), "`plan` starts no Spark"),
        (("tpch", "generate", "--scale", "-1"), "give a number above 0"),
        (("tpch", "run", "--data", "nowhere"), "folder 'nowhere' does not exist"),
        (("tpch", "run", "--data", "."), "lacks tables of TPC-H: customer, lineitem"),
    ],
)
def test_mistakes(sqlext: Sqlext, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    done = sqlext(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_generate_to_the_cache_says_what_is_there(sqlext: Sqlext, tmp_path: Path) -> None:
    import os

    pytest.importorskip("duckdb_extension_tpch")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    folder = tmp_path / "sqlext" / "tpch-0.001"
    first = sqlext("tpch", "generate", "--scale", "0.001", env=env)
    assert (first.returncode, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(BENCHMARKS["tpch"].tables)
    assert lines[-1].startswith(f"{folder} contains TPC-H at scale 0.001")
    second = sqlext("tpch", "generate", "--scale", "0.001", env=env)
    assert (second.returncode, second.stdout) == (0, f"{folder} already contains TPC-H at scale 0.001\n")


@pytest.mark.spark
def test_run_and_check(here: Sqlext, tables: Tables, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    conf = ("--conf", "sqlext.planner.alwaysLower=true", "--conf", "spark.sql.shuffle.partitions=2")
    done = here("tpch", "run", "--queries", "3,6,22", "--data", tables("tpch"), "--check", *conf, "--json", out)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["q03", "q06", "q22", "3"]
    assert all(line.endswith("same") for line in lines[:3])
    page = json.loads(out.read_text())
    assert (page["passed"], page["check"], len(page["queries"])) == (True, True, 3)


@pytest.mark.slow
@pytest.mark.parametrize("lower", ["false", "true"])
@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_query_against_spark(name: str, lower: str, sqlext: Sqlext, tables: Tables) -> None:
    done = sqlext(
        name, "run", "--data", tables(name), "--check", "--conf", f"sqlext.planner.alwaysLower={lower}", timeout=3600
    )
    assert done.returncode == 0, done.stdout + done.stderr
