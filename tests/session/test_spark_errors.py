"""Mistakes that only Spark sees, in statements that are lowered: one sentence, the user's names, the place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError

from sqlext import Session

pytestmark = pytest.mark.tidied

MARK = "/*a*/"
OVER = "WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)"


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> Iterator[None]:
    """a and b: (id, k, ts, v), no rows."""
    for name in ("a", "b"):
        spark.createDataFrame([], "id int, k string, ts timestamp, v bigint, d double").createOrReplaceTempView(name)
    yield
    for name in ("a", "b"):
        spark.catalog.dropTempView(name)


def refusal(session: Session, sql: str) -> tuple[AnalysisError, str]:
    """The error, and the text at its place. Nothing of Spark's own names and plans may show."""
    with pytest.raises(AnalysisError) as caught:
        session.sql(sql)
    error = caught.value
    shown = str(error)
    for leaked in ("SQLSTATE", "== SQL ==", "+- ", "`a.", "__sqlext", "subquery.", "#", "[UNRESOLVED"):
        assert leaked not in shown
    assert isinstance(error.__cause__, PySparkException)
    assert error.help
    assert error.span is not None
    return error, sql[error.span.start : error.span.end]


@pytest.mark.every_spark("errors point at the text")
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param("SELECT /*a*/nosuch(ts)/*a*/, sum(v) OVER w FROM a WIN", "`nosuch`", id="item"),
        pytest.param(
            "SELECT 1 + sum(v) OVER w, /*a*/upper(ts, 1, 2)/*a*/ FROM a WIN", "`upper` requires 1", id="arity"
        ),
        pytest.param("SELECT /*a*/sum(v) OVER w + ts/*a*/ FROM a WIN", '"(sum(a.v) OVER w + a.ts)"', id="call"),
        pytest.param("SELECT sum(/*a*/nosuch(v)/*a*/) OVER w FROM a WIN", "`nosuch`", id="argument"),
        pytest.param(
            "SELECT k, distinct_count(/*a*/nosuch(v)/*a*/), max(v) FROM a GROUP BY k", "`nosuch`", id="group argument"
        ),
        pytest.param(
            "SELECT distinct_count(v), /*a*/stddev(ts)/*a*/ FROM a GROUP BY k", '"a.ts"', id="aggregate beside ours"
        ),
        pytest.param("SELECT distinct_count(v) FROM a GROUP BY /*a*/nosuch(k)/*a*/", "`nosuch`", id="grouping key"),
        pytest.param(
            "SELECT /*a*/distinct_count(v) + array(k)/*a*/ FROM a GROUP BY k",
            '"(distinct_count(a.v) + array(a.k))"',
            id="over a group's call",
        ),
        pytest.param(
            "SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY /*a*/nosuch(k)/*a*/ ORDER BY ts "
            "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)",
            "`nosuch`",
            id="partition key",
        ),
        pytest.param(
            "SELECT sum(v) OVER w FROM a WHERE id > 1 AND /*a*/v + ts/*a*/ > 1 WIN", '"(a.v + a.ts)"', id="where"
        ),
        pytest.param("SELECT sum(v) OVER w FROM a WHERE /*a*/id/*a*/ WIN", "is not a boolean", id="condition"),
        pytest.param(
            "SELECT x.id, s FROM (SELECT id, sum(v) OVER w AS s FROM a WIN) x JOIN b ON /*a*/x.id + b.ts/*a*/ = b.id",
            '"(x.id + b.ts)"',
            id="on",
        ),
        pytest.param("SELECT id, sum(v) OVER w FROM a WIN ORDER BY /*a*/nosuch(id)/*a*/", "`nosuch`", id="order"),
        pytest.param(
            "SELECT count(*) FROM (SELECT k, sum(v) OVER w AS s FROM a WIN) GROUP BY k, /*a*/nosuch(k)/*a*/",
            "`nosuch`",
            id="group key",
        ),
        pytest.param(
            "SELECT k, /*a*/s/*a*/ FROM (SELECT k, sum(v) OVER w AS s FROM a WIN) GROUP BY k",
            'non-aggregating expression "s"',
            id="group item",
        ),
        pytest.param(
            "SELECT x + 1, s FROM (SELECT /*a*/nosuch(id)/*a*/ AS x, sum(v) OVER w AS s FROM a WIN)",
            "`nosuch`",
            id="merged subquery",
        ),
        pytest.param(
            "SELECT sum(v) OVER w, rank() OVER (ORDER BY /*a*/nosuch(id)/*a*/) FROM a WIN", "`nosuch`", id="window"
        ),
        pytest.param(
            "SELECT s FROM (SELECT sum(v) OVER w AS s FROM a WIN) JOIN (VALUES (/*a*/nosuch(1)/*a*/)) AS t(z)",
            "`nosuch`",
            id="values",
        ),
        pytest.param(
            "CREATE TEMP VIEW made AS SELECT /*a*/nosuch(ts)/*a*/, sum(v) OVER w FROM a WIN", "`nosuch`", id="view"
        ),
    ],
)
def test_the_place_and_the_users_names(session: Session, sql: str, message: str) -> None:
    before, guilty, after = re.sub(r"\bWIN\b", OVER, sql).split(MARK)
    error, place = refusal(session, before + guilty + after)
    assert message in error.message
    assert place == guilty


def test_names_of_internal_functions_do_not_show(session: Session) -> None:
    error, place = refusal(session, f"SELECT lag(v, 1) OVER w + ts FROM a {OVER}")
    assert '"(lag(a.v, 1) OVER w + a.ts)"' in error.message
    assert place == "lag(v, 1) OVER w + ts"


def test_what_spark_advises_is_the_help(session: Session) -> None:
    sql = f"SELECT k, s FROM (SELECT k, sum(v) OVER w AS s FROM a {OVER}) GROUP BY k"
    error, _ = refusal(session, sql)
    assert error.help is not None
    assert 'any_value(s)"' in error.help
    assert error.notes == ("Spark's error condition is MISSING_AGGREGATION",)


def test_markers_are_blamed_where_they_stand(session: Session) -> None:
    sql = f"SELECT sum(v) OVER w FROM a WHERE k = :key AND nosuch(v, :n) {OVER}"
    with pytest.raises(AnalysisError) as caught:
        session.sql(sql, {"key": "a long value", "n": 1})
    span = caught.value.span
    assert span is not None
    assert sql[span.start : span.end] == "nosuch(v, :n)"


def test_set_operations_have_no_expression_to_blame(session: Session) -> None:
    with pytest.raises(AnalysisError, match="compatible column types") as caught:
        session.sql(f"SELECT id, sum(v) OVER w FROM a {OVER} UNION ALL SELECT ts, v FROM b")
    assert "SQLSTATE" not in str(caught.value)
    assert caught.value.help is not None
    assert "first column of the second table" in caught.value.help


def test_a_float_key_known_to_spark_only_has_its_place(session: Session) -> None:
    sql = f"SELECT sum(v) OVER w FROM a {OVER}".replace("BY k", "BY sqrt(d)")
    with pytest.raises(AnalysisError, match="double") as caught:
        session.sql(sql)
    span = caught.value.span
    assert span is not None
    assert sql[span.start : span.end] == "sqrt(d)"


def test_a_statement_that_passes_through_keeps_sparks_error(session: Session) -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        session.sql("SELECT nosuch(ts) FROM a")
