"""A rule is one file, one mention in BATCHES, and one golden file of the same name."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
import sqlext_planner
from sqlext_planner.optimizer.batches import BATCHES
from sqlext_planner.optimizer.rule import Rule

GOLDEN = Path(__file__).parents[2] / "rules"
#: The module of each rule, by the rule's name: every module in a folder `rules`.
MODULES = {
    module.name.rpartition(".")[2]: module.name
    for module in pkgutil.walk_packages(sqlext_planner.__path__, "sqlext_planner.")
    if module.name.split(".")[-2] == "rules"
}


@pytest.mark.parametrize("name", MODULES)
def test_a_rule_has_its_file_its_batch_and_its_cases(name: str) -> None:
    module = importlib.import_module(MODULES[name])
    found = [value for value in vars(module).values() if isinstance(value, Rule)]
    assert [item.name for item in found] == [name]
    assert name in {item.name for batch in BATCHES for item in batch.rules}
    assert f"expect: {name}" in (GOLDEN / f"{name}.test").read_text(encoding="utf-8")
    assert "expect-not:" in (GOLDEN / f"{name}.test").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_a_rule_shows_its_sql_its_plans_and_why_it_is_legal(name: str) -> None:
    doc = getattr(importlib.import_module(MODULES[name]), name).doc
    assert "SELECT" in doc
    assert "->" in doc
    assert any(word in doc for word in ("Legal", "Counter-example", "Which conjuncts may move"))


def test_every_golden_file_is_for_a_rule() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.test")) == sorted(MODULES)


def test_batches_are_not_empty() -> None:
    assert all(batch.rules for batch in BATCHES)
