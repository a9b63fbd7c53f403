"""Files go to the worker that has compiled their kernels."""

from __future__ import annotations

import pytest

from tests.workers import feature_of, next_file

FILES = [
    "tests/operators/window/test_a.py",
    "tests/operators/window/test_b.py",
    "tests/operators/umjoin/test_c.py",
    "tests/planner/umjoin/test_d.py",
    "tests/cli/test_e.py",
    "tests/operators/early_windows/test_f.py",
]


@pytest.mark.parametrize(
    ("file", "feature"),
    [
        ("tests/operators/window/kernels/test_sums.py", "window"),
        ("tests/planner/early_windows/test_due.py", "window"),
        ("tests/planner/test_config.py", None),
        ("tests/cli/test_plan.py", None),
    ],
)
def test_the_feature_of_a_file(file: str, feature: str | None) -> None:
    assert feature_of(file) == feature


def test_a_worker_goes_on_with_the_features_it_has_begun() -> None:
    left, begun = list(FILES), dict[str, int]()
    found: dict[int, list[str]] = {1: [], 2: []}
    for worker in (1, 2, 2, 1, 2, 1):
        found[worker].append(next_file(left, begun, worker))
        left.remove(found[worker][-1])
    assert found == {1: [FILES[0], FILES[1], FILES[5]], 2: [FILES[2], FILES[3], FILES[4]]}


def test_what_others_have_begun_comes_last() -> None:
    assert next_file(FILES[:2] + FILES[4:], {"window": 1}, 2) == FILES[4]
    assert next_file(FILES[:2], {"window": 1}, 2) == FILES[0]
