"""No failure of our planning stops an ordinary statement; every one is told about a statement of the extension."""

from __future__ import annotations

from typing import Any

import pytest
import sqlext_planner.strategies
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, InternalError, SqlExtError, UnsupportedError
from sqlext_planner.optimizer.executor import RuleExecutor

import sqlext.analyzer.queries
import sqlext.syntax.parser
from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import stage
from tests.told import bugs_noted

COLUMNS = {"k": "int", "ts": "timestamp", "v": "int"}
CATALOG = DictCatalog({"t": COLUMNS, "u": COLUMNS, "w": COLUMNS})
ORDINARY = (
    "SELECT t.k FROM t JOIN u ON t.k = u.k JOIN w ON u.k = w.k",
    "SELECT t.k FROM t JOIN u ON t.ts < u.ts AND u.ts < t.ts",
    "EXPLAIN SELECT * FROM t",
    "CREATE TABLE z AS SELECT * FROM t",
    "INSERT INTO t SELECT * FROM u",
    "CACHE TABLE z AS SELECT * FROM u",
)
OURS = "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW) s FROM t"
FAILURES = (
    ValueError("x"),
    KeyError(1),
    InternalError("a bug"),
    RecursionError(),
    MemoryError(),
    AnalysisError("no", condition="wrong-type"),
    UnsupportedError("no", condition="unsupported-clause"),
)
STAGES = (
    (sqlext.analyzer.queries, "analyze"),
    (RuleExecutor, "optimize"),
    (sqlext_planner.strategies, "plan_physical"),
    (sqlext_planner.strategies, "contains_extension"),
)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("where", "name"), STAGES, ids=[name for _, name in STAGES])
def test_a_failure_stops_statements_of_ours_alone(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, error: Exception
) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(where, name, fails)
    with bugs_noted():
        for sql in ORDINARY:
            plan = stage(sql, CATALOG, Config(), lenient=True)
            assert plan.passthrough
            assert plan.sql is sql
    told = UnsupportedError if isinstance(error, RecursionError) else type(error)
    with pytest.raises(told):
        stage(OURS, CATALOG, Config(), lenient=True)
    with pytest.raises(told):
        stage(ORDINARY[0], CATALOG, Config())


def test_the_tests_see_what_users_only_find_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(RuleExecutor, "optimize", fails)
    with pytest.raises(AssertionError, match="a bug"):
        stage(ORDINARY[0], CATALOG, Config(), lenient=True)


@pytest.mark.parametrize("error", [AttributeError("x"), IndexError(), TypeError(), RecursionError()])
def test_a_parser_that_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(sqlext.syntax.parser.SqlExtParser, "_parse_where", fails)
    assert stage("SELECT k FROM t WHERE k > 1", CATALOG, Config()).passthrough
    with pytest.raises(SqlExtError) as caught:
        stage(f"{OURS} WHERE k > 1", CATALOG, Config())
    assert caught.value.span is not None


def test_failures_of_a_catalog() -> None:
    class Broken(DictCatalog):
        def table(self, name: str) -> Any:
            raise OSError("no metastore")

    with bugs_noted():
        assert stage(ORDINARY[0], Broken({}), Config(), lenient=True).passthrough


@pytest.mark.parametrize("listing", [["u", "tt"], OSError("permission denied")])
def test_tables_are_listed_only_for_an_error_that_is_shown(listing: Any) -> None:
    class Counting(DictCatalog):
        asked = 0

        def tables(self) -> tuple[str, ...]:
            self.asked += 1
            if isinstance(listing, Exception):
                raise listing
            return tuple(listing)

    catalog = Counting({"t": COLUMNS})
    assert stage("SELECT * FROM ttt JOIN t", catalog, Config(), lenient=True).passthrough
    with pytest.raises(AnalysisError) as caught:
        stage(OURS.replace("FROM t", "FROM ttt"), catalog, Config(), lenient=True)
    assert catalog.asked == 0
    shown = str(caught.value)
    assert "table 'ttt' not found" in shown
    assert ("did you mean 'tt'?" in shown) == isinstance(listing, list)
    assert catalog.asked == 1
    assert str(caught.value) == shown
    assert catalog.asked == 1
