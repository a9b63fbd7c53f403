"""What a notebook shows: the magics, and plans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from pyspark.sql import DataFrame, SparkSession

from sqlext import Session

TEXT = """SELECT k, sum(v) OVER w AS total FROM {rows}
WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) ORDER BY total"""


@pytest.fixture
def shell(spark: SparkSession) -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sqlext")
    shell.user_ns["spark"] = spark
    shell.user_ns["rows"] = spark.createDataFrame([("a", n, n) for n in range(30)], "k string, ts int, v int")
    yield shell
    shell.reset()
    InteractiveShell.clear_instance()


@pytest.mark.every_spark("notebooks")
def test_a_cell_shows_rows_and_keeps_the_frame(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        shell.run_cell(f"%%sqlext -o features -n 2\n{TEXT}").raise_error()
    assert "total" in shown.outputs[0].data["text/html"]
    assert "the first 2 rows" in shown.stdout
    kept = shell.user_ns["features"]
    assert isinstance(kept, DataFrame)
    assert kept.count() == 30


def test_a_line_with_options_and_a_plan(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        shell.run_cell("%sqlext -n 1 SELECT 1 AS one, '-n 2' AS text").raise_error()
        shell.run_cell(f"%%sqlext --plan\n{TEXT}").raise_error()
    assert "-n 2" in shown.outputs[0].data["text/plain"]
    assert "WindowUnion" in shown.outputs[1].data["text/plain"]
    assert shown.outputs[1].data["text/html"].startswith('<div class="sqlext-plan compact">')


def test_plans_over_frames_are_printed_later(shell: InteractiveShell) -> None:
    """What they say of a frame's view was asked while there was one."""
    session = Session(shell.user_ns["spark"])
    plans = [ask(TEXT, rows=shell.user_ns["rows"]) for ask in (session.plan, session.analyze)]
    assert all("read by: Spark, since" in str(plan) for plan in plans)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (f"%%sqlext\n{TEXT.replace('sum(v)', 'sum(vv)')}", "column 'vv' not found"),
        ("%%sqlext\nSELEC 1", "PARSE_SYNTAX_ERROR"),
        ("%%sqlext SELECT 1\nSELECT 2", "takes the statement in the lines below"),
        ("%sqlext -n 3", "needs a statement"),
        ("%sqlext --compat mysql SELECT 1", "invalid choice"),
    ],
)
def test_mistakes_fail_the_cell_without_a_traceback(shell: InteractiveShell, cell: str, said: str) -> None:
    with capture_output() as shown:
        assert not shell.run_cell(cell).success
    assert said in shown.stdout + shown.stderr
    assert "notebook.py" not in shown.stdout + shown.stderr


def test_the_notebook_gets_another_spark(shell: InteractiveShell, spark: SparkSession) -> None:
    shell.run_cell("%sqlext -o first -n 0 SELECT 1 AS one").raise_error()
    shell.user_ns["spark"] = other = spark.newSession()
    shell.run_cell("%sqlext -o second -n 0 SELECT 1 AS one").raise_error()
    assert shell.user_ns["first"].sparkSession is spark
    assert shell.user_ns["second"].sparkSession is other


def test_a_plan_is_readable(session: Session) -> None:
    plan = session.plan(TEXT.replace("{rows}", "VALUES ('<b>', 2, 3) AS t(k, ts, v)"))
    assert str(plan) == repr(plan)
    assert str(plan).startswith("== optimized ==\nOutput: k, total\n  Sort:")
    assert "== physical ==" in str(plan)
    assert len(str(plan)) < 2000
    assert "&lt;b&gt;" in plan._repr_html_()
    assert "<b>'" not in plan._repr_html_()
    assert "spark.sql as it is" in str(session.plan("SELECT 1"))
    assert repr(session) == f"Session(Spark {session.spark.version})"
