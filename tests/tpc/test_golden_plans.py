"""The optimized plan of every query before and after TSC, kept beside the queries; `--update-golden` renews them."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from sqlext_planner.plan_format import tree_text
from sqlext_planner.umjoin.nodes import UMJoin

from sqlext.explain.plan_operators import without_tsc
from sqlext.tpc import BENCHMARKS, Benchmark
from tests.tpc.plans import planned

CASES = [(benchmark, number) for benchmark in BENCHMARKS.values() for number in benchmark.numbers]


def page(benchmark: Benchmark, number: int) -> str:
    """The plans; the second is left out where TSC makes no group."""
    plan = planned(benchmark.name, number)
    assert plan.analyzed is not None
    assert plan.optimized is not None
    if not plan.optimized.collect(UMJoin):
        return f"== no group ==\n{tree_text(plan.optimized)}\n"
    before = tree_text(without_tsc(plan.analyzed))
    return f"== binary joins ==\n{before}\n\n== TSC ==\n{tree_text(plan.optimized)}\n"


@pytest.mark.few(4)
@pytest.mark.parametrize(("benchmark_", "number"), CASES, ids=[f"{case[0].name}-{case[1]}" for case in CASES])
def test_plan(benchmark_: Benchmark, number: int, request: pytest.FixtureRequest) -> None:
    actual = page(benchmark_, number)
    path: Path = benchmark_.folder / "golden" / f"q{number:02}.plan"
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if actual == expected:
        return
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(actual, encoding="utf-8")
        return
    diff = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "file", "now", lineterm="")
    pytest.fail("\n".join([*diff, "(pytest --update-golden accepts the new plan)"]), pytrace=False)
