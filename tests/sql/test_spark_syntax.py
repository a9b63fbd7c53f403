"""Spark's session variables and paths into VARIANT beside our windows; what holds whole statements is refused."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import ParseError

from sqlext import Session
from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage
from sqlext.syntax.base_parser import VariantPath
from sqlext.syntax.parser import parse

pytestmark = pytest.mark.tidied

OVER = "OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)"
CATALOG = DictCatalog({"t": {"k": "int", "ts": "bigint", "v": "int", "j": "variant"}})


@pytest.mark.parametrize(
    ("item", "path", "rest"),
    [
        ("j:p", "p", ""),
        ("t.j:a.b[0]['c d'].e::int", "a.b[0]['c d'].e", "::int"),
        ("j:`a b`[*] AS z", "`a b`[*]", " AS z"),
        ("parse_json(x):p", "p", ""),
        ("j:[0].x", "[0].x", ""),
        ("x[j:p::int]", "p", "::int]"),
    ],
)
def test_a_path_is_one_node(item: str, path: str, rest: str) -> None:
    statement = parse(f"SELECT {item} FROM t")
    assert statement.query is not None
    (found,) = statement.query.find_all(VariantPath)
    assert found.args["path"] == path
    start, end = found.meta["span"]
    assert statement.sql[end:] == f"{rest} FROM t"
    assert ":" in statement.sql[start:end]
    assert path in statement.query.sql("sqlext")


def test_paths_are_parts_of_our_statements() -> None:
    plan = stage(
        f"SELECT j:p, sum(j:p::int + v) {OVER} AS s FROM t WHERE j:q::string > 'a'", CATALOG, Config()
    ).analyzed
    assert plan is not None
    assert len(plan.names) == 2
    assert "j:p::int" in "".join(str(node.label()) for node in plan.walk()).replace("t.", "")


@pytest.mark.parametrize(
    ("text", "place", "help"),
    [
        (f"EXECUTE IMMEDIATE 'SELECT sum(v) {OVER} FROM t' USING 1", "'SELECT", "run the text itself"),
        ('execute immediate "SELECT * FROM t LAST JOIN u ON t.k = u.k"', '"SELECT', "run the text itself"),
        (f"BEGIN SELECT sum(v) {OVER} FROM t; END", "BEGIN", "one by one"),
        ("main: BEGIN DECLARE x INT; SELECT PERIOD(1, 2) OVERLAPS PERIOD(x, 3); END main", "BEGIN", "one by one"),
        (f"FROM t |> SELECT sum(v) {OVER}", "|>", "make a view"),
    ],
)
def test_statements_that_hold_others_refuse_ours(text: str, place: str, help: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert error.span is not None
    assert text[error.span.start :].startswith(place)
    assert help in (error.help or "")


@pytest.mark.parametrize(
    "text",
    ["EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE IMMEDIATE query USING 1", "BEGIN SELECT 1; END", "FROM t |> LIMIT 1"],
)
def test_without_our_syntax_they_are_sparks(text: str) -> None:
    assert parse(text).kind == "spark"


@pytest.mark.spark_since("4.1", "variables, paths of variants")
def test_variables_and_paths_have_sparks_values(spark: SparkSession, session: Session) -> None:
    spark.sql(
        "SELECT id, id % 2 AS k, id AS ts, 10 * id AS v, "
        "parse_json('{\"p\": ' || id || ', \"q\": [7]}') AS j FROM range(8)"
    ).createOrReplaceTempView("spark_syntax")
    spark.sql("DECLARE OR REPLACE VARIABLE `far away` INT DEFAULT 3")
    spark.sql("DECLARE OR REPLACE VARIABLE v INT DEFAULT 100")  # the column comes first
    try:
        items = f"sum(v + {{}}) {OVER} AS a, sum(j:p::int + j:q[0]::int) {OVER} AS b, {{}} AS c"
        text = f"SELECT id, {items} FROM spark_syntax WHERE v < {{}} * 20"
        wanted = text.replace("j:p::int", "variant_get(j, '$.p', 'int')").replace("j:q[0]::int", "7").replace("{}", "3")
        rows = sorted(session.sql(wanted).collect())
        assert len(rows) == 6
        for written in ("`far away`", "session.`far away`", "System.Session.`far away`"):
            found = session.sql(text.replace("{}", written))
            assert sorted(found.collect()) == rows
            assert dict(found.dtypes)["c"] == "int"
    finally:
        spark.sql("DROP TEMPORARY VARIABLE `far away`")
        spark.sql("DROP TEMPORARY VARIABLE v")
