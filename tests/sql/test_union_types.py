"""Columns of a window that differ in type between FROM and a source: the window reads them as Spark's UNION would."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.types import union_type

from sqlext import Session
from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage
from tests.sql.streams import SCHEMA, arrivals, drop_views, register, sorted_rows, stream_conf, streamed, write_files

pytestmark = pytest.mark.tidied

FROM = {"id": "int", "k": "int", "ts": "date", "v": "int", "d": "decimal(4,2)", "x": "double", "n": "smallint"}
SOURCE = {
    "id": "bigint",
    "k": "bigint",
    "ts": "timestamp",
    "v": "bigint",
    "d": "decimal(6,4)",
    "x": "float",
    "n": "void",
}
OTHER = {"id": "int", "k": "tinyint", "ts": "timestamp_ntz", "v": "decimal(3,1)", "d": "int", "x": "int", "n": "int"}
SHOWN = {
    "id": "int",
    "k": "int",
    "ts": "date",
    "t": "timestamp",
    "v": "decimal(21,1)",
    "d": "decimal(14,4)",
    "x": "double",
    "n": "int",
    "c": "bigint",
}
TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(4,2)", "decimal(20,0)", "decimal(30,10)"),
    *("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "void", "array<int>", "array<bigint>"),
    *("array<array<int>>", "array<array<double>>", "struct<a:int>", "interval day to second"),
)
STATEMENT = """SELECT id, k, ts, max(ts) OVER w AS t, max(v) OVER w AS v, max(d) OVER w AS d, min(x) OVER w AS x,
    last_value(n) OVER w AS n, count(v) OVER w AS c
FROM typed_from WINDOW w AS (UNION typed_source, typed_other PARTITION BY k ORDER BY ts
    ROWS_RANGE BETWEEN 2d PRECEDING AND CURRENT ROW)"""
CATALOG = DictCatalog(
    {"typed_from": FROM, "typed_source": SOURCE, "typed_other": OTHER, "texts": {**FROM, "v": "string"}}
)


def test_types_of_calls_keys_and_columns() -> None:
    for text in (STATEMENT, STATEMENT.replace("PARTITION", "BY NAME PARTITION")):
        plan = stage(text, CATALOG, Config()).analyzed
        assert plan is not None
        assert {field.column.name: field.dtype for field in plan.output} == SHOWN


def test_windows_of_a_block_have_types_of_their_own() -> None:
    text = STATEMENT.replace("AS c", "AS c, max(v) OVER u AS mine") + ", u AS (PARTITION BY k ORDER BY ts ROWS_RANGE "
    plan = stage(f"{text}BETWEEN 2d PRECEDING AND CURRENT ROW)", CATALOG, Config()).analyzed
    assert plan is not None
    assert plan.output[-1].dtype == "int"


def test_what_has_no_common_type_is_refused() -> None:
    with pytest.raises(AnalysisError, match="has type string, in FROM int") as caught:
        stage(STATEMENT.replace("typed_source, typed_other", "texts"), CATALOG, Config())
    assert caught.value.condition == "union-columns"


def test_openmldb_takes_equal_types_only() -> None:
    catalog = DictCatalog(
        {"a": {"k": "int", "ts": "bigint", "v": "int"}, "b": {"k": "int", "ts": "bigint", "v": "bigint"}}
    )
    frame = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 2 PRECEDING AND CURRENT ROW"
    text = f"SELECT max(v) OVER w AS m FROM a WINDOW w AS (UNION b {frame})"
    plan = stage(text, catalog, Config()).analyzed
    assert plan is not None
    assert plan.output[0].dtype == "bigint"
    with pytest.raises(AnalysisError, match="has type bigint, in FROM int"):
        stage(text, catalog, Config(), "openmldb")


@pytest.mark.parametrize("ansi", [True, False])
def test_common_types_are_sparks(spark: SparkSession, ansi: bool) -> None:
    pairs = [
        (left, right, kind)
        for left, right in itertools.product(TYPES, TYPES)
        if (kind := union_type(left, right, ansi=ansi)) is not None
    ]
    assert len(pairs) > 130
    sides = [
        ", ".join("NULL" if pair[side] == "void" else f"CAST(NULL AS {pair[side]})" for pair in pairs)
        for side in (0, 1)
    ]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        found = spark.sql(f"SELECT {sides[0]} UNION ALL SELECT {sides[1]}").schema
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    assert [field.dataType.simpleString() for field in found] == [kind for _, _, kind in pairs]


def test_rows_are_those_of_the_statement_with_casts(spark: SparkSession, session: Session) -> None:
    def values(shape: dict[str, str], rows: list[str]) -> str:
        casts = (name if kind == "void" else f"CAST({name} AS {kind}) AS {name}" for name, kind in shape.items())
        return f"SELECT {', '.join(casts)} FROM VALUES {', '.join(rows)} AS t({', '.join(shape)})"

    days = ["DATE'2024-01-01'", "DATE'2024-01-02'", "DATE'2024-01-03'", "NULL"]
    spark.sql(
        values(FROM, [f"({n}, {n % 2}, {days[n % 4]}, {n}, {n}.25, {n}.5, {n})" for n in range(8)])
    ).createOrReplaceTempView("typed_from")
    hours = [f"TIMESTAMP'2024-01-0{day} 11:00:00'" for day in (1, 2, 3)]
    big = 2**40
    spark.sql(
        values(SOURCE, [f"({n}, {n % 2}, {hours[n % 3]}, {big + n}, 3.1234, 0.1, NULL)" for n in range(6)])
    ).createOrReplaceTempView("typed_source")
    spark.sql(
        values(
            OTHER,
            [f"({n}, {n % 2}, {hours[n % 3].replace('STAMP', 'STAMP_NTZ')}, 12.5, {n}, {n}, 7)" for n in range(6)],
        )
    ).createOrReplaceTempView("typed_other")
    wide = {
        "id": "bigint",
        "k": "bigint",
        "ts": "timestamp",
        "v": "decimal(21,1)",
        "d": "decimal(14,4)",
        "x": "double",
        "n": "int",
    }
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in wide.items())
    by_hand = STATEMENT
    for name in ("typed_from", "typed_source", "typed_other"):
        by_hand = by_hand.replace(name, f"(SELECT {casts} FROM {name})")
    by_hand = (
        f"SELECT CAST(id AS int) AS id, CAST(k AS int) AS k, CAST(ts AS date) AS ts, t, v, d, x, n, c FROM ({by_hand})"
    )
    found, wanted = session.sql(STATEMENT), session.sql(by_hand)
    assert found.dtypes == wanted.dtypes == list(SHOWN.items())
    rows = sorted(found.collect(), key=str)
    assert rows == sorted(wanted.collect(), key=str)
    assert max(row["v"] for row in rows) > big  # rows of the sources are in the windows, uncut


@pytest.mark.slow
def test_streams_give_the_rows_of_batch(spark: SparkSession, session: Session, tmp_path: Path) -> None:
    text = (
        "SELECT k, ts, v, max(v) OVER w AS m, count(x) OVER w AS n "
        "FROM (SELECT k, ts, CAST(v AS int) AS v, x FROM typed_aX) "
        "WINDOW w AS (UNION (SELECT CAST(k AS bigint) AS k, ts, v * 10000000000 AS v, CAST(x AS float) AS x "
        "FROM typed_bX) "
        "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    )
    assert "k int" in SCHEMA
    with stream_conf(spark):
        for number, name in enumerate(("typed_a", "typed_b")):
            write_files(tmp_path / name, arrivals(number + 50, 60), 2)
            register(spark, name, tmp_path / name)
        try:
            found = streamed(session.sql(text.replace("X", "")), tmp_path)
            assert found == sorted_rows(session.sql(text.replace("X", "_t")))
            assert max(row[3] or 0 for row in found) > 2**32
        finally:
            drop_views(spark, "typed_a", "typed_b")
