"""Runs and checks without Spark: two engines that answer as they are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sqlext.cli import tpc_commands
from sqlext.tpc import BENCHMARKS, runner

TPCH = BENCHMARKS["tpch"]


@dataclass
class Frame:
    """What the runner asks of a DataFrame."""

    rows: list[tuple[Any, ...]]
    columns: tuple[str, ...] = ("n_name bigint", "revenue bigint")

    @property
    def schema(self) -> Any:
        pairs = [column.split() for column in self.columns]
        kinds = [
            SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=lambda k=kind: k)) for name, kind in pairs
        ]
        return SimpleNamespace(fields=kinds)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        values = [pa.array([row[place] for row in self.rows], pa.int64()) for place in range(len(self.columns))]
        return pa.table(values, names=[column.split()[0] for column in self.columns])


@dataclass
class Engine:
    """A Session whose answers, and Spark's, are given; counts what each was asked."""

    ours: Callable[[str], Frame]
    theirs: Callable[[str], Frame]
    asked: list[str] = field(default_factory=list)

    def sql(self, text: str) -> Frame:
        self.asked.append("ours")
        return self.ours(text)

    @property
    def spark(self) -> Any:
        def sql(text: str) -> Frame:
            self.asked.append("whole" if "LIMIT" not in text else "Spark")
            return self.theirs(text)

        return SimpleNamespace(sql=sql, stop=lambda: self.asked.append("stop"))


def outcome(ours: Frame, theirs: Frame, number: int = 5) -> runner.Outcome:
    (found,) = runner.run(Engine(lambda _: ours, lambda _: theirs), TPCH, [number], lambda *_: None, check=True)  # type: ignore[arg-type]
    return found


def test_same_answers() -> None:
    found = outcome(Frame([(1, 9), (2, 5)]), Frame([(1, 9), (2, 5)]))
    assert (found.verdict, found.rows, found.detail, found.passed) == ("same", 2, "", True)
    assert found.seconds is not None
    assert found.spark_seconds is not None


def test_ties_are_the_same_and_a_wrong_order_is_not() -> None:
    """Query 5 is ordered by revenue DESC."""
    assert outcome(Frame([(2, 9), (1, 9)]), Frame([(1, 9), (2, 9)])).verdict == "same"
    found = outcome(Frame([(2, 5), (1, 9)]), Frame([(1, 9), (2, 5)]))
    assert (found.verdict, found.detail) == ("differs", "row 2 comes too late in the order: (1, 9)")


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        (("n_name bigint", "revenue int"), "column revenue int instead of revenue bigint"),
        (("n_name bigint", "Revenue bigint"), "column Revenue bigint instead of revenue bigint"),
        (("n_name bigint",), "1 columns instead of 2"),
    ],
)
def test_columns_are_compared(columns: tuple[str, ...], detail: str) -> None:
    found = outcome(Frame([(1, 9)], columns), Frame([(1, 9)]))
    assert (found.verdict, found.detail) == ("differs", detail)


def test_an_error_is_told_and_ends_nothing() -> None:
    def fail(text: str) -> Frame:
        raise ValueError("\n no such thing\n at line 1")

    engine = Engine(fail, lambda _: Frame([(1, 9)]))
    found = list(runner.run(engine, TPCH, [5, 6], lambda *_: None, check=True))  # type: ignore[arg-type]
    assert [(one.verdict, one.detail, one.passed) for one in found] == [
        ("failed", "ValueError: no such thing", False)
    ] * 2
    engine = Engine(lambda _: Frame([(1, 9)]), fail)
    (found_,) = runner.run(engine, TPCH, [5], lambda *_: None, check=True)  # type: ignore[arg-type]
    assert (found_.verdict, found_.detail) == ("failed", "plain Spark: ValueError: no such thing")


def test_who_is_first_alternates() -> None:
    engine = Engine(lambda _: Frame([]), lambda _: Frame([]))
    list(runner.run(engine, TPCH, [3, 10, 18], lambda *_: None, check=True))  # type: ignore[arg-type]
    assert engine.asked == ["ours", "Spark", "Spark", "ours", "ours", "Spark"]


def test_without_check_only_ours_runs() -> None:
    engine = Engine(lambda _: Frame([(1, 9)]), lambda _: Frame([]))
    (found,) = runner.run(engine, TPCH, [5], lambda *_: None, check=False)  # type: ignore[arg-type]
    assert (engine.asked, found.verdict, found.rows, found.spark_seconds) == (["ours"], "ran", 1, None)


def test_limit_runs_the_whole_query_only_where_it_decides() -> None:
    """Query 10 has LIMIT 20 and is ordered by its third column, revenue."""
    columns = tuple(f"{name} bigint" for name in ("a", "b", "revenue", "c", "d", "e", "f", "g"))

    def rows(*names: int) -> Frame:
        return Frame([(name, 0, 100 - min(name, 19), 0, 0, 0, 0, 0) for name in names], columns)

    def engine(*ours: int) -> Engine:
        return Engine(lambda _: rows(*ours), lambda text: rows(*range(20 if "LIMIT" in text else 25)))

    def verdict(asked: Engine) -> tuple[str, list[str]]:
        (found,) = runner.run(asked, TPCH, [10], lambda *_: None, check=True)  # type: ignore[arg-type]
        return found.verdict, asked.asked

    assert verdict(engine(*range(20))) == ("same", ["ours", "Spark"])
    assert verdict(engine(*range(19), 23)) == ("same", ["ours", "Spark", "whole"])
    assert verdict(engine(*range(19), 25)) == ("differs", ["ours", "Spark", "whole"])
    assert verdict(engine(*range(18), 19, 20)) == ("differs", ["ours", "Spark", "whole"])


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a query, a summary, the file, and 1 for any difference."""
    opened: list[Mapping[str, str]] = []
    for table in TPCH.tables:
        (tmp_path / f"{table}.csv").write_text("a\n1\n")

    def open_session(tables: Mapping[str, Path], settings: Mapping[str, str]) -> Engine:
        assert set(tables) == set(TPCH.tables)
        opened.append(settings)
        return Engine(lambda text: Frame([(1, 9 if "nation n1" in text else 8)]), lambda _: Frame([(1, 9)]))

    monkeypatch.setattr(runner, "open_session", open_session)
    out = tmp_path / "out.json"
    conf = ["sqlext.planner.alwaysLower=true", "spark.sql.shuffle.partitions=2"]
    assert tpc_commands.run_queries("tpch", "7-8", None, tmp_path, True, conf, out) == 0
    assert opened == [{"sqlext.planner.alwaysLower": "true", "spark.sql.shuffle.partitions": "2"}]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["q07", "q08", "2"]
    assert lines[0].endswith("same")
    assert lines[2].startswith("2 of 2 the same; ours ")
    assert json.loads(out.read_text())["passed"] is True

    assert tpc_commands.run_queries("tpch", "5,8", None, tmp_path, True, conf, out) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("differs: row 1: (1, 8) is not among the expected rows")
    assert lines[2].startswith("1 of 2 the same")
    page = json.loads(out.read_text())
    assert page["passed"] is False
    assert [(query["query"], query["verdict"]) for query in page["queries"]] == [(5, "differs"), (8, "same")]
