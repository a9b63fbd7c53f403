"""Odd files, terminals, streams and signals: one paragraph and a code, nothing that hangs or reaches a terminal raw."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from sqlext_planner.errors import AnalysisError, Span, SqlExtError

from sqlext.cli import _run, terminal
from sqlext.cli.destinations import byte_sink, replacing, write_pieces
from sqlext.cli.failures import report
from sqlext.cli.terminal import console, json_visible, print_rows, visible
from tests.cli.conftest import ROOT, WINDOW
from tests.command_line import Sqlext

EVIL = "a\x1b[31mred\x1b]0;title\x07\u202ebidi\x9b2J\x7f"


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command in this process says on stderr when it exits with 2."""
    code = _run([str(item) for item in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert "Traceback" not in err
    return err


# --- files


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "good.parquet")
    return tmp_path


def make(kind: str, path: Path) -> None:
    match kind:
        case "a named pipe":
            os.mkfifo(path)
        case "a socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "a device":
            path.symlink_to("/dev/zero")
        case "a broken link":
            path.symlink_to(path.with_name("gone"))
        case "a broken link (Too many levels":
            path.symlink_to(path.name)


KINDS = ["a named pipe", "a socket", "a device", "a broken link", "a broken link (Too many levels"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["odd.csv", "odd.parquet", "odd/part.parquet"])
def test_what_is_no_file_is_not_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, table: Path, kind: str, place: str
) -> None:
    monkeypatch.chdir(table)  # a socket's path must be short
    (table / place).parent.mkdir(exist_ok=True)
    make(kind, Path(place))
    shown = refused(capsys, "plan", "--data", table, "-e", "SELECT * FROM odd")
    assert kind in shown
    assert place in shown
    assert "help: " in shown
    assert _run(["plan", "--data", str(table), "-e", "SELECT * FROM good"]) == 0


@pytest.mark.parametrize("kind", ["a named pipe", "a device", "a file", "a broken link"])
def test_a_data_folder_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    if kind == "a file":
        (tmp_path / "odd").write_text("")
    else:
        make(kind, tmp_path / "odd")
    assert f"odd' is {kind}" in refused(capsys, "plan", "--data", tmp_path / "odd", "-e", "SELECT 1 AS x")


def test_folders_without_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "contains no data files" in refused(capsys, "plan", "--data", tmp_path, "-e", "SELECT 1 AS x")
    (tmp_path / "t.txt").write_text("x\n1\n")
    assert "contains no data files" in refused(capsys, "plan", "--data", tmp_path, "-e", "SELECT 1 AS x")
    refused(capsys, "plan", "--data", "n" * 5000, "-e", "SELECT 1 AS x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"t": ' * 100_000, "nested too deeply"),
        ("9" * 5000, "is not JSON"),
        ('{"t": {"x": 1}}', "is not a schema"),
        ('{"t": {"x": "' + "array<" * 5000 + "int" + ">" * 5000 + '"}}', "nest at most 100 deep"),
        ('{"t": {"x": "' + "array<" * 5000 + '"}}', "nest at most 100 deep"),
        ('{"t": {"x": "decimal(' + "9" * 5000 + ')"}}', "has no Spark type"),
        ('{"t": {"x": "int", "X": "int"}}', "names 'X' twice"),
        ('{"t": {"x": "int"}, "T": {"x": "int"}}', "names 'T' twice"),
        ("\ufeff", "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_odd_schemas(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text, encoding="utf-8")
    shown = refused(capsys, "plan", "--schema", path, "-e", "SELECT * FROM t")
    assert words in shown
    assert str(path) in shown or "column 'x' of table 't'" in shown


def test_wide_types_are_not_deep(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fields = ",".join(f"f{number}:array<int>" for number in range(500))
    (tmp_path / "s.json").write_text(json.dumps({"t": {"x": f"struct<{fields}>"}}))
    assert _run(["plan", "--schema", str(tmp_path / "s.json"), "-e", "SELECT x FROM t"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("x" * 200_000, "field larger than field limit"),
        ("x" * (17 << 20), "more than 16 MB"),
        (",".join(["x"] * 200_000), "names column 'x' twice"),
        ("x\x00y", ""),
        ('"x', ""),
    ],
    ids=["a field", "a line", "many columns", "a zero byte", "an open quote"],
)
def test_odd_headers(capsys: pytest.CaptureFixture[str], tmp_path: Path, header: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(header + "\n")
    start = time.perf_counter()
    code = _run(["plan", "--data", str(tmp_path), "-e", "SELECT 1 AS y FROM t"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert code in (0, 2)
    assert words in err
    assert "\x00" not in out + err
    assert time.perf_counter() - start < 60


def test_output_that_cannot_be_written(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    for target in (table, table / "no" / "file", "/dev/full", "/proc/none"):
        shown = refused(capsys, "plan", "--data", table, "-e", "SELECT x FROM good", "-o", target)
        assert str(target) in shown


# --- terminals


def test_control_characters_are_shown_as_escapes() -> None:
    assert visible(EVIL) == r"a\x1b[31mred\x1b]0;title\x07\u202ebidi\x9b2J\x7f"
    assert visible("ä\t日本\n👩‍👩‍👧") == "ä\t日本\n👩‍👩‍👧"
    assert json.loads(json_visible(json.dumps({EVIL: EVIL}, ensure_ascii=False))) == {EVIL: EVIL}


def raw(text: str) -> list[str]:
    """The characters of a text that no terminal should get."""
    return [c for c in text if c != visible(c)]


@pytest.mark.parametrize("format", ["text", "json", "mermaid", "dot", "html"])
def test_plans_show_no_control_characters(capsys: pytest.CaptureFixture[str], tmp_path: Path, format: str) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"t": {EVIL: "int"}}))
    sql = f"SELECT `{EVIL}` AS `x{EVIL}`, '{EVIL}' AS s FROM t"
    assert _run(["plan", "--schema", str(tmp_path / "s.json"), "-e", sql, "--format", format]) == 0
    out, err = capsys.readouterr()
    assert raw(out + err) == []
    if format == "json":
        assert json.loads(out)["sql"] == sql


def test_errors_show_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    sql = f"SELECT '{EVIL}', `{EVIL}` FROM a"
    start = sql.index("`")
    error = AnalysisError(
        f"column '{EVIL}' not found",
        condition="unknown-column",
        span=Span(start, start + len(EVIL) + 2),
        help=EVIL,
        sql=sql,
    )
    assert report(error) == 2
    shown = capsys.readouterr().err
    assert raw(shown) == []
    line, carets = shown.splitlines()[2:4]
    assert line.index("`a?") == carets.index("^")  # a character of the text is one of the excerpt
    assert report(ValueError(EVIL)) == 1
    assert raw(capsys.readouterr().err) == []


def test_rows_show_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.table({EVIL: [EVIL, None]})
    print_rows(console(), rows)
    assert raw(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        pytest.param({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, marks=pytest.mark.slow),
    ],
)
def test_ascii_terminals(process: Sqlext, tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"t": {"größe": "int"}}))
    env = {**os.environ, **environment}
    done = process("plan", "--schema", tmp_path / "s.json", "-e", "SELECT `größe` AS `日本` FROM t", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    done = process("plan", "--schema", tmp_path / "s.json", "-e", "SELECT sum(`größ`) OVER w FROM t", env=env)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = process("plan", "--help", env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_excerpts_fit_the_screen() -> None:
    sql = "SELECT " + "x, " * 100 + "wrong" + ", x" * 100
    error = SqlExtError("no", condition="wrong-type", span=Span(sql.index("wrong"), sql.index("wrong") + 5), sql=sql)
    for width in (40, 80, 120):
        line, carets = error.text(width).splitlines()[2:4]
        assert len(line) <= width
        assert line[carets.index("^") : carets.index("^") + 5] == "wrong"
        assert carets.count("^") == 5
    wide = "SELECT '日本', wrong"
    line, carets = SqlExtError("no", condition="wrong-type", span=Span(13, 18), sql=wide).text().splitlines()[2:4]
    assert carets.index("^") == line.index("wrong") + 2  # two letters of two columns


MERMAID = (
    '%%{init: {"theme": "x"}}%% end click n0 "x" [y](z) #quot; <b>; | { } \\ ` subgraph\nclick n0 href "javascript:0"'
)


def test_mermaid_takes_nothing_of_the_users(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = {
        line if i else line.replace("`", ""): "int" for i, line in enumerate(["k", "end", MERMAID.replace("`", "")])
    }
    (tmp_path / "s.json").write_text(json.dumps({"t": names}))
    columns = ", ".join(f"`{name}`" for name in names)
    sql = f"SELECT {columns}, '{MERMAID}' AS text FROM t"
    for stage in ("parsed", "analyzed", "physical"):
        command = ["plan", "--schema", str(tmp_path / "s.json"), "-e", sql, "--format", "mermaid", "--stage", stage]
        assert _run(command) == 0
        first, *lines = capsys.readouterr().out.splitlines()
        assert first == "flowchart BT"
        for line in lines:
            name, opening, rest = line.partition('["')
            if not opening:
                assert line.split("-->")[0].strip().lstrip("n").isdigit()
                continue
            assert name.strip().lstrip("n").isdigit()
            assert rest.endswith('"]')
            label = rest.removesuffix('"]').replace("<br/>", " ")
            assert not set(label) & set('%{}[]"<>|\\`')
            assert all(code.split(";")[0].isalnum() for code in label.split("#")[1:])


# --- streams


@pytest.mark.parametrize(
    ("shell", "code"),
    [
        ("COMMAND | true; exit ${PIPESTATUS[0]}", (0, 141)),
        pytest.param("COMMAND >&-", (0,), marks=pytest.mark.slow),
        ("COMMAND >&- 2>&- <&-", (0,)),
        ("COMMAND >/dev/full", (1,)),
        pytest.param("UNASKED - <&-", (2,), marks=pytest.mark.slow),
    ],
)
def test_an_output_that_nobody_reads(data: Path, shell: str, code: tuple[int, ...]) -> None:
    unasked = f"{sys.executable} -m sqlext plan --data {data} --format html"
    shell = shell.replace("COMMAND", f"{unasked} -e 'SELECT * FROM a'").replace("UNASKED", unasked)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))}
    done = subprocess.run(["bash", "-c", shell], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if code[0] == 0:
        assert done.stderr == ""


# --- signals

WAITS = """
import signal, sys, time
# a test run behind `nohup` or `&` hands down that they are ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from sqlext.cli import main
import sqlext.cli.plan as plan
import tempfile

def waits(*arguments, **options):
    with tempfile.TemporaryDirectory(prefix="sqlext-probe-"):
        print("ready", flush=True)
        time.sleep(60)

plan.run_plan = waits
main(["plan", "-e", "SELECT 1"])
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.slow)])
def test_a_signal_leaves_no_folders(tmp_path: Path, name: str) -> None:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert [item.name[:13] for item in tmp_path.iterdir()] == ["sqlext-probe-"]
        number = getattr(signal, name)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err == "stopped\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("when", ["starting", "running"])
def test_a_signal_ends_the_embedded_spark(tmp_path: Path, data: Path, when: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)}
    sql = WINDOW.replace("FROM a", "FROM (SELECT x.* FROM a x, range(100000) y, range(100000) z)")
    with subprocess.Popen(
        [sys.executable, "-m", "sqlext", "run", "--data", data, "-e", sql],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 200
        mark = "bin/java" if when == "starting" else "local/blockmgr-*"
        while not list(temporary.glob(f"sqlext-spark-*/{mark}")) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1 if when == "starting" else 20)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert list(temporary.iterdir()) == []


# --- results


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "out.foo"), "the suffix '.foo' does not tell the format"),
        (("-o", "out"), "a name without a suffix does not tell the format"),
        (("-o", "out.parquet", "--format", "csv"), "--format csv contradicts the suffix"),
        (("--format", "parquet"), "add -o OUT.parquet"),
        (("-o", "nosuch/out.csv"), "nosuch/out.csv: No such file or directory"),
        (("-o", "nosuch/out.parquet"), "nosuch/out.parquet: No such file or directory"),
        (("-o", "folder.csv"), "folder.csv: Is a directory"),
    ],
)
def test_an_output_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.setattr("sqlext.cli.run.open_session", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert words in refused(capsys, "run", "-e", "SELECT 1", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_a_file_is_replaced_by_a_whole_one_or_not_at_all(tmp_path: Path) -> None:
    out, link = tmp_path / "out.csv", tmp_path / "link.csv"
    out.write_bytes(b"before")
    out.chmod(0o640)
    link.symlink_to(out)

    def half_way() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"), byte_sink(link) as sink:
        write_pieces(half_way(), sink)
    assert out.read_bytes() == b"before"
    with byte_sink(link) as sink:
        sink.write(b"after")
    assert (out.read_bytes(), link.is_symlink(), out.stat().st_mode & 0o777) == (b"after", True, 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "out.csv"]
    with pytest.raises(OSError, match="No space left") as caught, replacing(Path("/dev/full")) as path:
        path.write_bytes(b"x")
    assert caught.value.filename == "/dev/full"


def test_sql_comes_from_a_pipe_or_the_user_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 1 AS one"), encoding="utf-8"))
    assert _run(["plan"]) == 0
    assert "1 AS one" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert "through a pipe" in refused(capsys, "plan")
    assert "either as a FILE" in refused(capsys, "plan", "-e", "SELECT 1", "file.sql")


def test_stages_are_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0)
    info = SimpleNamespace(numTasks=8, numCompletedTasks=3)
    tracker = SimpleNamespace(getActiveStageIds=lambda: [7], getStageInfo=lambda stage: info)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    for is_terminal in (True, False):
        page = io.StringIO()
        with terminal.StageProgress(spark, Console(file=page, force_terminal=is_terminal, width=100)):
            deadline = time.monotonic() + 10
            while is_terminal and "3/8 tasks" not in page.getvalue() and time.monotonic() < deadline:
                time.sleep(0.05)
        assert ("Stage 7" in page.getvalue()) == is_terminal
        assert ("3/8 tasks" in page.getvalue()) == is_terminal


@pytest.mark.slow
def test_head_ends_an_endless_run(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    command = f"{sys.executable} -m sqlext run -e 'SELECT id FROM range(1000000000000000)' --format csv"
    shell = f"{command} | head -2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], env=env, capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (141, "id\n0\n", "")
    assert list(tmp_path.iterdir()) == []
