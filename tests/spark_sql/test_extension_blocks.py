"""Blocks of extension statements mean what they mean in Spark: names, types, order, and what is refused.

`dept` has one row for each key, so that LAST JOIN gives what LEFT JOIN does: every block is run over both.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from tests.spark_sql.corpus import difference, outcome

LAST = "grp g LAST JOIN dept d ON g.k = d.dept_id"
LEFT = "grp g LEFT JOIN dept d ON g.k = d.dept_id"

BLOCKS = (
    # names of items
    "SELECT -g.a, ~a, a IN (1, 2), NOT a = 1, a <> b, a BETWEEN 1 AND 2, g.a || 'x', a::string, a - 1 FROM {FROM}",
    "SELECT d.state LIKE 'n%', CASE WHEN a > 1 THEN 'x' END, CAST(a AS DOUBLE), DATE '2020-01-01', 1.50BD FROM {FROM}",
    "SELECT state COLLATE UTF8_LCASE, substring(state, 2), trim(BOTH 'n' FROM state), (SELECT 1) + 1 FROM {FROM}",
    "SELECT sum(a) OVER (PARTITION BY d.state ORDER BY b), row_number() OVER w FROM {FROM} WINDOW w AS (ORDER BY a)",
    "SELECT sum(a) FILTER (WHERE b > 0), count(DISTINCT state), max(a) - 1, sort_array(collect_list(a)) FROM {FROM}",
    "SELECT struct(g.a, d.state), named_struct('x', a).x, array(a, b)[0], explode(array(a, b)) FROM {FROM}",
    "SELECT IDENTIFIER('a'), IDENTIFIER('d.state') FROM {FROM} ORDER BY IDENTIFIER('g.b')",
    "SELECT a AS x, x + 1, x * 2 AS y FROM {FROM}",
    "SELECT EXISTS (SELECT 1 FROM pairs WHERE pairs.a = g.a), a IN (SELECT b FROM pairs) FROM {FROM}",
    "SELECT * FROM (SELECT max(a), d.state FROM {FROM} GROUP BY d.state) WHERE `max(a)` > 1",
    "WITH c AS (SELECT a + 1, count(*) FROM {FROM} GROUP BY a + 1) SELECT `(a + 1)`, `count(1)` FROM c",
    # ORDER BY
    "SELECT a, state FROM {FROM} ORDER BY ALL DESC",
    "SELECT state, a FROM {FROM} ORDER BY ALL NULLS LAST",
    "SELECT a AS all, b FROM {FROM} ORDER BY all DESC",
    "SELECT b AS c, 2 AS b, 3 AS b FROM {FROM} ORDER BY b",
    "SELECT -a AS a FROM {FROM} ORDER BY a",
    "SELECT -a AS a FROM {FROM} ORDER BY g.a",
    "SELECT DISTINCT a FROM {FROM} ORDER BY -a",
    "SELECT DISTINCT a FROM {FROM} ORDER BY b",
    "SELECT DISTINCT a + 1 FROM {FROM} ORDER BY a + 1",
    "SELECT a, b AS a FROM {FROM} ORDER BY a",
    "SELECT a AS x, b AS x FROM {FROM} ORDER BY x",
    "SELECT a FROM {FROM} ORDER BY -1",
    "SELECT a FROM {FROM} ORDER BY 2",
    "SELECT a FROM {FROM} ORDER BY a IN (SELECT b FROM pairs), a",
    "SELECT a FROM {FROM} ORDER BY row_number() OVER (ORDER BY b)",
    "SELECT a FROM {FROM} ORDER BY max(b)",
    "SELECT k, sum(a) FROM {FROM} GROUP BY k ORDER BY rank() OVER (ORDER BY sum(a))",
    "SELECT /*+ REPARTITION(3, a) */ a FROM {FROM} ORDER BY a DESC",
    # GROUP BY and HAVING
    "SELECT k AS all, max(b) FROM {FROM} GROUP BY all",
    "SELECT state, count(*) FROM {FROM} GROUP BY ALL ORDER BY 1",
    "SELECT count(*), grouping_id() FROM {FROM} WHERE a > 100 GROUP BY GROUPING SETS (())",
    "SELECT count(*) FROM {FROM} GROUP BY GROUPING SETS ((), ())",
    "SELECT k, state, count(*), grouping__id FROM {FROM} GROUP BY ROLLUP(k, state) ORDER BY ALL",
    "SELECT k FROM {FROM} GROUP BY ROLLUP(k, ())",
    "SELECT max(a) FROM {FROM} GROUP BY WITH CUBE",
    "SELECT k AS l, l + 1 AS m FROM {FROM} GROUP BY k, m",
    "SELECT k AS l, l + 1 AS m FROM {FROM} GROUP BY l",
    "SELECT max(b) FROM {FROM} GROUP BY array(a, k) HAVING array(a, k)[0] > 1 ORDER BY array(a, k)[1]",
    "SELECT a, max(b) FROM {FROM} GROUP BY k",
    "SELECT * FROM {FROM} GROUP BY 1",
    "SELECT k, sum(sum(a)) FROM {FROM} GROUP BY k",
    "SELECT k FROM {FROM} GROUP BY k HAVING row_number() OVER (ORDER BY k) = 1",
    "SELECT a FROM {FROM} WHERE sum(a) > 1",
    # windows, IN, CTEs
    "SELECT sum(a) OVER w3 FROM {FROM} WINDOW w1 AS (ORDER BY a), w2 AS w1, w3 AS w2",
    "SELECT sum(a) OVER w2 AS s FROM {FROM} WINDOW w1 AS (ORDER BY a), w2 AS (w1)",
    "SELECT a IN () FROM {FROM}",
    "WITH c AS (SELECT 1), C AS (SELECT 2) SELECT a FROM {FROM}",
    "SELECT a + array(1) FROM {FROM}",
    "SELECT state.x FROM {FROM}",
    # FROM
    "SELECT x.y, a FROM {FROM} JOIN (VALUES 1, 2 AS v) x(y) ON x.y = g.k ORDER BY ALL",
    "SELECT v.*, a FROM {FROM} JOIN (VALUES (1 AS p, 2 AS q)) v ON v.col1 = g.k ORDER BY a",
)

#: What Spark runs and no node of ours holds: refused, with the place.
LEFT_TO_SPARK = (
    ("SELECT a, explode(map('p', b)) FROM {FROM}", "explode(map('p', b))"),
    ("SELECT posexplode(array(a)) FROM {FROM}", "posexplode(array(a))"),
    ("SELECT inline(array(struct(a, b))) AS (x, y) FROM {FROM}", "inline(array(struct(a, b))) AS (x, y)"),
    ("SELECT stack(2, a, b) FROM {FROM}", "stack(2, a, b)"),
    ("SELECT json_tuple(state, 'a', 'b') FROM {FROM}", "json_tuple(state, 'a', 'b')"),
)


@pytest.mark.few(6)
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_over_an_operator_are_sparks(block: str, session: Session, spark: SparkSession, views: None) -> None:
    native = outcome(spark.sql, block.replace("{FROM}", LEFT))
    if native.error is not None:
        with pytest.raises(SqlExtError) as refused:
            session.sql(block.replace("{FROM}", LAST))
        assert refused.value.span is not None
        return
    ours = outcome(session.sql, block.replace("{FROM}", LAST))
    assert difference(native, ours, ordered="ORDER BY" in block) is None, f"\nSpark {native}\nours  {ours}"


@pytest.mark.parametrize(("block", "place"), LEFT_TO_SPARK)
def test_generators_of_several_columns_are_refused(block: str, place: str, session: Session, views: None) -> None:
    sql = block.replace("{FROM}", LAST)
    with pytest.raises(SqlExtError, match="several columns") as refused:
        session.sql(sql)
    span = refused.value.span
    assert span is not None
    assert sql[span.start : span.end] == place
