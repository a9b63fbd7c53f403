"""A few hundred mutants; ``python -m tests.fuzz`` goes on for as long as one likes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from .check import check
from .corpus import Source, corpus
from .mutants import mutant


@pytest.fixture(scope="module")
def sources() -> Sequence[Source]:
    return corpus()


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_mutants(sources: Sequence[Source], start: int) -> None:
    faults = {}
    for number in range(start, start + 100):
        verdict = check(mutant(sources, 2, number))
        if verdict.fault is not None:
            faults[number] = verdict.fault
    assert not faults


def test_every_source_is_planned_or_refused(sources: Sequence[Source]) -> None:
    chosen = sources[::5]
    found = {source.sql: fault for source in chosen if (fault := check(source).fault) is not None}
    assert not found


def test_a_mutant_is_the_same_each_time(sources: Sequence[Source]) -> None:
    assert [mutant(sources, 1, n).sql for n in range(20)] == [mutant(sources, 1, n).sql for n in range(20)]
    assert mutant(sources, 1, 5).sql != mutant(sources, 2, 5).sql
