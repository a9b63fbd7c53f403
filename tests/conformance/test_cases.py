"""OpenMLDB's own cases: each selected one, and the rate over all of a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from .cases import ConformanceCase
from .known import KNOWN
from .runner import Outcome, openmldb_settings, run_case
from .suite import REQUIRED_RATE, Suite, case_files, function_names, score, select

# The files lie beside the project: what `make test` shows does not depend on them.
pytestmark = pytest.mark.slow


@cache
def suites() -> tuple[Suite, ...]:
    return tuple(select(path, function_names()) for path in case_files() if path.exists())


def parameters() -> list[object]:
    """One parameter set a case; a known failure is expected to fail, so that a repaired one is noticed."""
    sets: list[object] = []
    for suite in suites():
        for case in suite.cases:
            marks = [pytest.mark.xfail(reason=KNOWN[case.key], strict=True)] if case.key in KNOWN else []
            sets.append(pytest.param(case, marks=marks, id=case.key))
    missing = ", ".join(str(path) for path in case_files() if not path.exists())
    skip = pytest.mark.skip(reason=f"no case file at {missing}")
    return sets if not missing else [*sets, pytest.param(None, marks=skip, id="missing-file")]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {}


@pytest.fixture(scope="module")
def openmldb(spark: SparkSession) -> Iterator[SparkSession]:
    with openmldb_settings(spark):
        yield spark


@pytest.mark.parametrize("case", parameters())
def test_case(case: ConformanceCase, openmldb: SparkSession, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[case.key] = run_case(openmldb, case)
    assert outcome.passed, f"{outcome.kind}: {outcome.detail}\n{case.sql}"


@pytest.mark.parametrize("suite", suites(), ids=lambda suite: Path(suite.path).name)
def test_rate(suite: Suite, outcomes: dict[str, Outcome]) -> None:
    """Runs after the cases; with a selection (-k) it judges those that ran."""
    ran = [outcomes[case.key] for case in suite.cases if case.key in outcomes]
    if not ran:
        pytest.skip("no case of this file ran")
    counts = score([case for case in suite.cases if case.key in outcomes], ran)
    assert counts.refused == counts.refusals, f"{counts.refused} of {counts.refusals} refusals"
    assert counts.rate >= REQUIRED_RATE, f"{counts.passed} of {counts.cases} pass ({counts.rate:.1%})"
