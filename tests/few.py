"""Tests with many cases: `make test` runs a few of them, `make test-all` runs all.

``@pytest.mark.few``: as many cases as show each value of each parameter once, of a product of parameters.
``@pytest.mark.few(4)``: every fourth case, the first one among them.
The other cases are slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

_MARK = "few"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases: dict[tuple[object, int | None], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker(_MARK)
        if mark is not None and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0], *mark.args or (None,)].append(item)
    for (_, step), found in cases.items():
        kept = covering([_values(item) for item in found]) if step is None else range(0, len(found), step)
        for number in set(range(len(found))).difference(kept):
            found[number].add_marker("slow")


def _values(item: Any) -> list[tuple[str, str]]:
    """Which value of each parameter a case has."""
    return [(name, repr(value)) for name, value in item.callspec.params.items()]


def covering(cases: Sequence[Iterable[tuple[str, object]]]) -> list[int]:
    """The numbers of few cases, in order, that have every pair of a parameter and a value that any of them has."""
    missing = {pair for case in cases for pair in case}
    found: list[int] = []
    while missing:
        best = max(range(len(cases)), key=lambda number: len(missing.intersection(cases[number])))
        found.append(best)
        missing.difference_update(cases[best])
    return sorted(found)
