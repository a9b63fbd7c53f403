"""Large statements: planning in near linear time, ordinary ones pass, ours work or are refused with a place."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError

from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage
from sqlext.run.unplanned import may_be_ours
from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.parser import parse

COLUMNS = {"a": "int", "b": "int", "k": "int", "ts": "timestamp", "v": "double", "s": "string"}
CATALOG = DictCatalog(
    {"t": COLUMNS, **{f"r{i}": {"a": "int", "b": "int"} for i in range(201)}}
    | {"wide": {f"c{i}": "int" for i in range(2000)}}
)
WINDOW = "sum(v) OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN {}h PRECEDING AND CURRENT ROW)"


def planned(sql: str) -> StagedPlan:
    return stage(sql, CATALOG, Config(), lenient=True)


def calls(sql: str) -> int:
    """How many functions of Python's are called to plan a statement: its time, without the machine's."""
    planned(sql)  # what is loaded or remembered once
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        planned(sql)
    finally:
        sys.setprofile(None)
    return count


def chain(n: int) -> str:
    return "SELECT count(*) FROM r0 " + " ".join(f"JOIN r{i} ON r{i - 1}.b = r{i}.a" for i in range(1, n + 1))


def star(n: int) -> str:
    return "SELECT count(*) FROM r0 " + " ".join(f"JOIN r{i} ON r0.b = r{i}.a" for i in range(1, n + 1))


def commas(n: int) -> str:
    where = " AND ".join(f"r{i - 1}.b = r{i}.a" for i in range(1, n + 1))
    return f"SELECT r0.a, sum(r1.b) FROM {', '.join(f'r{i}' for i in range(n + 1))} WHERE {where} GROUP BY r0.a"


def left(n: int) -> str:
    return chain(n).replace("JOIN", "LEFT JOIN")


def cross(n: int) -> str:
    return "SELECT * FROM r0 " + " ".join(f"JOIN r{i}" for i in range(1, n + 1))


def terms(n: int) -> str:
    return "SELECT a FROM t WHERE " + " OR ".join(f"a = {i} AND b <> {i}" for i in range(n))


def cases(n: int) -> str:
    return "SELECT CASE a " + " ".join(f"WHEN {i} THEN {i}" for i in range(n)) + " END AS c FROM t"


def values(n: int) -> str:
    return "SELECT * FROM VALUES " + ", ".join(f"({i}, 'x{i}')" for i in range(n)) + " AS d(a, b)"


def numbers(n: int) -> str:
    return f"SELECT {WINDOW.format(1)} AS x FROM t WHERE a IN ({', '.join(map(str, range(n)))})"


def columns(n: int) -> str:
    return f"SELECT {', '.join(f'c{i} + 1 AS d{i}' for i in range(n))} FROM wide"


def ctes(n: int) -> str:
    heads = ", ".join(f"x{i} AS (SELECT a, b FROM t WHERE a = {i})" for i in range(n))
    return f"WITH {heads} SELECT x0.a FROM x0 JOIN x1 ON x0.a = x1.b"


def subqueries(n: int) -> str:
    return f"SELECT {', '.join(f'(SELECT max(b) FROM r1 WHERE r1.a = t.k + {i}) AS m{i}' for i in range(n))} FROM t"


#: Sizes n whose double may take 4.5 times the calls at most: quadratic with small factors, where cubic takes 8.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("make", "n"),
    [
        *((chain, 30), (star, 30), (commas, 30), (left, 30), (cross, 12), (terms, 50), (cases, 100), (values, 100)),
        *((numbers, 200), (columns, 50), (ctes, 20), (subqueries, 10)),
    ],
)
def test_planning_does_not_explode(make: object, n: int) -> None:
    assert callable(make)
    small, large = calls(make(n)), calls(make(2 * n))
    assert large < 4.5 * small


@pytest.mark.parametrize("make", [chain, commas])
def test_a_hundred_joins(make: object) -> None:
    assert callable(make)
    assert calls(make(100)) < 4_000_000  # cubic growth has ten times as many


@pytest.mark.parametrize(
    "sql",
    [
        values(20_000),
        f"SELECT * FROM t WHERE a IN ({', '.join(map(str, range(100_000)))})",
        f"SELECT * FROM t WHERE s IN ({', '.join(repr(f'last join {i}') for i in range(20_000))})",
        f"INSERT INTO t VALUES {', '.join(f'({i}, 1.5, NULL)' for i in range(20_000))}",
        cases(10_000),
        f"SELECT '{'x' * 1_000_000}'",
        f"SELECT /* {'x' * 1_000_000} */ 1",
    ],
    ids=lambda sql: sql[:40],
)
def test_long_ordinary_texts_are_not_read(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    def tokenize(*args: object) -> None:
        raise AssertionError("the text is tokenized")

    monkeypatch.setattr(SqlExt, "tokenize", tokenize)
    plan = planned(sql)
    assert plan.passthrough
    assert plan.sql is sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 10s PRECEDING AND CURRENT ROW) FROM t",
        "SELECT a FROM t last  JOIN u ON t.k = u.k",
        "SELECT a FROM t ASOF LEFT JOIN u ON t.ts >= u.ts",
        "SELECT 'a\\' LAST JOIN ' FROM t LAST JOIN u ON t.k = u.k",
        "SELECT /* ' */ sum(v) OVER (/* a */ UNION u PARTITION BY k ORDER BY ts) /* ' */ FROM t",
        "SELECT (a, b) LEFT/**/OVERLAP (c, d)",
        "SELECT allen_meets(a, b, c, d)",
        "SELECT `distinct_count`(a) FROM t",
        "SELECT period_contians(a, b, c) FROM t",
        "SELECT /*+ UMJOIN(x y) */ 1",
        "SELECT /*+ no_sweep */ 1",
        "SELECT 1 -- '\n FROM t LAST JOIN u ON 1 = 1 -- '",
    ],
)
def test_a_text_of_ours_is_never_taken_for_sparks(sql: str) -> None:
    assert may_be_ours(sql)


def test_a_long_statement_of_ours_works() -> None:
    plan = planned(numbers(20_000))
    assert plan.extensions == ("WindowUnionExec",)


@pytest.mark.parametrize(
    "sql",
    [
        " UNION ALL ".join(f"SELECT a FROM t WHERE a = {i}" for i in range(301)),
        f"SELECT {'(' * 100}1{')' * 100}",
        f"SELECT {'abs(' * 300}1{')' * 300}",
        f"SELECT {'NOT ' * 1000}true",
        f"SELECT * FROM {'(SELECT * FROM ' * 100}t{')' * 100}",
        chain(200),
        "/* a */ " * 60 + "SELECT a FROM t",
        "-- a\n/* b */\n" * 60 + "SELECT a FROM t",
    ],
    ids=lambda sql: sql[:40],
)
def test_deep_ordinary_statements_pass(sql: str) -> None:
    assert planned(sql).passthrough


@pytest.mark.parametrize(
    "sql",
    [
        " UNION ALL ".join([f"SELECT {WINDOW.format(1)} AS x FROM t", *["SELECT v FROM t"] * 250]),
        f"SELECT {', '.join(WINDOW.format(i + 1) + f' AS x{i}' for i in range(300))} FROM t",
        f"SELECT {'(' * 100}1{')' * 100}, {WINDOW.format(1)} AS x FROM t",
        f"SELECT {'abs(' * 100}v{')' * 100}, {WINDOW.format(1)} AS x FROM t",
        f"SELECT {WINDOW.format(1)} AS x FROM {'(SELECT * FROM ' * 100}t{')' * 100}",
        "SELECT t.a FROM t " + " ".join(f"LAST JOIN r1 q{i} ON t.k = q{i}.a" for i in range(300)),
        "SELECT t.a FROM t " + " ".join(f"ASOF JOIN r1 q{i} ON t.k >= q{i}.a" for i in range(300)),
    ],
    ids=lambda sql: sql[:40],
)
def test_deep_statements_of_ours_work_or_are_refused_with_a_place(sql: str) -> None:
    refused: SqlExtError | None = None
    try:
        planned(sql)
    except SqlExtError as error:
        refused = error
    if refused is not None:
        assert "nested too deeply" in refused.message
        assert refused.help
        assert refused.span is not None
        assert 0 < refused.span.start < refused.span.end <= len(sql)


def test_joins_without_a_condition_are_read_once() -> None:
    query = parse("SELECT * FROM a JOIN b JOIN c ON a.k = c.k LEFT JOIN d ON c.k = d.k").query
    assert query is not None
    joins = query.args["joins"]
    assert [join.this.name for join in joins] == ["b", "c", "d"]
    assert [join.args["on"].sql() for join in joins] == ["TRUE", "a.k = c.k", "c.k = d.k"]
