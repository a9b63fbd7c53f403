"""A case file as a test suite: which cases are in it, what became of them, and whether that is enough."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from .cases import ConformanceCase, load, why_not_selected
from .runner import Outcome

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_FILE = ROOT.parent / "shared" / "cases" / "openmldb" / "window_cases.json"

#: Share of the selected cases that has to pass; every expected refusal has to be one.
REQUIRED_RATE = 0.98


@dataclass(frozen=True)
class Suite:
    """The selected cases of one file, and how many were left out, by reason."""

    path: Path
    cases: tuple[ConformanceCase, ...]
    left_out: Counter[str]


@dataclass(frozen=True)
class Score:
    """Counts over the outcomes of a suite."""

    cases: int
    passed: int
    refusals: int
    refused: int

    @property
    def rate(self) -> float:
        return self.passed / self.cases if self.cases else 1.0

    @property
    def enough(self) -> bool:
        return self.rate >= REQUIRED_RATE and self.refused == self.refusals


def case_files() -> list[Path]:
    """The files of the environment variable SQLEXT_CASES (separated like PATH), else the project's own."""
    listed = os.environ.get("SQLEXT_CASES")
    return [Path(part) for part in listed.split(os.pathsep) if part] if listed else [DEFAULT_FILE]


def function_names() -> frozenset[str]:
    """Every name of the function table, aliases included, and of the scalar functions of OpenMLDB mode, lower case."""
    from sqlext_operators.window.functions import FUNCTIONS

    from sqlext.analyzer.compat_functions import TEMPLATES

    names = {name.lower() for name in FUNCTIONS}
    names |= {name for name, _ in TEMPLATES}
    return frozenset(names | {alias.lower() for function in FUNCTIONS.values() for alias in function.aliases})


def select(path: Path, functions: Collection[str] | None) -> Suite:
    """The cases of `path` that are tests of windows over `functions`; None selects all."""
    reasons = [(case, why_not_selected(case, functions) if functions is not None else None) for case in load(path)]
    left_out = Counter(reason.split(":")[0] for _, reason in reasons if reason is not None)
    return Suite(path, tuple(case for case, reason in reasons if reason is None), left_out)


def score(cases: Iterable[ConformanceCase], outcomes: Collection[Outcome]) -> Score:
    """Count passes, and refusals among them."""
    passed = {outcome.key for outcome in outcomes if outcome.passed}
    refusals = {case.key for case in cases if not case.succeeds}
    return Score(len(outcomes), len(passed), len(refusals), len(refusals & passed))
