"""The rows of a multi-way join are those of the binary joins (docs/reference/umjoin.md, section 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from sqlext_planner.umjoin.nodes import UMJoin

from sqlext import Session
from tests.properties import examples

TABLES = ("t", "u", "v", "none")
KEYS = ("a", "b", "c")
WAYS = ("cascade", "factorised", "operator")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """t, u, v: small integers with NULLs and duplicates, c as a string in v; none: no row."""
    rows = {
        "t": [(i % 4 if i % 5 else None, i % 3, i % 2 if i % 7 else None, i) for i in range(18)],
        "u": [(i % 3, i % 5 if i % 4 else None, i % 3, 10 * i) for i in range(14)],
        "v": [(i % 5 if i else None, i % 2, i % 3, -i) for i in range(9)],
        "none": [],
    }
    for name, data in rows.items():
        spark.createDataFrame(data, "a int, b bigint, c int, x int").coalesce(1).createOrReplaceTempView(name)
    yield
    for name in rows:
        spark.catalog.dropTempView(name)


@dataclass
class Query:
    """FROM, built input by input; `visible` are the aliases whose columns can be read."""

    text: str
    visible: list[str]
    where: list[str] = field(default_factory=list)

    def select(self, items: str, tail: str = "") -> str:
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {items} FROM {self.text}{where}{tail}"


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Two to six inputs, each joined to one of those before it, in every way that SQL has."""
    count = draw(st.integers(2, 6))
    first = draw(st.sampled_from(TABLES[:3]))
    query = Query(f"{first} i0", ["i0"])
    for number in range(1, count):
        _add(draw, query, f"i{number}")
    if draw(st.booleans()):
        query.where.append(f"{_column(draw, query.visible)} {draw(st.sampled_from(('<', '<>', '=')))} 2")
    return query


def _add(draw: st.DrawFn, query: Query, alias: str) -> None:
    # Mostly not the empty table, with which most queries have no row.
    table = draw(st.sampled_from((*TABLES[:3], *TABLES[:3], *TABLES)))
    on = " AND ".join(_terms(draw, query.visible, alias))
    kind = draw(st.sampled_from(("comma", "inner", "inner", "left", "right", "semi", "anti", "exists", "in", "scalar")))
    match kind:
        case "comma":
            query.text = f"{query.text} CROSS JOIN {table} {alias}"
            query.where.append(on)
            query.visible.append(alias)
        case "inner" | "left" | "right":
            query.text += f" {kind.upper()} JOIN {table} {alias} ON {on}"
            query.visible.append(alias)
        case "semi" | "anti":
            query.text += f" LEFT {kind.upper()} JOIN {table} {alias} ON {on}"
        case "exists":
            word = draw(st.sampled_from(("EXISTS", "NOT EXISTS")))
            query.where.append(f"{word} (SELECT 1 FROM {table} {alias} WHERE {on})")
        case "in":
            word = draw(st.sampled_from(("IN", "NOT IN")))
            query.where.append(f"{_column(draw, query.visible)} {word} (SELECT {alias}.a FROM {table} {alias})")
        case _:
            call = draw(st.sampled_from(("max(x)", "min(a)", "count(*)", "avg(x)")))
            inner = f"SELECT {call} FROM {table} {alias} WHERE {on}"
            query.where.append(f"{_column(draw, query.visible)} >= ({inner})")


def _terms(draw: st.DrawFn, visible: list[str], alias: str) -> Iterator[str]:
    yield f"{_column(draw, visible)} = {_column(draw, [alias])}"
    if draw(st.integers(0, 3)) == 0:
        yield f"{_column(draw, visible)} = {_column(draw, [alias])}"
    if draw(st.integers(0, 4)) == 0:
        yield f"{_column(draw, visible)} < {alias}.x"
    if draw(st.integers(0, 4)) == 0:
        yield f"{alias}.x <> 3"


def _column(draw: st.DrawFn, aliases: list[str]) -> str:
    return f"{draw(st.sampled_from(aliases))}.{draw(st.sampled_from(KEYS))}"


@st.composite
def statements(draw: st.DrawFn) -> str:
    """All rows, or an aggregate of them."""
    query = draw(queries())
    if draw(st.booleans()):
        return query.select(", ".join(f"{alias}.*" for alias in query.visible))
    value = f"{draw(st.sampled_from(query.visible))}.x"
    key = _column(draw, query.visible)
    items = f"count(*), sum({value}), min({value}), count({value}), avg({value})"
    return query.select(f"{key}, {items}", f" GROUP BY {key}") if draw(st.booleans()) else query.select(items)


def rows_of(frame: object) -> Counter[str]:
    """The multiset of rows; averages to ten digits."""
    rows = frame.collect()  # type: ignore[attr-defined]
    return Counter(str(tuple(round(v, 9) if isinstance(v, float) else v for v in row)) for row in rows)


def check(sql: str, spark: SparkSession) -> None:
    """Plain Spark's rows by every way."""
    expected = rows_of(spark.sql(sql))
    for way in WAYS:
        settings = {"sqlext.planner.alwaysLower": "true", "sqlext.umjoin.strategy": way}
        found = rows_of(Session(spark, config=settings).sql(sql))
        assert found == expected, f"{way}: {sql}"


@pytest.mark.usefixtures("tables")
@examples(8)
@given(sql=statements())
def test_random_statements(spark: SparkSession, sql: str) -> None:
    check(sql, spark)


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
@examples(250)
@given(sql=statements())
def test_many_random_statements(spark: SparkSession, sql: str) -> None:
    check(sql, spark)


CASES = (
    # a chain, a star and a cycle
    "SELECT i.x, j.x, k.x FROM t i, u j, v k WHERE i.a = j.a AND j.b = k.b",
    "SELECT i.x, j.x, k.x FROM t i, u j, v k WHERE i.a = j.a AND j.a = k.a",
    "SELECT i.x, j.x, k.x FROM t i, u j, v k WHERE i.a = j.a AND j.b = k.b AND k.c = i.c",
    # members of every kind on one key
    "SELECT i.x, j.x, k.x FROM t i JOIN u j ON i.a = j.a LEFT JOIN v k ON k.a = j.a LEFT SEMI JOIN u s ON s.a = i.a",
    "SELECT i.x FROM t i JOIN u j ON i.a = j.a LEFT ANTI JOIN v k ON k.b = i.b AND k.x < -3",
    # a left member's columns in WHERE, and a residual over two inputs
    "SELECT i.x FROM t i LEFT JOIN u j ON i.a = j.a JOIN v k ON k.b = i.b WHERE j.x IS NULL OR j.x < k.x + 40",
    # one table three times, int = bigint keys, an empty input
    "SELECT i.x, j.x, k.x FROM t i, t j, t k WHERE i.a = j.b AND j.b = k.c",
    "SELECT i.x, j.x, k.x FROM t i JOIN u j ON i.a = j.a LEFT JOIN none k ON k.a = j.a",
    # aggregates, with and without groups, over a left member too
    "SELECT count(*), sum(i.x), avg(k.x) FROM t i, u j, v k WHERE i.a = j.a AND j.b = k.b",
    "SELECT j.b, count(*), count(k.x), sum(k.x) FROM t i JOIN u j ON i.a = j.a LEFT JOIN v k ON k.b = j.b GROUP BY j.b",
    "SELECT count(*), sum(i.x) FROM t i, u j, none k WHERE i.a = j.a AND j.b = k.b",
)


@pytest.mark.few(3)
@pytest.mark.every_spark("multi-way joins")
@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("sql", CASES)
def test_chosen_statements(spark: SparkSession, sql: str) -> None:
    assert Session(spark).plan(sql).optimized.collect(UMJoin)  # type: ignore[union-attr]
    check(sql, spark)
