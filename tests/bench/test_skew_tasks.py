"""Suite `skew-tasks`: counts against brute force, the arithmetic of the simulated critical path, how it is labelled."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from sqlext_planner.config import PARTITIONERS, Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.window.execution import WindowUnionExec
from sqlext_planner.window.tasks import WindowTasks, key_cuts, key_places

from sqlext.bench import Case, CaseResult, Measurement, Report, Run
from sqlext.bench.harness.chart import write_chart
from sqlext.bench.harness.report import markdown, print_report
from sqlext.bench.skew import plans as skew_plans
from sqlext.bench.skew import tasks as skew_tasks
from sqlext.bench.skew.cost import MeasuredTask, TaskCost
from sqlext.bench.skew.counts import PartitionCounts, over_average
from sqlext.bench.skew.plans import keyed_times, planned_tasks
from sqlext.bench.skew.suite import skew_case, skew_files
from sqlext.bench.skew.task_checks import CHECKS, FORMULA
from sqlext.bench.skew.tasks import (
    CONTESTANTS,
    SimulatedTasks,
    SkewTasksOptions,
    TaskCounts,
    skew_tasks_suite,
)
from sqlext.catalog import FileCatalog
from sqlext.run.pipeline import stage
from tests.bench.runs import agreed, outcome

COST = TaskCost(row=1.0, result=10.0, pair=100.0, error=0.0)


def files_of(root: Path, rows: int, keys: int, skew: float, seconds: int) -> tuple[Case, tuple[Path, Path]]:
    case = skew_case(0, keys, skew, seconds)
    return case, skew_files(root, rows, case)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize(("keys", "skew", "seconds", "partitions"), [(5, 0.2, 10, 3), (1, 0.5, 2, 5), (40, 0.35, 0, 4)])
def test_counts_are_those_of_brute_force(
    tmp_path: Path, partitioner: str, keys: int, skew: float, seconds: int, partitions: int
) -> None:
    _, paths = files_of(tmp_path, 300, keys, skew, seconds)
    tables = [pq.read_table(path) for path in paths]
    node, tasks = planned_tasks(paths[0].parent, tables, seconds, partitioner, partitions)
    keyed = keyed_times(tables, seconds)
    assert tasks.reach == (keyed.half, keyed.half)
    found = PartitionCounts.of(keyed, (tasks.sent(0), tasks.sent(1)), partitions)

    own, received = [[] for _ in range(partitions)], [[] for _ in range(partitions)]
    for number in (0, 1):
        for part in tasks.sent(number):
            for row, pid, owned in zip(part.rows.tolist(), part.pids.tolist(), part.owned.tolist(), strict=True):
                received[pid].append((number, row))
                if owned:
                    own[pid].append(row)
    rows = [list(zip(k.tolist(), t.tolist(), strict=True)) for k, t in zip(keyed.keys, keyed.times, strict=True)]

    def pairs(owners: list[int], others: list[int]) -> int:
        mine, theirs = [rows[0][row] for row in owners], [rows[1][row] for row in others]
        return sum(a[0] == b[0] and abs(a[1] - b[1]) <= keyed.half for a in mine for b in theirs)

    assert found.owned.tolist() == [len(mine) for mine in own]
    assert found.received.tolist() == [len(theirs) for theirs in received]
    others = [[row for number, row in theirs if number == 1] for theirs in received]
    assert found.pairs.tolist() == [pairs(mine, theirs) for mine, theirs in zip(own, others, strict=True)]
    assert sorted(row for mine in own for row in mine) == list(range(300))
    assert found.pairs.sum() == pairs(list(range(300)), list(range(300)))

    names = pa.array(np.arange(1, keys + 1))
    teams, cuts = key_places(node, names), key_cuts(node, names)
    assert node.partitioning is not None
    formula = keyed.moved_by_cuts(cuts) if any(cuts) else keyed.moved(teams, node.partitioning.copies)
    assert found.received.sum() == formula


def test_only_plain_columns(tmp_path: Path) -> None:
    _, (path, _) = files_of(tmp_path, 10, 1, 0.5, 1)
    window = "UNION b PARTITION BY k + 1 ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    sql = f"SELECT sum(v) OVER w AS s FROM a WINDOW w AS ({window})"
    plan = stage(sql, FileCatalog(path.parent), Config()).physical
    assert plan is not None
    node = next(node for node in plan.walk() if isinstance(node, WindowUnionExec))
    with pytest.raises(UnsupportedError, match="plain columns"):
        WindowTasks.of(node, [pq.read_table(path)] * 2, 2, Config())


def test_costs_are_found_again() -> None:
    tasks = [
        MeasuredTask("", rows, owned, pairs, 3e-7 * rows + 2e-7 * owned + 1e-9 * pairs)
        for rows, owned, pairs in ((100, 50, 900), (4_000, 500, 90_000), (1_000, 500, 500), (70_000, 10, 20))
    ]
    cost = TaskCost.fitted(tasks)
    assert (cost.row, cost.result, cost.pair) == pytest.approx((3e-7, 2e-7, 1e-9))
    assert cost.error == pytest.approx(0, abs=1e-9)
    assert str(cost) == "300 ns a row, 200 ns a result, 1 ns a pair"
    with pytest.raises(ValueError, match="at least three tasks"):
        TaskCost.fitted(tasks[:2])


def test_costs_are_not_negative() -> None:
    """Pairs that seem to save time cost nothing; the error is what the others do not explain."""
    tasks = [MeasuredTask("", 100, 100, pairs, 100 - pairs) for pairs in (0, 10, 20)]
    cost = TaskCost.fitted(tasks)
    assert cost.pair == 0
    assert 0.05 < cost.error < 0.15
    assert cost.seconds(100, 100, 20) == pytest.approx(cost.seconds(100, 100, 0))


def test_the_critical_path_is_the_slowest_task(tmp_path: Path) -> None:
    case, paths = files_of(tmp_path, 400, 5, 0.2, 10)
    at = skew_tasks._at(case, 4)
    counts = TaskCounts({case.name: paths}, COST)
    details = {}
    for name in ("hash", "key", "time_range"):
        contestant = SimulatedTasks(name, counts)
        contestant.prepare(at)
        seconds, details[name], series = contestant.run(at), contestant.details(), contestant.series()
        each = [
            row + 10 * result + 100 * pair
            for row, result, pair in zip(series["received"], series["owned"], series["pairs"], strict=True)
        ]
        assert list(series["simulated seconds"]) == each
        assert seconds == max(each)
        assert details[name]["Mrows/s"] == pytest.approx(800 / seconds / 1e6)
        assert details[name]["moved"] == sum(series["received"]) == series[FORMULA][0]
        assert details[name]["work max/avg"] == over_average(np.array(series["received"]))
        everything = 800 + 10 * 400 + 100 * sum(series["pairs"])
        assert details[name]["x N=1"] == pytest.approx(everything / seconds)
    assert details["hash"]["x hash"] == 1
    assert details["time_range"]["x hash"] == pytest.approx(
        details["time_range"]["Mrows/s"] / details["hash"]["Mrows/s"]
    )
    assert details["time_range"]["S1"] > 1
    assert over_average(np.zeros(3)) == 1


def test_reports_say_that_seconds_are_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        skew_plans, "TIMED", ((500, 5, 0.5, 10, "hash", 2), (900, 1, 0.5, 10, "hash", 2), (700, 5, 0.5, 1, "hash", 2))
    )
    options = SkewTasksOptions(rows=2_000, shapes=[(5, 0.2, 10)], partitions=[2, 3], data=tmp_path)
    suite = skew_tasks_suite(options)
    report = agreed(suite)
    assert [m.contestant for m in report.cases[0].measurements] == list(CONTESTANTS)
    assert Report.from_json(report.to_json()).simulated == report.simulated
    text = markdown(report)
    assert "| simulated seconds | ratio to ours | rows |" in text
    assert "Simulated seconds: the slowest task" in text
    assert "ns a row" in text
    for word in ("Medians of", "GiB |", "| seconds"):
        assert word not in text
    shown = StringIO()
    print_report(report, Console(file=shown, width=200))
    assert "simulated seconds" in shown.getvalue()
    picture = tmp_path / "chart.svg"
    write_chart(report, picture)
    assert "simulated Mrows/s" in picture.read_text()
    assert [check.passed for check in report.checks if "closed formula" in check.name] == [True]


def test_checks() -> None:
    def result(partitions: int, **contestants: tuple[float, float, float, float]) -> CaseResult:
        shape = "50 keys, skew 0.2, ±30 s"
        found = []
        for name, (seconds, expected, counted, formula) in contestants.items():
            details = {"moved": 7.0, "expected": expected, "work max/avg": counted}
            found.append(Measurement(name, runs=[Run(seconds, 0, 0, 0, details, {FORMULA: [formula]})]))
        return CaseResult(Case(f"{shape}, N={partitions}", float(partitions), panel=shape), found)

    cases = [
        result(4, ours=(1.0, 1.1, 1.0, 7.0), key=(1.0, 1.3, 1.0, 7.0)),
        result(8, ours=(1.0, 1.0, 1.0, 7.0), key=(2.0, 1.0, 1.0, 8.0)),
    ]
    assert [found[1:] for found in outcome(CHECKS, cases)] == [
        (False, "3 of 4"),
        (False, "3 of 4; worst: key at N=4, 1.30 against 1.00"),
        (True, "0.50x"),
    ]
