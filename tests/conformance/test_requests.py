"""OpenMLDB's cases as requests, at the rate of batch."""

from __future__ import annotations

import pytest

from .known import KNOWN
from .requests import UNSUPPORTED, run_requests
from .suite import REQUIRED_RATE, Suite
from .test_cases import suites

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("suite", suites(), ids=lambda suite: suite.path.name)
def test_requests_are_answered_as_openmldb_does(suite: Suite) -> None:
    cases = [case for case in suite.cases if UNSUPPORTED not in case.mode and case.key not in KNOWN]
    outcomes = [outcome for case in cases if (outcome := run_requests(case)) is not None]
    failed = [f"{one.key}: {one.kind}: {one.detail}" for one in outcomes if not one.passed]
    assert len(outcomes) > len(cases) // 2
    assert len(failed) <= (1 - REQUIRED_RATE) * len(outcomes), "\n".join(failed)
