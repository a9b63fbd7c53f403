"""CONTRIBUTING.md says how to add a relation, a window function and a rule: one place each, and it is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `added_parts.py` prints."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    command = [sys.executable, "-m", "tests.added_parts"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_relation_has_its_words_its_function_and_its_join(found: dict[str, Any]) -> None:
    assert found["relation"]["pairs"] > 100
    assert found["relation"]["wrong"] == 0
    assert found["relation"]["plans"] == [True, True]


def test_a_window_function_has_its_names_its_type_and_its_twin(found: dict[str, Any]) -> None:
    assert found["function"]["types"] == ["bigint"] * 3


def test_a_rule_runs_where_its_batch_stands(found: dict[str, Any]) -> None:
    assert found["rule"] == {"before": 1, "after": 0}
