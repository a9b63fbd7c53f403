"""Resolved plans: the printout is the fixture, and every column in it comes from below."""

from __future__ import annotations

import pytest
import sqlglot
from packaging.version import Version
from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import SparkExpr
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Output, SubqueryAlias
from sqlext_planner.window.nodes import WindowCall, WindowUnion

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

T = {"id": "int", "k": "string", "v": "int", "d": "double", "ts": "timestamp"}
CATALOG = DictCatalog(
    {"t": T, "u": T, "s": {"k": "string", "x": "bigint", "st": "struct<a:int,b:string>"}, "sales.o": T}
)
FRAME = "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"


def plan(sql: str, compat: str | None = None) -> LogicalPlan:
    result = analyze(parse(sql, compat=compat), CATALOG)
    for node in result.walk():
        assert not node.missing_references(), node.label()
    return result


def tree(sql: str, compat: str | None = None) -> str:
    return tree_text(plan(sql, compat), details=False)


def skip_what_an_older_sqlglot_cannot_read(sql: str) -> None:
    """Spark analyses such a block, if there is one."""
    texts = ("ROLLUP (k, id) WINDOW", "UNION ALL VALUES", "LIMIT ALL")
    if Version(sqlglot.__version__) < Version("30.24") and any(text in sql for text in texts):
        pytest.skip(f"sqlglot {sqlglot.__version__} cannot read it")


#: What stands for long words in the plans below.
SHORT = {
    "FRAME": FRAME,
    "ROWS3": "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
    "CALLS": "lag(t.v, 3) AS l, count(*) AS count",
}
PLANS = [
    (
        f"SELECT k, sum(v) OVER w AS s FROM t WHERE v > 1 WINDOW w AS (UNION u PARTITION BY t.k ORDER BY ts {FRAME})",
        """\
Output: k, s
  Project: t.k, s
    WindowUnion: UNION 1 sources PARTITION BY t.k ORDER BY t.ts [w (FRAME): sum(t.v) AS s]
      Filter: t.v > 1
        Scan: t [id, k, v, d, ts]
      Scan: u [id, k, v, d, ts]""",
    ),
    (
        f"SELECT sum(v + 1) OVER w * 2 AS x, lag(v, 3) OVER w AS l, count(*) OVER w + 1 FROM t"
        f" WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME} MAXSIZE 5)",
        """\
Output: x, l, count(*) OVER w + 1
  Project: sum * 2 AS x, l, count + 1 AS count(*) OVER w + 1
    WindowUnion: PARTITION BY t.k ORDER BY t.ts [w (FRAME MAXSIZE 5): sum(t.v + 1) AS sum, CALLS]
      Scan: t [id, k, v, d, ts]""",
    ),
    (
        "SELECT *, x + 1 AS y, y * 2 AS z FROM t LEFT JOIN s USING (k) ORDER BY t.v DESC, z LIMIT 3",
        """\
Output: k, id, v, d, ts, x, st, y, z
  Limit: 3
    Sort: t.v DESC, z ASC
      Project: t.k, t.id, t.v, t.d, t.ts, s.x, s.st, s.x + 1 AS y, (s.x + 1) * 2 AS z
        Join: left ON t.k = s.k
          Scan: t [id, k, v, d, ts]
          Scan: s [k, x, st]""",
    ),
    (
        "SELECT a.v, b.v FROM t a, t b WHERE a.k = b.k AND a.v < b.v",
        """\
Output: v, v
  Project: a.v, b.v
    Filter: a.k = b.k AND a.v < b.v
      Join: cross
        Scan: t AS a [id, k, v, d, ts]
        Scan: t AS b [id, k, v, d, ts]""",
    ),
    (
        "SELECT k, st.a + 1 AS n FROM s WHERE st.b LIKE 'x%' -- why\n AND x IN (SELECT id FROM t WHERE t.k = s.k)",
        """\
Output: k, n
  Project: s.k, s.st.a + 1 AS n
    Filter: s.st.b LIKE 'x%' AND s.x IN (SELECT id FROM t WHERE t.k = s.k)
      Scan: s [k, x, st]""",
    ),
    (
        "SELECT k, sum(v) AS s FROM t GROUP BY 1 HAVING count(*) > 1 AND s > 2 ORDER BY max(d), k",
        """\
Output: k, s
  Project: t.k, s
    Sort: aggregate_2 ASC, t.k ASC
      Project: t.k, s, aggregate_2
        Filter: aggregate > 1 AND s > 2
          Aggregate: [t.k] t.k, sum(t.v) AS s, count(*) AS aggregate, max(t.d) AS aggregate_2
            Scan: t [id, k, v, d, ts]""",
    ),
    (
        "SELECT k, rank() OVER w AS r, sum(sum(v)) OVER (PARTITION BY k) AS s FROM t GROUP BY ROLLUP (k, id)"
        " WINDOW w AS (ORDER BY sum(v) DESC)",
        """\
Output: k, r, s
  Project: t.k, r, s
    Window: rank() OVER (ORDER BY aggregate DESC) AS r, sum(aggregate) OVER (PARTITION BY t.k) AS s
      Aggregate: [GROUPING SETS ((t.k, t.id), (t.k), ())] t.k, sum(t.v) AS aggregate
        Scan: t [id, k, v, d, ts]""",
    ),
    (
        "SELECT k FROM t UNION SELECT k FROM s EXCEPT ALL (SELECT 'a') ORDER BY k",
        """\
Output: k
  Sort: k ASC
    SetOperation: EXCEPT ALL
      SetOperation: UNION
        Project: t.k
          Scan: t [id, k, v, d, ts]
        Project: s.k
          Scan: s [k, x, st]
      Project: 'a' AS a
        Values: ()""",
    ),
    (
        "SELECT DISTINCT y FROM (VALUES (1, 'a'), (2, 'b')) AS n(x, y)",
        """\
Output: y
  Distinct
    Project: n.y
      Values: (1, 'a'), (2, 'b')""",
    ),
    (
        "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts) a, distinct_count(v) OVER "
        "(PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) b FROM t",
        """\
Output: a, b
  Project: a, b
    Window: sum(t.v) OVER (PARTITION BY t.k ORDER BY t.ts) AS a
      WindowUnion: PARTITION BY t.k ORDER BY t.ts [window 2 (ROWS3): distinct_count(t.v) AS b]
        Scan: t [id, k, v, d, ts]""",
    ),
]


@pytest.mark.parametrize(("sql", "expected"), PLANS)
def test_plan(sql: str, expected: str) -> None:
    skip_what_an_older_sqlglot_cannot_read(sql)
    for short, words in SHORT.items():
        expected = expected.replace(short, words)
    assert tree(sql) == expected


RESOLVES = [
    "WITH c AS (VALUES (1, 'a')) SELECT col1 + 1, col2 FROM c",
    "SELECT k FROM t UNION ALL VALUES ('x')",
    "FROM t SELECT k, v WHERE v > 1",
    "SELECT T.K, SALES.O.V FROM t, sales.o",
    "SELECT o.v, sales.o.k FROM sales.o",
    "SELECT `k`, t.`v` FROM t",
    "SELECT * EXCEPT (id, ts) FROM t",
    "SELECT t.*, s.* FROM t NATURAL JOIN s",
    "SELECT k, t.k, s.k FROM t FULL JOIN s USING (k)",
    "SELECT k FROM t JOIN s USING (k) JOIN u USING (k)",
    "SELECT a.k FROM t a LEFT SEMI JOIN s ON a.k = s.k",
    "SELECT k FROM t LEFT ANTI JOIN s USING (k)",
    "SELECT * FROM (t JOIN s ON t.k = s.k) CROSS JOIN u",
    "SELECT transform(array(1, v), e -> e + v) FROM t",
    "SELECT struct(*), count(*) OVER (PARTITION BY k), named_struct('a', v).a FROM t",
    "SELECT count(t.*), count(DISTINCT k, v), sum(v) FILTER (WHERE d > 1) FROM t",
    "SELECT timestampadd(DAY, v, ts), date_diff(DAY, ts, ts), extract(YEAR FROM ts) FROM t",
    "SELECT CASE WHEN v > 1 THEN k END AS c FROM t GROUP BY c, d WITH CUBE",
    "SELECT upper(k) AS u, count(*) FROM t GROUP BY UPPER(k) HAVING upper(k) > 'a' ORDER BY u",
    "SELECT k, grouping(k) AS g, grouping_id() FROM t GROUP BY GROUPING SETS ((k), ()) ORDER BY IF(g = 0, k, 'x')",
    "SELECT k, count(*) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT k, sum(v) / sum(d) AS r, r * 2 AS rr FROM t GROUP BY k",
    "SELECT max(v) FROM t HAVING count(*) > 0",
    "SELECT -v AS v FROM t ORDER BY v + 1",
    "WITH a AS (SELECT * FROM t), b(x, y) AS (SELECT k, v FROM a) SELECT x FROM b WHERE y > (SELECT avg(v) FROM a)",
    "SELECT (SELECT max(x) FROM s WHERE s.k = t.k AND EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.v = t.v)) FROM t",
    "SELECT 1 AS one, 'x' LIMIT ALL OFFSET 2",
    "(SELECT k FROM t ORDER BY v LIMIT 2) UNION ALL (SELECT k FROM s) LIMIT 3",
    "SELECT k FROM t GROUP BY k ORDER BY percentile_cont(0.5) WITHIN GROUP (ORDER BY v)",
    "SELECT first(v) IGNORE NULLS FROM t",
    "SELECT sum(d) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY v), x AS (w)",
]


@pytest.mark.parametrize("sql", RESOLVES)
def test_resolves(sql: str) -> None:
    skip_what_an_older_sqlglot_cannot_read(sql)
    plan(sql)


def test_relations_are_unique_in_the_whole_plan() -> None:
    result = plan("SELECT * FROM t JOIN t AS x ON t.k = x.k JOIN (SELECT k FROM t) AS y ON y.k = t.k")
    assert "Scan: t AS t_2" in tree_text(result, details=False)


def test_a_cte_used_twice_is_one_object() -> None:
    result = plan("WITH c AS (SELECT k FROM t) SELECT a.k FROM c a JOIN c b ON a.k = b.k")
    first, second = result.collect(SubqueryAlias)
    assert first.child is second.child
    assert {first.relation, second.relation} == {"a", "b"}


def test_names_of_the_result_are_the_users() -> None:
    result = plan("SELECT v, v, t.v AS V2, count(*), v + 1 FROM t GROUP BY v")
    assert isinstance(result, Output)
    assert result.names == ("v", "v", "V2", "count(1)", "(v + 1)")
    assert len(set(result.output_columns)) == 5


def test_types_are_known_where_certain() -> None:
    items = [
        "v, v + 1 AS a, v / 2 AS b, CAST(d AS decimal(10, 2)) AS c, 'x' AS e, 1.50 AS f, v > 1 AS g",
        "upper(t.k) AS h, x || 'y' AS i, NULL AS j, 3000000000 AS l, CASE WHEN v > 1 THEN v ELSE 2 END AS m, st.a AS n",
    ]
    result = plan(f"SELECT {', '.join(items)} FROM t, s")
    types = [field.dtype for field in result.output]
    wanted = [
        "int",
        "int",
        "double",
        "decimal(10,2)",
        "string",
        "decimal(3,2)",
        "boolean",
        "string",
        None,
        "void",
        "bigint",
    ]
    assert types == [*wanted, "int", "int"]


def test_text_is_the_users_own() -> None:
    result = plan("SELECT  Concat_WS ( '-',k , /* x */ `v` )  AS c FROM t")
    expression = result.collect(type(result.children[0]))[0].items[0].expression  # type: ignore[attr-defined]
    assert isinstance(expression, SparkExpr)
    assert expression.sql() == "(Concat_WS ( '-',`t.k` ,         `t.v` ))"


def test_rand_is_not_deterministic() -> None:
    project = plan("SELECT rand() AS r, v AS w FROM t").children[0]
    assert [getattr(item.expression, "deterministic", True) for item in project.items] == [False, True]  # type: ignore[attr-defined]


def test_subquery_of_an_expression_brings_its_ctes() -> None:
    text = tree("WITH c AS (SELECT k FROM t), e AS (SELECT k FROM c) SELECT v FROM t WHERE k IN (SELECT k FROM e)")
    assert "IN (WITH c AS (SELECT k FROM t), e AS (SELECT k FROM c) SELECT k FROM e)" in text


def test_extension_in_a_cte_cannot_go_into_text() -> None:
    cte = f"SELECT sum(v) OVER (PARTITION BY k ORDER BY ts {FRAME}) AS s FROM t"
    sql = f"WITH c AS ({cte}) SELECT v FROM t WHERE v = 1 OR v IN (SELECT s FROM c)"
    with pytest.raises(UnsupportedError, match="'c' contains a sqlext window"):
        plan(sql)


def test_lag_means_the_same_inside_an_expression() -> None:
    calls = _calls(
        "SELECT lag(v, 2) OVER w AS whole, (at(v, 1) OVER w) AS par, lag(v, 2) OVER w + 1 FROM t"
        f" WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME})"
    )
    assert [(call.function, call.constants) for call in calls] == [("lag", (2,)), ("lag", (1,)), ("lag", (2,))]


def test_over_after_a_scalar_function_reaches_the_aggregates_inside() -> None:
    text = tree(f"SELECT abs(sum(v) - max(d)) OVER w AS x FROM t WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME})")
    assert "Project: abs(sum - max) AS x" in text


def test_same_call_is_computed_once() -> None:
    calls = _calls(
        "SELECT sum(v) OVER w, 1 + sum(v) OVER w, 2 + sum( v ) OVER w FROM t"
        f" WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME})"
    )
    assert len(calls) == 2  # a whole item, and the two spellings inside expressions


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nested_aggregates_come_level_by_level(depth: int) -> None:
    inner = "v"
    for _ in range(depth + 1):
        inner = f"sum({inner} + count(d))" if inner != "v" else "count(v)"
    result = plan(f"SELECT k, {inner} OVER w AS x FROM t WINDOW w AS (UNION u PARTITION BY k ORDER BY ts {FRAME})")
    unions = result.collect(WindowUnion)
    assert len(unions) == depth + 1
    assert [len(node.unions) for node in unions] == [0] * depth + [1]
    assert result.output_columns[0].name == "k"


def test_openmldb_traits() -> None:
    text = tree(
        "SELECT id, k, inc(v) * 2 AS i,"
        " identity(case when !isnull(lag(v, 1)) then sum(d * 0.5) else null end) OVER w AS x, 0.5 AS h,"
        ' timestamp(1590738990000) AS z, bool(v) AS y, k == "a" AS q, FROM t WINDOW w AS'
        " (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 3 PRECEDING AND 0s PRECEDING);",
        "openmldb",
    )
    assert "sum(t.d * 0.5D) AS sum" in text
    assert "frame_at(t.v, 1)" in text
    assert "(1 + (t.v)) * 2 AS i" in text
    assert 'timestamp_millis(1590738990000) AS z, boolean(t.v) AS y, t.k = "a" AS q' in text
    assert "(case when !isnull(lag) then sum else null end) AS x, 0.5D AS h" in text


def test_every_window_is_ours_in_openmldb_mode() -> None:
    sql = "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
    assert not plan(sql).collect(WindowUnion)
    assert len(plan(sql, "openmldb").collect(WindowUnion)) == 1


@pytest.mark.parametrize(
    "sql",
    ["SELECT nope FROM t", "SELECT * FROM t PIVOT (sum(v) FOR k IN ('a'))", "SELECT * FROM t VERSION AS OF 3"],
)
def test_without_spark_what_is_not_known_is_an_error(sql: str) -> None:
    with pytest.raises(SqlExtError) as caught:
        plan(sql)
    assert caught.value.sql == sql
    assert caught.value.span is not None


def _calls(sql: str) -> list[WindowCall]:
    return [call for node in plan(sql).collect(WindowUnion) for group in node.windows for call in group.calls]


def test_union_rows_match_the_order_of_star() -> None:
    sql = (
        "SELECT count(*) OVER w FROM t JOIN s USING (k) WINDOW w AS (UNION (SELECT t.k, id, v, d, ts, x, st FROM t, s)"
    )
    sql += f" PARTITION BY k ORDER BY ts {FRAME})"
    union = plan(sql).collect(WindowUnion)[0]
    assert [column.name for column in union.source.output_columns] == ["k", "id", "v", "d", "ts", "x", "st", "k"]


def test_interval_literals_are_bounds_too() -> None:
    frame = "ROWS_RANGE BETWEEN INTERVAL '1' HOUR OPEN PRECEDING AND INTERVAL 90 SECONDS PRECEDING"
    text = tree(f"SELECT sum(v) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts {frame})")
    assert "(ROWS_RANGE BETWEEN 1h OPEN PRECEDING AND 90s PRECEDING)" in text


def test_long_chains_are_no_problem() -> None:
    condition = " OR ".join(f"v = {i}" for i in range(3000))
    plan(f"SELECT v FROM t WHERE {condition} AND {condition.replace(' OR ', ' AND ')}")


def test_very_deep_statements_are_refused_not_crashed() -> None:
    nested = "v" + " + 1 = (v" * 400 + ")" * 400
    assert parse(f"SELECT {nested} FROM t").kind == "spark"
    with pytest.raises(SqlExtError, match="nested too deeply"):
        plan(f"SELECT {nested}, distinct_count(v) OVER (PARTITION BY k) FROM t")
