"""Scripts of OpenMLDB's: DEPLOY, CONFIG, declarations in front of the query, and CREATE TABLE as a schema."""

from __future__ import annotations

from typing import Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ParseError, SqlExtError, UnsupportedError

from sqlext.catalog import DictCatalog
from sqlext.catalog.ddl import read_ddl
from sqlext.run.pipeline import stage
from sqlext.syntax.parser import parse

QUERY = (
    "SELECT id, sum(v) OVER w AS s FROM t"
    " WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
)
CREATE = (
    "CREATE TABLE IF NOT EXISTS t(id int, k string, v double, ts timestamp,"
    " INDEX(KEY=k, TS=ts, TTL_TYPE=absandlat, TTL=(16d,10))) OPTIONS(replicanum=1);"
)


def columns(sql: str, compat: str | None = "openmldb") -> list[str]:
    catalog = DictCatalog(read_ddl(CREATE))
    analyzed = stage(sql, catalog, Config(), compat).analyzed
    assert analyzed is not None
    return [column.name for column in analyzed.output_columns]


@pytest.mark.parametrize(
    "script",
    [
        QUERY,
        f"-- define your deployment here\n{QUERY}\n;\n",
        f"DEPLOY demo {QUERY};",
        f"deploy if not exists db.demo options(SYNC='false', long_windows=\"w:1d\") {QUERY}",
        f'DEPLOY OPTIONS (SKIP_INDEX_CHECK="TRUE") demo {QUERY}',
        f"/* a */ DEPLOY `my demo` -- b\n ({QUERY})",
        f"DEPLOY demo WITH x AS (SELECT 1 AS one) {QUERY}",
        f"{QUERY} CONFIG (execute_mode = 'offline')",
        f"{QUERY} CONFIG (execute_mode = 'offline', x = (1, 2));",
        f"CREATE DATABASE IF NOT EXISTS db; USE db; SET @@execute_mode='offline'; SET GLOBAL sync_job = true;\n{CREATE}"
        f"CREATE INDEX i ON t (k) OPTIONS (ts=ts);\n{QUERY};;",
        f"{CREATE}DEPLOY demo {QUERY}",
    ],
)
def test_wrappers_leave_the_query(script: str) -> None:
    statement = parse(script, compat="openmldb")
    assert statement.kind == "query"
    assert statement.sql == script
    assert len(statement.text) == len(script)
    assert columns(script) == ["id", "s"]


def test_places_are_those_of_the_script() -> None:
    script = f"USE db;\nDEPLOY demo {QUERY.replace('sum(v)', 'sum(nope)')}"
    with pytest.raises(AnalysisError) as caught:
        columns(script)
    assert caught.value.span is not None
    assert script[caught.value.span.start : caught.value.span.end] == "nope"
    assert "query:2:" in str(caught.value)


def test_limit_around_a_deployment() -> None:
    assert columns(f"SELECT * FROM ({QUERY}) AS features LIMIT 10;") == ["id", "s"]


@pytest.mark.parametrize(
    ("script", "error", "message", "shown"),
    [
        (f"{QUERY}; SELECT 2 AS x FROM t", ParseError, "this is the second", "SELECT 2 AS x FROM t"),
        ("DEPLOY demo", ParseError, "DEPLOY needs a query", "demo"),
        ("DEPLOY demo OPTIONS(a=1) DROP TABLE t", ParseError, "DEPLOY needs a query", "DROP"),
        (f"{QUERY} CONFIG (values = (1, 'a'))", UnsupportedError, "online mode", "values = (1, 'a')"),
        ("SET @@execute_mode='online';", UnsupportedError, "variable", "SET @@execute_mode='online'"),
        ("CREATE TABLE t(a int, INDEX(KEY=a))", UnsupportedError, "no INDEX", "INDEX(KEY=a)"),
        ("LOAD DATA INFILE 'x.csv' INTO TABLE t", UnsupportedError, "LOAD DATA", "LOAD DATA INFILE"),
        (f"{QUERY} INTO OUTFILE 'x' OPTIONS(a=1)", UnsupportedError, "OUTFILE", "INTO OUTFILE 'x' OPTIONS(a=1)"),
        ("DROP DEPLOYMENT demo", UnsupportedError, "deployed", "DROP DEPLOYMENT"),
    ],
)
def test_refusals_name_the_place(script: str, error: type[SqlExtError], message: str, shown: str) -> None:
    with pytest.raises(error, match=message) as caught:
        parse(script, compat="openmldb")
    assert caught.value.help
    assert caught.value.sql == script
    assert caught.value.span is not None
    assert script[caught.value.span.start : caught.value.span.end] == shown


def test_off_without_the_option() -> None:
    with pytest.raises(ParseError, match="DEPLOY is OpenMLDB") as caught:
        parse(f"DEPLOY demo {QUERY}")
    assert "compat" in (caught.value.help or "")
    assert parse("USE db; SELECT 1").kind == "spark"
    assert parse("SET spark.sql.ansi.enabled = false", compat="openmldb").kind == "spark"
    assert parse("SELECT deploy.x FROM deploy").kind == "query"


@pytest.mark.parametrize(
    "sql", ["USE db", "CREATE DATABASE db", "CREATE TABLE t(a int)", "DROP TABLE t", "SHOW TABLES"]
)
def test_what_spark_knows_stays_spark_s(sql: str) -> None:
    assert parse(sql, compat="openmldb").kind == "spark"


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        (CREATE, {"t": {"id": "int", "k": "string", "v": "double", "ts": "timestamp"}}),
        (
            "create table db.T(a int16 not null, b int32 default 5, c int64 DEFAULT -1 NOT NULL, d Bool, e varchar(10),"
            " f VARCHAR, g date, h float, `index` bigInt, index int, INDEX i(key=(a, b), ts=`c`, ttl=0m));",
            {
                "T": {
                    "a": "smallint",
                    "b": "int",
                    "c": "bigint",
                    "d": "boolean",
                    "e": "string",
                    "f": "string",
                    "g": "date",
                    "h": "float",
                    "index": "bigint",
                }
            },
        ),
        (
            "CREATE TABLE t (m map<string, array<int>>, n decimal(10, 2))",
            {"t": {"m": "map<string,array<int>>", "n": "decimal(10,2)"}},
        ),
        ("USE db; SELECT 1; CREATE TABLE x AS SELECT 1 AS a", {}),
        ("CREATE TABLE IF NOT EXISTS t(a int); CREATE TABLE IF NOT EXISTS t(b int)", {"t": {"a": "int"}}),
    ],
)
def test_create_table_is_a_schema(ddl: str, expected: dict[str, Any]) -> None:
    if "index int" in ddl:
        with pytest.raises(AnalysisError, match="'index' is defined twice"):
            read_ddl(ddl)
        ddl = ddl.replace(" index int,", "")
    assert read_ddl(ddl) == expected


@pytest.mark.parametrize(
    ("ddl", "message", "shown"),
    [
        ("CREATE TABLE t(a int, b nope)", "'nope' is not a column type", "nope"),
        ("CREATE TABLE t(a int, A string)", "'A' is defined twice", "A"),
        ("CREATE TABLE t(a)", "'a' has no type", "a"),
        ("CREATE TABLE t LIKE PARQUET 'x'", "columns of the table are missing", "LIKE"),
        ("CREATE TABLE t(INDEX(KEY=a))", "no columns", "(INDEX(KEY=a))"),
        ("CREATE TABLE t(a int); CREATE TABLE db.t(b int)", "created twice", "t"),
        ("CREATE TABLE t(a int", "columns of the table are missing", "("),
    ],
)
def test_mistakes_in_a_schema_have_a_place(ddl: str, message: str, shown: str) -> None:
    with pytest.raises(SqlExtError, match=message) as caught:
        read_ddl(ddl)
    assert caught.value.sql == ddl
    assert caught.value.help
    assert caught.value.span is not None
    assert ddl[caught.value.span.start : caught.value.span.end] == shown
