"""A rule has one mention in BATCHES, and one golden file of its name."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
import sqlext_planner
from sqlext_planner.batches import BATCHES
from sqlext_planner.optimizer.executor import Rule

GOLDEN = Path(__file__).parents[2] / "rules"


def rules() -> dict[str, Rule]:
    """The rules of all modules, by name."""
    names = [module.name for module in pkgutil.walk_packages(sqlext_planner.__path__, "sqlext_planner.")]
    found = (value for name in names for value in vars(importlib.import_module(name)).values())
    return {value.name: value for value in found if isinstance(value, Rule)}


RULES = rules()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_its_batch_and_its_cases(name: str) -> None:
    assert RULES[name] in {item for batch in BATCHES for item in batch.rules}
    assert f"expect: {name}" in (GOLDEN / f"{name}.test").read_text(encoding="utf-8")
    assert "expect-not:" in (GOLDEN / f"{name}.test").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_shows_its_sql_its_plans_and_why_it_is_legal(name: str) -> None:
    doc = RULES[name].doc
    assert "SELECT" in doc
    assert "->" in doc
    assert any(word in doc for word in ("Legal", "Counter-example", "Which conjuncts may move"))


def test_every_golden_file_is_for_a_rule() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.test")) == sorted(RULES)


def test_batches_are_not_empty() -> None:
    assert all(batch.rules for batch in BATCHES)
