"""What a name means inside subqueries that stay text: the innermost one wins, as in plain Spark.

Statements are generated with a few names used on every level: as tables, CTEs, aliases, columns, struct fields and
aliases of the select list. A LAST JOIN onto one row for each key is a LEFT JOIN, so that plain Spark is the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session

NAMES = ("a", "b", "c")
COLUMNS = ("x", "k")
STRUCT = "named_struct('k', x, 'x', k) AS c"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    rows = {
        "names_1": "(1, 1), (2, 1), (3, 2), (4, NULL)",
        "names_2": "(1, 1), (5, 2), (3, 2)",
        "names_3": "(1, 1), (2, 2), (3, 3)",
    }
    for name, values in rows.items():
        spark.sql(f"SELECT x, k, {STRUCT} FROM VALUES {values} AS t(x, k)").createOrReplaceTempView(name)
    yield
    for name in rows:
        spark.catalog.dropTempView(name)


class _Generator:
    """`names` are the aliases that a part of the statement may name: its own and those around it, where the same
    alias stands on several levels."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def column(self, names: tuple[str, ...]) -> str:
        """``x``, ``b.k`` or ``c.k``, which is a table's column or a field of the struct `c`."""
        prefix = "" if self.random.random() < 0.02 else self.random.choice(names) + "."
        return prefix + self.random.choice(COLUMNS)

    def condition(self, names: tuple[str, ...], depth: int) -> str:
        if depth and self.random.random() < 0.3:
            kind = self.random.choice(("EXISTS ({0})", "{1} IN ({0})", "{1} >= ({0})"))
            return kind.format(self.block(names, depth - 1, scalar=">=" in kind), self.column(names))
        return f"{self.column(names)} {self.random.choice(('=', '<=', '<>'))} {self.column(names)}"

    def block(self, around: tuple[str, ...], depth: int, *, scalar: bool) -> str:
        first, *others = self.random.sample(NAMES, self.random.randint(1, 3))
        text, mine = f"{self.table()} {first}", (first,)
        for alias in others:
            kind = self.random.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "LEFT SEMI JOIN"))
            both = (*mine, alias)
            right = self.table() if self.random.random() < 0.8 else f"(SELECT x + 1 AS x, k, {STRUCT} FROM names_3)"
            text += f" {kind} {right} {alias} ON {self.condition(both, 0)} AND {self.condition(both, 0)}"
            mine = mine if "SEMI" in kind or "ANTI" in kind else both
        item = self.column(mine)
        item = f"max({item}) AS {self.random.choice(COLUMNS)}" if scalar else item
        # a name that is no alias of the block any more means the outer query's: also one of a SEMI JOIN's right side
        where = f" WHERE {self.condition((*mine, *mine, *around), depth)}" if self.random.random() < 0.8 else ""
        cte = f"WITH names_2 AS (SELECT x + 1 AS x, k, {STRUCT} FROM names_1) " if self.random.random() < 0.15 else ""
        return f"{cte}SELECT {item} FROM {text}{where}"

    def table(self) -> str:
        return self.random.choice(("names_1", "names_2", "names_3"))

    def statement(self) -> str:
        names = tuple(self.random.sample(NAMES, 2))
        left, right = names
        items = [f"({self.block(names, 1, scalar=True)}) AS n{number}" for number in range(2)]
        return (
            f"SELECT {left}.k AS x, {right}.x AS y, {', '.join(items)} FROM names_1 {left} "
            f"LAST JOIN names_3 {right} ON {left}.k = {right}.k WHERE {left}.x < 9 OR {self.condition(names, 1)}"
        )


def _compare(session: Session, seeds: range) -> int:
    """How many of the statements Spark runs; ours have its rows, and what it refuses is refused."""
    ran = 0
    for seed in seeds:
        sql = _Generator(seed).statement()
        try:
            theirs = session.spark.sql(sql.replace("LAST JOIN", "LEFT JOIN"))
            expected = sorted(map(str, theirs.collect()))
        except (PySparkException, Py4JJavaError):  # refused, or an internal error of Spark's own
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
    assert _compare(session, range(15)) >= 8


@pytest.mark.slow
def test_many_generated_statements(session: Session, tables: None) -> None:
    assert _compare(session, range(15, 600)) >= 150


#: 3.5 takes fewer correlated subqueries: none with LIMIT, none below a join.
NEWER = pytest.mark.spark_since("4.0", "correlated subqueries")
_PERIOD = "PERIOD({0}.x, {0}.x + 2) OVERLAPS PERIOD({1}.x, {1}.x + 2)"
_FORMULA = "({0}.x < {1}.x + 2 AND {1}.x < {0}.x + 2)"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "inner",
    [
        "SELECT count(*) FROM names_1 b LEFT SEMI JOIN names_2 a ON a.k = b.k",
        "SELECT max(a.k) AS s FROM names_1 a WHERE a.k > s",
        "SELECT max(z) FROM (SELECT q.k + a.x AS z FROM names_1 q)",
        "SELECT max(l.z) FROM names_2 a, LATERAL (SELECT a.k + 1 AS z) l",
        "SELECT sum(z) FROM names_2 q LATERAL VIEW explode(array(q.k, q.x)) a AS z WHERE a.z < 3",
        "SELECT max(a.x) FROM (names_1 a JOIN names_2 b ON a.k = b.x) LEFT ANTI JOIN names_3 c ON b.k = c.x + 1",
        pytest.param(
            "SELECT max(q.x) AS x FROM names_2 q WHERE q.k = a.k GROUP BY q.k HAVING max(q.x) > 0 ORDER BY x LIMIT 1",
            marks=NEWER,
        ),
        f"SELECT count(*) FROM names_1 b LEFT SEMI JOIN names_2 a ON a.k = b.k AND {_PERIOD.format('a', 'b')}",
        f"SELECT count(*) FROM names_2 b LEFT ANTI JOIN names_3 a ON {_PERIOD.format('a', 'b')}",
        pytest.param(
            f"SELECT count(*) FROM names_2 b LEFT ANTI JOIN names_3 q ON {_PERIOD.format('a', 'q')}", marks=NEWER
        ),
    ],
)
def test_scopes_of_a_subquery(session: Session, tables: None, inner: str) -> None:
    source = "(SELECT 1 AS s, * FROM names_1) a"
    sql = f"SELECT a.x, ({inner}) AS n FROM {source} LAST JOIN names_3 c ON a.k = c.k"
    plain = sql.replace("LAST JOIN", "LEFT JOIN")
    for one, other in (("a", "b"), ("a", "q")):
        plain = plain.replace(_PERIOD.format(one, other), _FORMULA.format(one, other))
    assert sorted(map(str, session.sql(sql).collect())) == sorted(map(str, session.spark.sql(plain).collect()))


def test_an_outer_name_that_an_inner_column_would_capture(session: Session, tables: None) -> None:
    sql = (
        "SELECT a.k, (SELECT max(`a.k`) FROM (SELECT 7 AS `a.k`) z WHERE a.k > 0) AS n "
        "FROM names_1 a LAST JOIN names_3 c ON a.k = c.k"
    )
    with pytest.raises(SqlExtError, match=r"'a\.k' is a column of the query around this one and of its own FROM"):
        session.sql(sql)
