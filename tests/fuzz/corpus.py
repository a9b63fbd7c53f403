"""The statements that mutants are made of, each with the tables that it is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlext.catalog import DictCatalog
from sqlext.tpc.benchmark import BENCHMARKS
from tests.errors.test_spans import CATALOG, MARK, read_refusals
from tests.golden import parse_cases

TESTS = Path(__file__).resolve().parent.parent
#: Columns that a block of Spark's gets, where only Spark could tell.
_COLUMNS = (("k", "string"), ("v", "int"), ("ts", "timestamp"), ("id", "bigint"))


class Tables(DictCatalog):
    """Tables of a case; like a running Spark it knows the columns of most other texts, too."""

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...] | None:
        return _COLUMNS if len(sql) % 4 else None


@dataclass(frozen=True)
class Source:
    """A statement and its tables."""

    sql: str
    catalog: DictCatalog
    compat: str | None = None


def corpus() -> Sequence[Source]:
    """All statements, always in the same order."""
    return list(_unique([*_golden(), *_refusals(), *_ordinary(), *_benchmarks(), *_in_tests()]))


def _unique(sources: list[Source]) -> Iterator[Source]:
    seen: set[str] = set()
    for source in sources:
        if source.sql not in seen:
            seen.add(source.sql)
            yield source


def _golden() -> Iterator[Source]:
    for path in sorted(TESTS.glob("*/*.test")):
        for case in parse_cases(path.read_text(encoding="utf-8")):
            yield Source(case.sql, Tables(case.tables), case.compat)


def _refusals() -> Iterator[Source]:
    for case in read_refusals():
        yield Source(case.sql.replace(MARK, ""), _columns_of(CATALOG), case.compat)


def _ordinary() -> Iterator[Source]:
    for line in Path(__file__).with_name("ordinary.sql").read_text(encoding="utf-8").splitlines():
        yield Source(line, _columns_of(CATALOG))


def _benchmarks() -> Iterator[Source]:
    for benchmark in BENCHMARKS.values():
        catalog = _columns_of(benchmark.catalog())
        for path in sorted(benchmark.folder.glob("q*.sql")):
            for text in path.read_text(encoding="utf-8").split(";"):
                if text.strip():
                    yield Source(text.strip(), catalog)


def _in_tests() -> Iterator[Source]:
    """What looks like a statement in the tests' own code."""
    catalog = _columns_of(CATALOG)
    for folder in ("front", "sql", "session"):
        for path in sorted((TESTS / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    text = node.value.strip()
                    if re.match(r"(SELECT|WITH|INSERT|CREATE|EXPLAIN)\s", text) and len(text) < 4000:
                        yield Source(text, catalog)


def _columns_of(catalog: DictCatalog) -> Tables:
    infos = [catalog.table(name) for name in catalog.tables()]
    return Tables({info.name: dict(info.columns) for info in infos if info is not None})
