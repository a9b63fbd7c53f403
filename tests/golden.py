"""Golden files: ``*.test`` holds SQL and the plan that comes of it; ``pytest --update-golden`` rewrites the plans.

A file is a list of cases, separated by a line ``====``::

    # Adjacent filters become one conjunction.
    table t: a int, b string
    expect: merge_filters
    SELECT * FROM (SELECT * FROM t WHERE a > 1) WHERE b < 'x'
    ----
    Output: a, b
      Filter: t.a > 1 AND t.b < 'x'
        Scan: t [a, b]

Lines before the SQL:

- ``# comment``
- ``table NAME: column type, ...`` declares a table for this case and all later ones of the file
- ``expect: rule, ...`` and ``expect-not: rule, ...``: rules that must (not) have changed the plan
- ``rules: rule, ...`` runs only these rules, to a fixed point, instead of all batches
- ``stage: analyzed | optimized | physical | trace | all``: what is printed; several with commas; default optimized
- ``compat: openmldb``
- ``error``: the statement is refused, and the message is what is printed
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.optimizer.executor import Batch, PlanTrace, RuleExecutor
from sqlext_planner.plan_format import trace_text, tree_text
from sqlext_planner.strategies import plan_physical

SEPARATOR, RULER = "====", "----"
STAGES = ("analyzed", "optimized", "physical")
_DIRECTIVE = re.compile(r"(table|expect-not|expect|rules|stage|compat)\b\s*(.*)|error$")


@dataclass
class Case:
    """One case: the lines above the ruler as they are, the plan below it, and what the directives say."""

    head: list[str]
    expected: str
    line: int
    sql: str = ""
    comment: str = ""
    stages: tuple[str, ...] = ("optimized",)
    expect: tuple[str, ...] = ()
    expect_not: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    compat: str | None = None
    error: bool = False
    tables: dict[str, dict[str, str]] = field(default_factory=dict)

    def text(self) -> str:
        return "\n".join([*self.head, RULER, self.expected]).rstrip() + "\n"


def parse_cases(text: str) -> list[Case]:
    """The cases of a file. Raises ValueError for a case without a ruler, or an unknown stage."""
    cases: list[Case] = []
    tables: dict[str, dict[str, str]] = {}
    line = 1
    for block in re.split(rf"^{SEPARATOR}\n", text, flags=re.MULTILINE):
        head, ruler, expected = block.partition(f"\n{RULER}")
        if not ruler:
            raise ValueError(f"line {line}: a case has no line '{RULER}'")
        case = Case(head.strip("\n").splitlines(), expected.strip("\n"), line)
        _read_head(case, tables)
        case.tables = dict(tables)
        cases.append(case)
        line += block.count("\n") + 1
    return cases


def _read_head(case: Case, tables: dict[str, dict[str, str]]) -> None:
    for number, line in enumerate(case.head):
        match = _DIRECTIVE.fullmatch(line)
        if line.startswith("#") or not line.strip():
            case.comment = case.comment or line.lstrip("# ")
        elif match is None:
            case.sql = "\n".join(case.head[number:])
            return
        elif line == "error":
            case.error = True
        else:
            _directive(case, match[1], match[2].lstrip(": "), tables)


def _directive(case: Case, name: str, value: str, tables: dict[str, dict[str, str]]) -> None:
    words = tuple(word.strip() for word in value.split(",") if word.strip())
    if name == "table":
        table, _, columns = value.partition(":")
        pairs = (tuple(column.strip().split(None, 1)) for column in re.split(r",(?![^<(]*[>)])", columns))
        tables[table.strip()] = dict(pairs)
    elif name == "compat":
        case.compat = value
    elif name == "stage":
        case.stages = STAGES if value == "all" else words
        if set(case.stages) - {*STAGES, "trace"}:
            raise ValueError(f"line {case.line}: unknown stage {value!r}")
    else:
        setattr(case, name.replace("-", "_"), words)


def run_case(case: Case) -> tuple[str, PlanTrace | None]:
    """What the case prints, and the optimizer's trace."""
    from sqlext.analyzer.queries import analyze
    from sqlext.catalog import DictCatalog
    from sqlext.syntax.parser import parse

    catalog = DictCatalog(case.tables)
    try:
        analyzed = analyze(parse(case.sql, compat=case.compat), catalog)
        trace = RuleExecutor(_batches(case)).optimize(analyzed)
        parts = {"analyzed": tree_text(analyzed), "optimized": tree_text(trace.final)}
        if "physical" in case.stages:
            parts["physical"] = tree_text(plan_physical(trace.final, Config()))
        if "trace" in case.stages:
            parts["trace"] = trace_text(trace)
    except SqlExtError as error:
        if not case.error:
            raise
        return str(error.with_sql(case.sql)), None
    if case.error:
        raise AssertionError("the statement was not refused")
    if len(case.stages) == 1:
        return parts[case.stages[0]], trace
    return "\n".join(f"[{stage}]\n{parts[stage]}" for stage in case.stages), trace


def _batches(case: Case) -> tuple[Batch, ...]:
    if not case.rules:
        return BATCHES
    known = {rule.name: rule for batch in BATCHES for rule in batch.rules}
    return (Batch("rules", 30, tuple(known[name] for name in case.rules)),)


class GoldenMismatchError(AssertionError):
    """The plan differs from the file."""


class GoldenCase(pytest.Item):
    """One case of a golden file."""

    def __init__(self, *, case: Case, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        actual, trace = run_case(self.case)
        fired = set(trace.rules) if trace is not None else set()
        missing, forbidden = set(self.case.expect) - fired, set(self.case.expect_not) & fired
        if missing or forbidden:
            changed = ", ".join(sorted(fired)) or "none"
            raise GoldenMismatchError(
                f"rules that changed the plan: {changed}; missing: {sorted(missing)}; not allowed: {sorted(forbidden)}"
                f"\n{actual}"
            )
        if actual == self.case.expected:
            return
        if self.config.getoption("--update-golden"):
            self.case.expected = actual
            self.parent.save()
            return
        diff = difflib.unified_diff(self.case.expected.splitlines(), actual.splitlines(), "file", "now", lineterm="")
        raise GoldenMismatchError("\n".join([self.case.sql, *diff, "(pytest --update-golden accepts the new plan)"]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> str:
        if isinstance(excinfo.value, GoldenMismatchError):
            return str(excinfo.value)
        entries = [entry for entry in excinfo.traceback if "site-packages" not in str(entry.path)]
        places = [f"  {entry.path}:{entry.lineno + 1} in {entry.name}" for entry in entries[-5:]]
        return "\n".join([self.case.sql, *places, f"{excinfo.typename}: {excinfo.value}"])

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name


class GoldenFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[GoldenCase]:
        self.cases = parse_cases(self.path.read_text(encoding="utf-8"))
        for number, case in enumerate(self.cases, 1):
            yield GoldenCase.from_parent(self, name=f"{number}: {case.comment or case.sql[:40]}", case=case)

    def save(self) -> None:
        """Write all cases back, with the plans as they are now."""
        self.path.write_text(f"{SEPARATOR}\n".join(case.text() for case in self.cases), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the plans in *.test files")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
    return GoldenFile.from_parent(parent, path=file_path) if file_path.suffix == ".test" else None
