"""What a name means inside subqueries that stay text: the innermost one wins, as in plain Spark.

Statements are generated with a few names used on every level: as tables, CTEs, aliases, columns, struct fields and
aliases of the select list. A LAST JOIN onto one row for each key is a LEFT JOIN, so that plain Spark is the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session

NAMES = ("a", "b", "c")
COLUMNS = ("a", "b", "k")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    rows = {
        "names_1": "(1, 1, 1, 5), (2, 1, 2, 6), (3, 2, 1, 7), (4, NULL, 3, 8)",
        "names_2": "(1, 2, 1, 1), (5, 1, 2, 2), (3, 3, 2, 3)",
        "names_3": "(1, 1, 1, 4), (2, 2, 2, 5), (3, 3, 3, 6)",
    }
    for name, values in rows.items():
        query = f"SELECT a, b, k, named_struct('a', v, 'k', a) AS c FROM VALUES {values} AS t(a, b, k, v)"
        spark.sql(query).createOrReplaceTempView(name)
    yield
    for name in rows:
        spark.catalog.dropTempView(name)


class _Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def column(self) -> str:
        """``a``, ``b.k`` or ``c.a``, which is a table's column or a field of the struct `c`."""
        prefix = self.random.choice(("", "", *(f"{name}." for name in NAMES)))
        return prefix + self.random.choice(COLUMNS)

    def condition(self, depth: int) -> str:
        if depth and self.random.random() < 0.25:
            kind = self.random.choice(("EXISTS ({0})", "{1} IN ({0})", "{1} >= ({0})"))
            return kind.format(self.block(depth - 1, scalar=not kind.startswith("EXISTS")), self.column())
        return f"{self.column()} {self.random.choice(('=', '<=', '<>'))} {self.column()}"

    def relation(self, alias: str, depth: int) -> str:
        table = self.random.choice(("names_1", "names_2", "names_3"))
        if depth and self.random.random() < 0.2:
            return f"(SELECT {self.column()} AS a, b, k, c FROM {table}) {alias}"
        return f"{table} {alias}"

    def block(self, depth: int, *, scalar: bool) -> str:
        aliases = self.random.sample(NAMES, 3)
        text = self.relation(aliases[0], depth)
        for alias in aliases[1 : self.random.randint(1, 3)]:
            kind = self.random.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "LEFT SEMI JOIN"))
            right = self.relation(alias, depth)
            using = self.random.random() < 0.2
            text += f" {kind} {right} " + ("USING (k)" if using else f"ON {self.condition(0)} AND {self.condition(0)}")
        name = self.random.choice((*COLUMNS, "s"))
        item = f"max({self.column()}) AS {name}" if scalar else f"{self.column()} AS {name}"
        where = f" WHERE {self.condition(depth)}" if self.random.random() < 0.8 else ""
        cte = "WITH names_2 AS (SELECT a + 1 AS a, b, k, c FROM names_1) " if self.random.random() < 0.15 else ""
        return f"{cte}SELECT {item} FROM {text}{where}"

    def statement(self) -> str:
        left, right = self.random.sample(NAMES, 2)
        items = [f"({self.block(1, scalar=True)}) AS n{number}" for number in range(2)]
        return (
            f"SELECT {left}.k AS x, {right}.a AS y, {', '.join(items)} FROM names_1 {left} "
            f"LAST JOIN names_3 {right} ON {left}.k = {right}.k WHERE {left}.a < 9 OR {self.condition(1)}"
        )


def _compare(session: Session, seeds: range) -> int:
    """How many of the statements Spark runs; ours have its rows, and what it refuses is refused."""
    ran = 0
    for seed in seeds:
        sql = _Generator(seed).statement()
        try:
            theirs = session.spark.sql(sql.replace("LAST JOIN", "LEFT JOIN"))
            expected = sorted(map(str, theirs.collect()))
        except PySparkException:
            continue
        try:
            ours = session.sql(sql)
        except SqlExtError as error:
            raise AssertionError(f"{seed}: {sql}") from error
        assert ours.dtypes == theirs.dtypes, f"{seed}: {sql}"
        assert sorted(map(str, ours.collect())) == expected, f"{seed}: {sql}"
        ran += 1
    return ran


def test_generated_statements(session: Session, tables: None) -> None:
    assert _compare(session, range(60)) >= 4


@pytest.mark.slow
def test_many_generated_statements(session: Session, tables: None) -> None:
    assert _compare(session, range(60, 1500)) >= 100


_PERIOD = "PERIOD({0}.a, {0}.a + 2) OVERLAPS PERIOD({1}.a, {1}.a + 2)"
_FORMULA = "({0}.a < {1}.a + 2 AND {1}.a < {0}.a + 2)"


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT count(*) FROM names_1 b LEFT SEMI JOIN names_2 a ON a.k = b.k",
        "SELECT max(a.k) AS s FROM names_1 a WHERE a.k > s",
        "SELECT max(z) FROM (SELECT q.k + a.a AS z FROM names_1 q)",
        "SELECT max(l.z) FROM names_2 a, LATERAL (SELECT a.k + 1 AS z) l",
        "SELECT sum(z) FROM names_2 q LATERAL VIEW explode(array(q.k, q.a)) a AS z WHERE a.z < 3",
        "SELECT max(a.a) FROM (names_1 a JOIN names_2 b ON a.k = b.a) LEFT ANTI JOIN names_3 c ON b.k = c.a + 1",
        "SELECT max(q.a) AS a FROM names_2 q WHERE q.k = a.k GROUP BY q.k HAVING max(q.a) > 0 ORDER BY a LIMIT 1",
        f"SELECT count(*) FROM names_1 b LEFT SEMI JOIN names_2 a ON a.k = b.k AND {_PERIOD.format('a', 'b')}",
        f"SELECT count(*) FROM names_2 b LEFT ANTI JOIN names_3 a ON {_PERIOD.format('a', 'b')}",
        f"SELECT count(*) FROM names_2 b LEFT ANTI JOIN names_3 q ON {_PERIOD.format('a', 'q')}",
    ],
)
def test_scopes_of_a_subquery(session: Session, tables: None, inner: str) -> None:
    source = "(SELECT 1 AS s, * FROM names_1) a"
    sql = f"SELECT a.a, ({inner}) AS n FROM {source} LAST JOIN names_3 c ON a.k = c.k"
    plain = sql.replace("LAST JOIN", "LEFT JOIN")
    for one, other in (("a", "b"), ("a", "q")):
        plain = plain.replace(_PERIOD.format(one, other), _FORMULA.format(one, other))
    assert sorted(map(str, session.sql(sql).collect())) == sorted(map(str, session.spark.sql(plain).collect()))


def test_an_outer_name_that_an_inner_column_would_capture(session: Session, tables: None) -> None:
    sql = (
        "SELECT a.k, (SELECT max(`a.k`) FROM (SELECT 7 AS `a.k`) z WHERE a.k > 0) AS n "
        "FROM names_1 a LAST JOIN names_3 c ON a.k = c.k"
    )
    with pytest.raises(SqlExtError, match="'a.k' is a column of the query around this one and of its own FROM"):
        session.sql(sql)
