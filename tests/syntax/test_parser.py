"""Kinds of statements, places in the text, and what is left to Spark."""

from __future__ import annotations

import pytest
from sqlext_planner.errors import ParseError
from sqlglot import exp

from sqlext.syntax.parser import parse
from sqlext.syntax.spans import span_of

OURS = "SELECT sum(v) OVER (UNION u PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW) FROM t"
ASOF = "SELECT * FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k"
LAST = "SELECT t.v, u.v FROM t LAST JOIN u ORDER BY u.ts ON t.k = u.k"
SPARKS = "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t"


@pytest.mark.parametrize(
    ("sql", "kind", "extension"),
    [
        (OURS, "query", True),
        (OURS + ";", "query", True),
        (SPARKS, "query", False),
        (f"({OURS}) UNION ALL ({SPARKS}) ORDER BY 1", "query", True),
        (f"WITH c AS ({OURS}) SELECT * FROM c", "query", True),
        (f"CREATE TABLE x AS {OURS}", "wrapped", True),
        (f"CREATE OR REPLACE TEMP VIEW x AS {OURS}", "wrapped", True),
        (f"INSERT INTO x {OURS}", "wrapped", True),
        (f"INSERT OVERWRITE TABLE x {SPARKS}", "wrapped", False),
        (LAST, "query", True),
        (f"WITH c AS ({LAST}) SELECT * FROM c", "query", True),
        (f"SELECT * FROM ({LAST}) c, d", "query", True),
        (f"CREATE TABLE x AS {LAST}", "wrapped", True),
        (f"INSERT INTO x {LAST}", "wrapped", True),
        (f"{LAST} UNION ALL SELECT 1", "query", True),
        ("SELECT last(v), last FROM t AS last JOIN u ON last.k = u.k", "query", False),
        ("SELECT * FROM t `last` JOIN u ON last.k = u.k", "query", False),
        ("SELECT * FROM t last WHERE last.k > 1", "query", False),
        ("SELECT * FROM last JOIN u ON last.k = u.k", "query", False),
        ("SELECT * FROM t AS last JOIN u garbage ( garbage", "spark", False),
        ("SELECT distinct_count(v) OVER w FROM t WINDOW w AS (PARTITION BY k)", "query", True),
        ("SELECT distinct_count(v) FROM t", "query", True),
        ("SHOW TABLES", "spark", False),
        ("SET x = 1", "spark", False),
        ("this is no SQL at all (", "spark", False),
        ("", "spark", False),
        ("SELECT 1; SELECT 2", "spark", False),
        ("SELECT 'ROWS_RANGE BETWEEN 1 PRECEDING AND' FROM FROM", "spark", False),
        (ASOF, "query", True),
        (f"INSERT INTO x {ASOF}", "wrapped", True),
        ("SELECT asof.k, match_condition FROM t AS asof JOIN u ON asof.k = u.k", "query", False),
        ("SELECT * FROM t AS asof LEFT JOIN u ON asof.k = u.k", "query", False),
        ("SELECT * FROM t `asof` JOIN u `match_condition` ON asof.k = match_condition.k", "query", False),
        ("SELECT * FROM asof JOIN match_condition ON asof.k = match_condition.k", "query", False),
        ("SELECT asof, match_condition(asof) FROM t WHERE asof > 1", "query", False),
        ("SELECT * FROM t AS asof JOIN u garbage ( garbage", "spark", False),
        ("SELECT * FROM a JOIN u match_condition garbage ( garbage", "spark", False),
    ],
)
def test_kinds(sql: str, kind: str, extension: bool) -> None:
    statement = parse(sql)
    assert (statement.kind, statement.uses_extension) == (kind, extension)
    assert statement.sql == sql


def test_query_span_of_a_wrapped_statement() -> None:
    sql = f"CREATE TABLE x USING parquet AS WITH c AS (SELECT 1) {OURS}"
    span = parse(sql).query_span
    assert span is not None
    assert sql[span.start : span.end] == f"WITH c AS (SELECT 1) {OURS}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(v) OVER (UNION u PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW FROM t",
        "SELECT sum(v) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h AND CURRENT ROW)",
        "SELECT sum(v OVER w FROM t WINDOW w AS (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)",
        "SELECT distinct_count(v OVER (PARTITION BY k FROM t",
        "SELECT * FROM t LAST JOIN u ON",
        "SELECT * FROM t NATURAL LAST JOIN u",
        "SELECT * FROM t LAST JOIN",
    ],
)
def test_broken_extension_syntax_is_an_error_with_a_place(sql: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(sql)
    assert caught.value.span is not None
    assert "^" in str(caught.value)


def test_a_missing_table_is_told_in_words() -> None:
    with pytest.raises(ParseError, match="expected a table, found the end of the text"):
        parse("SELECT * FROM t LAST JOIN")
    with pytest.raises(ParseError, match=r"expected a table, found 'ON'"):
        parse("SELECT * FROM t LAST JOIN ON t.k = 1")


def test_comments_are_blanked_and_offsets_kept() -> None:
    sql = "SELECT a -- one 'quote\n, /* two */ b + c FROM t -- end"
    statement = parse(sql)
    assert statement.text.split() == ["SELECT", "a", ",", "b", "+", "c", "FROM", "t"]
    assert len(statement.text) == len(sql)
    assert statement.query is not None
    places = [span_of(item) for item in statement.query.expressions]
    assert [statement.text[place.start : place.end] for place in places] == ["a", "b + c"]


EXPRESSIONS = [
    "a",
    "t.a",
    "db.t.a",
    "`odd name`",
    "a + b * c",
    "(a + b) * c",
    "NOT a",
    "!a",
    "-a",
    "a = b",
    "a == b",
    "a <=> b",
    "a AND b OR c",
    "a IS NULL",
    "a IS NOT NULL",
    "a IN (1, 2)",
    "a NOT IN (SELECT x FROM y)",
    "a BETWEEN 1 AND 2",
    "a LIKE 'x%' ESCAPE '!'",
    "a RLIKE 'x'",
    "CASE WHEN a THEN b ELSE c END",
    "CASE a WHEN 1 THEN 2 END",
    "CAST(a AS decimal(10, 2))",
    "a::int",
    "int(a)",
    "string(a)",
    "f(a, b)",
    "count(*)",
    "count(DISTINCT a, b)",
    "sum(a) FILTER (WHERE b > 1)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
    "first(a) IGNORE NULLS",
    "a[1]",
    "array(a, b)[0]",
    "a.b.c.d.e.f",
    "map('k', a)['k']",
    "transform(a, x -> x + b)",
    "EXISTS (SELECT 1 FROM y)",
    "(SELECT max(x) FROM y)",
    "5L",
    "1.5BD",
    "1e3",
    "'it''s'",
    '"double"',
    "X'1F'",
    "date '2020-01-01'",
    "INTERVAL 1 DAY",
    "INTERVAL '1-2' YEAR TO MONTH",
    "current_date",
    "extract(year FROM a)",
    "trim(BOTH 'x' FROM a)",
    "substring(a FROM 1 FOR 2)",
    "position('a' IN b)",
    "a || b",
    "a DIV 2",
    "a % 2",
    "sum(a) OVER w",
    "sum(a) OVER (PARTITION BY b ORDER BY c)",
    "f(x => 1)",
    "struct(a AS b)",
    "named_struct('a', 1).a",
    "if(a, b, c)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_spans_are_exact(expression: str) -> None:
    sql = f"SELECT /* before */ {expression} /* after */ , {expression} AS named, 1 FROM t"
    query = parse(sql).query
    assert query is not None
    first, second, _ = query.expressions
    for node in (first, second.this):
        span = span_of(node)
        assert sql[span.start : span.end] == expression


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_spans_of_operands_are_exact(expression: str) -> None:
    sql = f"SELECT 1 FROM t WHERE ({expression}) = 1 AND x < ( {expression} )"
    query = parse(sql).query
    assert query is not None
    condition = query.args["where"].this
    for operand in (condition.left.left, condition.right.right):
        assert isinstance(operand, (exp.Paren, exp.Subquery))
        span = span_of(operand)
        assert sql[span.start : span.end].strip("( )") == f"({expression})".strip("( )")


@pytest.mark.parametrize("relation", ["OVERLAPS", "BEFORE"])
def test_a_query_of_all_columns_may_be_a_period(relation: str) -> None:
    """It is no star, after which no relation can follow."""
    assert parse(f"SELECT 1 FROM t WHERE (SELECT * FROM p) {relation} PERIOD(a, b)").kind == "query"
