"""`sqlext pecj replay`: the JSON contract, the table, charts, and its messages. Starts no Spark."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from rich.console import Console

from sqlext.cli import _run
from tests.command_line import Sqlext

COLUMNS = ("--key", "key", "--value", "price", "--time", "ts", "--arrival", "seen")
WHEN = ("--window", "10ms", "--emit-after", "7ms")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Options that name two files of 40 windows, with 100 rows each."""
    folder = tmp_path_factory.mktemp("pecj")
    random = np.random.default_rng(2)
    for name in ("left", "right"):
        times = np.sort(random.integers(0, 400_000, 4_000))
        columns = {
            "key": random.integers(0, 9, 4_000),
            "price": np.round(random.normal(1, 9, 4_000), 2),
            "ts": times,
            "seen": times + random.integers(0, 5_000, 4_000),
        }
        pa.csv.write_csv(pa.table(columns), folder / f"{name}.csv")
    return ("--left", str(folder / "left.csv"), "--right", str(folder / "right.csv"))


Here = tuple[int, str, str]


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str], files: tuple[str, ...]) -> object:
    """``replay(*options)``: exit code, output, errors of the command on these files, in this process."""

    def run(*options: str) -> Here:
        capsys.readouterr()
        code = _run(["pecj", "replay", *files, *options])
        return (code, *capsys.readouterr())

    return run


def test_json_contract(sqlext: Sqlext, files: tuple[str, ...]) -> None:
    done = sqlext("pecj", "replay", *files, *COLUMNS, *WHEN, "--aggregate", "sum", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert len(rows) == 40 * 7
    assert {tuple(row) for row in rows} == {
        ("estimator", "window_start", "estimate", "lower", "upper", "exact", "reliable")
    }
    assert [row["estimator"] for row in rows[:7]] == ["none", "ksj", "alf", "svi", "mlp", "coverage", "shrink"]
    assert [row["window_start"] for row in rows[::7]] == [10_000 * number for number in range(40)]
    for row in rows:
        assert row["lower"] <= row["estimate"] <= row["upper"]
    assert not any(row["reliable"] for row in rows[: 5 * 7])


@pytest.mark.slow
def test_json_is_the_same_every_time(sqlext: Sqlext, files: tuple[str, ...]) -> None:
    words = ("pecj", "replay", *files, *COLUMNS, *WHEN, "--aggregate", "sum", "--format", "json")
    assert sqlext(*words).stdout == sqlext(*words).stdout != ""


def test_drawn_delays_follow_the_seed(replay: object) -> None:
    drawn = ("--key", "key", "--rate", "100000", "--delay", "uniform:5ms", *WHEN, "--format", "json")

    def answers(*options: str) -> str:
        code, out, errors = replay(*drawn, "--estimators", "shrink", *options)  # type: ignore[operator]
        assert (code, errors) == (0, "")
        return str(out)

    assert answers() == answers("--seed", "0")
    assert answers("--seed", "3") == answers("--seed", "3")
    assert answers("--seed", "3") != answers("--seed", "4")


def test_table_and_chart(replay: object, tmp_path: Path) -> None:
    chart = tmp_path / "new" / "errors.svg"
    options = (*COLUMNS, "--window", "10ms", "--emit-after", "7ms,10ms", "--warm-up", "10", "--chart", str(chart))
    code, out, errors = replay(*options)  # type: ignore[operator]
    assert (code, errors) == (0, "")
    assert out.count("COUNT over windows of 10 ms, answered") == 2
    assert re.search(r"^ *shrink +0\.\d{3} +0\.\d{3} +[+-]0\.\d{3} +\d+/30 +0\.\d{3} +\d+/30", out, re.MULTILINE)
    assert "the exact one comes" in out
    assert chart.read_text().startswith("<?xml")
    assert "matplotlib" in sys.modules
    one = tmp_path / "windows.png"
    assert replay(*COLUMNS, *WHEN, "--chart", str(one))[0] == 0  # type: ignore[operator]
    assert one.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_for_terminals(replay: object, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr("sqlext.cli.pecj_replay.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(
        "sqlext.cli.pecj_replay.Console", lambda stderr: Console(stderr=stderr, force_terminal=terminal)
    )
    code, out, errors = replay(*COLUMNS, *WHEN, "--estimators", "shrink", "--format", "json")  # type: ignore[operator]
    assert code == 0
    assert len(json.loads(out)) == 40
    assert ("windows" in errors) == terminal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*COLUMNS, *WHEN, "--estimators", "shrik"), "--estimators: there is no 'shrik'\nhelp: did you mean 'shrink'?"),
        ((*COLUMNS, *WHEN, "--confidence", "1.5"), "--confidence 1.5 is not between 0 and 1"),
        ((*COLUMNS, "--window", "10ms", "--emit-after", "99ms"), "--emit-after 99 ms is too late"),
        ((*COLUMNS, "--window", "10ms", "--emit-after", "0ms"), "--emit-after 0ms: give a duration above 0"),
        ((*COLUMNS, "--window", "ten", "--emit-after", "1ms"), "--window ten: not a duration"),
        ((*COLUMNS, *WHEN, "--chart", "x.bmp2"), "cannot draw x.bmp2"),
        (("--key", "kee", *COLUMNS[2:], *WHEN), "has no column 'kee'\nhelp: did you mean 'key'?"),
        (("--key", "key", "--delay", "uniform:1ms", *WHEN), "nothing says the times of the rows"),
        ((*COLUMNS, *WHEN, "--aggregate", "median"), "Invalid value for '--aggregate'"),
        (COLUMNS, "Missing option '--window'"),
    ],
)
def test_messages(replay: object, options: tuple[str, ...], message: str) -> None:
    code, out, errors = replay(*options)  # type: ignore[operator]
    assert (code, out) == (2, "")
    assert message in errors
    assert "Traceback" not in errors


def test_help_shows_examples(sqlext: Sqlext) -> None:
    page = sqlext("pecj", "replay", "--help", env={"COLUMNS": "160", "PATH": "/nonexistent"}).stdout
    for word in ("Examples", "--emit-after", "shrink", "uniform:TIME", "--warm-up"):
        assert word in page
    assert "replay" in sqlext("pecj", env={"PATH": "/nonexistent"}).stdout
