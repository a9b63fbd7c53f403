"""`enable` gives spark.sql to the extension, `disable` gives it back, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.errors import AnalysisError, ConfigurationError

import sqlext
from sqlext import Session

pytestmark = pytest.mark.tidied

WINDOW = "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"


@pytest.fixture(autouse=True)
def table(spark: SparkSession) -> Iterator[None]:
    spark.createDataFrame([("a", 1, 2), ("a", 3, 4)], "k string, ts int, v int").createOrReplaceTempView("enabled_t")
    yield
    vars(spark).pop("sql", None)


@pytest.mark.every_spark("`enable` on your SparkSession")
def test_spark_sql_takes_the_extension_and_is_given_back(spark: SparkSession) -> None:
    sqlext.enable(spark)
    assert sorted(spark.sql(f"SELECT sum(v) OVER w AS s FROM enabled_t {WINDOW}").collect()) == [(2,), (6,)]
    assert (
        spark.sql("SELECT count(*) AS n FROM {t} WHERE v > :least", {"least": 2}, t=spark.table("enabled_t"))
        .collect()[0]
        .n
        == 1
    )
    with pytest.raises(AnalysisError, match="'vv' not found"):
        spark.sql(f"SELECT sum(vv) OVER w FROM enabled_t {WINDOW}")
    sqlext.disable(spark)
    assert "sql" not in vars(spark)
    sqlext.disable(spark)  # once more: nothing to do


def test_what_others_hold_is_the_same_object(spark: SparkSession) -> None:
    sqlext.enable(spark)
    frame = SparkSession.builder.getOrCreate().sql(f"SELECT sum(v) OVER w AS s FROM enabled_t {WINDOW}")
    assert frame.sparkSession.sql(f"SELECT max(v) OVER w AS s FROM enabled_t {WINDOW}").count() == 2


def test_a_session_at_work_asks_spark_itself(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of its questions would be planned as a statement of the user's."""
    planned: list[str] = []
    answer = Session.sql

    def seen(self: Session, sqlQuery: str, *args: object, **kwargs: object) -> DataFrame:  # noqa: N803
        planned.append(sqlQuery)
        return answer(self, sqlQuery, *args, **kwargs)

    monkeypatch.setattr(Session, "sql", seen)
    sqlext.enable(spark)
    text = f"SELECT sum(v) OVER w AS s, k || 'x' FROM enabled_t {WINDOW}"
    spark.sql(text)
    Session(spark).sql(text)
    assert planned == [text, text]


def test_once_more_with_another_mode(spark: SparkSession) -> None:
    assert sqlext.enable(spark).compat is None
    session = sqlext.enable(spark, compat="openmldb", config={"sqlext.planner.alwaysLower": "true"})
    assert session.compat == "openmldb"
    spark.sql(f"SELECT sum(v) OVER w AS s FROM enabled_t {WINDOW}")
    with pytest.raises(ConfigurationError):
        sqlext.enable(spark, compat="sqlite")
    sqlext.disable(spark)
    assert "sql" not in vars(spark)


def test_others_that_replace_spark_sql(spark: SparkSession) -> None:
    import functools

    before = spark.sql

    @functools.wraps(before)
    def traced(*args: object, **kwargs: object) -> DataFrame:
        return before(*args, **kwargs)

    vars(spark)["sql"] = traced
    sqlext.enable(spark)
    sqlext.disable(spark)
    assert vars(spark)["sql"] is traced
    sqlext.enable(spark)
    vars(spark)["sql"] = functools.wraps(spark.sql)(lambda *args: None)
    with pytest.raises(ConfigurationError, match="replaced by something else"):
        sqlext.disable(spark)


@pytest.mark.every_spark("OpenMLDB's arithmetic")
def test_openmldb_has_its_own_arithmetic_and_time_zone(spark: SparkSession) -> None:
    """For its statements only: those of Spark before and after keep Spark's."""
    key, zone = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
    before = (spark.conf.get(key), spark.conf.get(zone))
    openmldb = Session(spark, compat="openmldb")
    text = "SELECT string(timestamp_millis(1590738989000)) AS t, int('x') AS n, {n} AS z"
    frame = openmldb.sql(text, n="1")
    assert (spark.conf.get(key), spark.conf.get(zone)) == before
    assert frame.collect() == [("2020-05-29 15:56:29", None, "1")]
    given = Session(spark, compat="openmldb", config={zone: "UTC"})
    assert given.sql(text, n="1").collect()[0].t == "2020-05-29 07:56:29"
    try:
        openmldb.sql(f"SET {zone} = Europe/Berlin")
        assert spark.conf.get(zone) == "Europe/Berlin"  # what a statement sets stays
    finally:
        spark.conf.set(zone, before[1])
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql("SELECT int('x')").collect()
