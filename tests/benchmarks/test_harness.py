"""The harness with contestants made for it: what is timed, what is refused, what is written."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from sqlext_planner.errors import ConfigurationError

from benchmarks import Answer, Case, Check, Contestant, Limits, Report, Suite, run
from benchmarks.harness.chart import write_chart
from benchmarks.harness.report import markdown, print_report, read_json, write_json


@dataclass
class Fake(Contestant):
    name: str
    rows: int = 10
    total: float = 1.0
    seconds: float = 0.0
    error: str | None = None
    log: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def prepare(self, case: Case) -> None:
        self.log.append("prepare")
        self.stopped.clear()

    def run(self, case: Case) -> None:
        self.log.append("run")
        if self.stopped.wait(self.seconds):
            raise RuntimeError("interrupted")
        if self.error is not None:
            raise RuntimeError(self.error)

    def answer(self, case: Case) -> Answer:
        return Answer(self.rows, {"sum": self.total, "count": 3})

    def interrupt(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.log.append("close")


def suite(*contestants: Fake, checks: tuple[Callable[[Report], list[Check]], ...] = ()) -> Suite:
    cases = (Case("small", 1.0, {"rows": 1}), Case("large", 10.0, {"rows": 10}))
    return Suite("fake", "A fake suite", {"seed": 1}, cases, contestants, "ours", "rows", checks)


def quiet() -> Console:
    return Console(file=StringIO())


def test_one_warm_up_then_medians_in_turn() -> None:
    ours, peer = Fake("ours", seconds=0.01), Fake("peer", seconds=0.03)
    report = run(suite(ours, peer), Limits(repeat=3), console=quiet())
    assert ours.log == peer.log == ["prepare", "run"] * 8 + ["close"]
    for result in report.cases:
        assert [len(m.runs) for m in result.measurements] == [3, 3]
        assert result.measurements[0].warmup is not None
        ratio = report.ratio(result, "peer")
        assert ratio is not None
        assert 1.5 < ratio < 4
    assert report.answers_agree


def test_what_was_measured_survives_a_run_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"

    def keep(report: Report) -> None:
        write_json(report, path)
        raise KeyboardInterrupt

    ours = Fake("ours")
    found = suite(ours, checks=(lambda report: [Check("cases", passed=True, detail=str(len(report.cases)))],))
    with pytest.raises(KeyboardInterrupt):
        run(found, Limits(1), quiet(), keep)
    stored = read_json(path)
    assert [result.case.name for result in stored.cases] == ["small"]
    assert [check.detail for check in stored.checks] == ["1"]
    assert ours.log[-1] == "close"


def test_a_case_may_ask_for_more_warm_ups_and_runs() -> None:
    ours, peer = Fake("ours"), Fake("peer")
    close = Case("close", 1.0, {}, warm_ups=4, least_runs=5)
    report = run(replace(suite(ours, peer), cases=(close,)), Limits(repeat=2), console=quiet())
    assert ours.log == peer.log == ["prepare", "run"] * 9 + ["close"]
    assert [len(m.runs) for m in report.cases[0].measurements] == [5, 5]


def test_long_runs_are_not_repeated_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.runner.BRIEF_SECONDS", 0.02)
    ours, peer = Fake("ours"), Fake("peer", seconds=0.03)
    close = Case("close", 1.0, {}, warm_ups=4, least_runs=5)
    report = run(replace(suite(ours, peer), cases=(close,)), Limits(repeat=2), console=quiet())
    assert [len(m.runs) for m in report.cases[0].measurements] == [5, 2]
    assert peer.log == ["prepare", "run"] * 3 + ["close"]


@pytest.mark.parametrize(
    ("peer", "status", "message"),
    [
        (Fake("peer", rows=11), "wrong", "10 rows instead of 11 (reference: peer)"),
        (Fake("peer", total=1.001), "wrong", "sum is 1.0 instead of 1.001 (reference: peer)"),
        (Fake("peer", total=1.0 + 1e-12), "ok", None),
    ],
)
def test_ours_is_held_against_the_first_peer(peer: Fake, status: str, message: str | None) -> None:
    report = run(suite(Fake("ours"), peer), Limits(repeat=1), console=quiet())
    ours = report.cases[0].measurements[0]
    assert (ours.status, ours.message) == (status, message)
    assert (ours.seconds is None) == (status == "wrong")
    assert report.answers_agree == (status == "ok")


def test_a_contestant_that_fails_is_recorded_and_not_repeated() -> None:
    broken = Fake("broken", error="no memory")
    report = run(suite(Fake("ours"), broken), Limits(repeat=2), console=quiet())
    result = report.cases[0].measurements[1]
    assert (result.status, result.message, result.runs) == ("failed", "RuntimeError: no memory", [])
    assert broken.log == ["prepare", "run"] * 2 + ["close"]
    assert report.cases[0].measurements[0].status == "ok"
    assert not report.answers_agree


def test_the_cap_makes_the_warm_up_the_measurement() -> None:
    slow = Fake("slow", seconds=0.05)
    report = run(suite(Fake("ours"), slow), Limits(repeat=3, cap_seconds=0.02), console=quiet())
    measured = report.cases[0].measurements[1]
    assert measured.status == "capped"
    assert measured.warmup is not None
    assert measured.seconds == measured.warmup.seconds >= 0.05
    assert slow.log.count("run") == 2


def test_a_run_over_the_limit_is_interrupted_and_its_time_is_a_lower_bound() -> None:
    endless = Fake("endless", seconds=30)
    report = run(suite(Fake("ours", seconds=0.01), endless), Limits(repeat=3, limit_seconds=0.1), console=quiet())
    result = report.cases[0]
    measured = result.measurements[1]
    assert (measured.status, measured.runs, measured.rows) == ("stopped", [], None)
    assert measured.seconds is not None
    assert 0.05 <= measured.seconds < 5
    assert report.answers_agree
    assert "| endless | >0.1" in markdown(report)
    assert [m.status for m in result.measurements] == ["ok", "stopped"]
    assert report.ratio(result, "endless") is not None


def test_report_survives_json_and_is_printed(tmp_path: Path) -> None:
    def check(report: Report) -> list[Check]:
        return [Check("fast", True, "1.0x"), Check("small", False, "5 GiB")]

    report = run(suite(Fake("ours"), Fake("peer"), checks=(check,)), Limits(repeat=1), console=quiet())
    path = tmp_path / "deep" / "report.json"
    write_json(report, path)
    stored = read_json(path)
    assert stored.to_json() == report.to_json() == json.loads(path.read_text())
    out = StringIO()
    print_report(stored, Console(file=out, width=150))
    assert "A fake suite" in out.getvalue()
    assert "missed small: 5 GiB" in out.getvalue()
    assert re.search(r"\| small \| ours \| 0\.00\d* \|", markdown(stored))
    assert "| small | **no** | 5 GiB |" in markdown(stored)


@pytest.mark.few(2)
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_chart(tmp_path: Path, suffix: str) -> None:
    report = run(suite(Fake("ours"), Fake("peer", error="x")), Limits(repeat=1), console=quiet())
    path = tmp_path / f"chart.{suffix}"
    write_chart(report, path)
    assert path.stat().st_size > 1000


def test_unwritable_places_and_foreign_files_are_user_errors(tmp_path: Path) -> None:
    report = run(suite(Fake("ours")), Limits(repeat=1), console=quiet())
    (tmp_path / "file").write_text("{}")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write_json(report, tmp_path / "file" / "x.json")
    with pytest.raises(ConfigurationError, match="cannot draw"):
        write_chart(report, tmp_path / "chart.docx")
    with pytest.raises(ConfigurationError, match="not a report"):
        read_json(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_json(tmp_path / "missing")
