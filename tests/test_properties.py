"""`make test` tries properties with the same examples every time, whatever ran before."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from tests.properties import no_constants

VALUES = st.one_of(st.integers(), st.text(max_size=20), st.floats(allow_nan=False))


def examples() -> list[Any]:
    found = []

    @settings(settings.get_profile("same"), max_examples=300)
    @given(st.lists(VALUES, max_size=6))
    def noted(values: list[Any]) -> None:
        found.append(values)

    noted()
    return found


def imported(path: Path) -> None:
    """A module of ours that some test imports before: its constants are many."""
    path.write_text("\n".join(f'C{number} = (7{number:05d}, "word {number}", {number}.25)' for number in range(400)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_same_examples_whatever_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_get_local_constants", no_constants)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024))
    first = examples()
    imported(tmp_path / "constants_of_ours.py")
    assert examples() == first
    assert len(first) >= 300


def test_without_slow_tests_the_examples_are_the_same(request: pytest.FixtureRequest) -> None:
    from tests.conftest import slow_too

    assert settings().derandomize is not slow_too(request.config)
    assert (providers._get_local_constants is no_constants) is not slow_too(request.config)


@pytest.mark.slow
def test_new_examples_have_the_constants_of_ours() -> None:
    """The reason for `no_constants`: if Hypothesis no longer draws them, it can go."""
    assert providers._get_local_constants is not no_constants
