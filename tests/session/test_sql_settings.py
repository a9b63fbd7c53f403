"""Spark's settings that change how a text is read: followed as plain Spark follows them, or refused by name.

The oracle is plain Spark: each statement once with LAST JOIN onto a table with one row for each key, and once with
LEFT JOIN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError, SqlExtError
from sqlext_planner.spark.versions import fixed_settings, spark_version

from sqlext import Session
from sqlext.syntax.sql_settings import SqlSettings, is_string, normal_text, string_literal, string_value

pytestmark = pytest.mark.tidied

ESCAPED = "spark.sql.parser.escapedStringLiterals"
QUOTED = "spark.sql.ansi.doubleQuotedIdentifiers"
CASE = "spark.sql.caseSensitive"

TEXTS = ["", "it's", "a\\d", "end\\", "both ' and \"", "q'\"\\", "\\'", "${spark.app.name}", "100\\%", "a\nb\0c", "é😀"]


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    rows = [(number, number % 3, text) for number, text in enumerate(TEXTS)]
    spark.createDataFrame(rows, "id int, k int, v string").createOrReplaceTempView("texts_of_settings")
    spark.sql("SELECT * FROM VALUES (0, 10), (1, 11), (2, 12) AS t(k, w)").createOrReplaceTempView("keys_of_settings")
    with _set(spark, {CASE: "true"}):
        columns = "SELECT 1 AS id, 2 AS ID, 1 AS k, named_struct('a', 5, 'A', 6) AS s"
        spark.sql(columns).createOrReplaceTempView("cased_of_settings")
        spark.sql("SELECT 1 AS k, 7 AS w").createOrReplaceTempView("Keys_Of_Settings")
    yield
    for name in ("texts_of_settings", "keys_of_settings", "cased_of_settings", "Keys_Of_Settings"):
        with _set(spark, {CASE: "true"}):
            spark.catalog.dropTempView(name)


def _both(session: Session, sql: str, settings: Mapping[str, str], **more: Any) -> None:
    """The statement has the rows, names and types of the same one with LEFT JOIN in plain Spark."""
    with _set(session.spark, settings):
        ours = session.sql(sql, **more)
        theirs = session.spark.sql(sql.replace("LAST JOIN", "LEFT JOIN"), **more)
        assert ours.dtypes == theirs.dtypes
        assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))


@pytest.mark.spark_since("4.1", "some of the settings are not in older ones")
def test_the_defaults_are_sparks_own(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    defaults = jvm.org.apache.spark.sql.internal.SQLConf()
    conf = {key: value for key in SqlSettings.names() if (value := defaults.getConfString(key)) is not None}
    assert len(conf) > 20
    assert SqlSettings.of(conf) == SqlSettings()
    assert SqlSettings.of(conf, ansi=False) == SqlSettings()  # what a session has set comes first


JOIN = "FROM texts_of_settings b LAST JOIN keys_of_settings c ON b.k = c.k"


@pytest.mark.parametrize("quoted", ["false", "true"])
@pytest.mark.parametrize("escaped", ["false", "true"])
def test_arguments_are_read_as_they_are(session: Session, tables: None, escaped: str, quoted: str) -> None:
    settings = {ESCAPED: escaped, QUOTED: quoted}
    with _set(session.spark, settings):
        shown = ", ".join(f":v{number} AS t{number}, b.v = :v{number} AS is{number}" for number in range(len(TEXTS)))
        found = session.sql(f"SELECT b.id, c.w, {shown} {JOIN}", {f"v{n}": text for n, text in enumerate(TEXTS)})
        for row in found.collect():
            assert [row[f"t{n}"] for n in range(len(TEXTS))] == TEXTS
            assert [n for n in range(len(TEXTS)) if row[f"is{n}"]] == [row.id]


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_written_literal_is_read_as_its_value(session: Session, escaped: bool, quoted: bool) -> None:
    spark, settings = session.spark, SqlSettings(escaped_strings=escaped, double_quoted_names=quoted)
    with _set(spark, {ESCAPED: str(escaped).lower(), QUOTED: str(quoted).lower()}):
        written = [string_literal(text, settings) for text in TEXTS]
        assert list(spark.sql(f"SELECT {', '.join(written)}").first() or ()) == TEXTS
    read = [string_value(text, settings) for text in written if is_string(text)]
    assert read == [text for text, literal in zip(TEXTS, written, strict=True) if is_string(literal)]


@pytest.mark.parametrize(
    "literal", [r"'it''s'", r"'a\'b'", r"'\u0041\U0001F600\101\n\t\Z\%\_\q'", r"r'a\n'", r'"x""y"']
)
def test_literals_are_read_as_spark_reads_them(spark: SparkSession, literal: str) -> None:
    assert is_string(literal)
    settings = SqlSettings.of(fixed_settings())
    assert (spark.sql(f"SELECT {literal}").first() or ())[0] == string_value(literal, settings)


@pytest.mark.parametrize("literal", ["'it''s'", '"x""y"', "'it\\'s'"])
def test_quotes_may_end_strings(spark: SparkSession, literal: str) -> None:
    setting = {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}
    with _set(spark, setting):
        read = (spark.sql(f"SELECT {literal}").first() or ())[0]
    assert read == string_value(literal, SqlSettings.of(setting))


def test_a_window_functions_text_is_read_as_spark_reads_it(session: Session, tables: None) -> None:
    sql = (
        "SELECT b.id, window_split(b.v, {}) OVER w AS parts FROM texts_of_settings b "
        "WINDOW w AS (PARTITION BY b.id ORDER BY b.id ROWS BETWEEN 0 PRECEDING AND CURRENT ROW)"
    )
    doubled = "''''" if spark_version() >= (4, 1) else r"'\''"  # before, two quotes end a literal and begin one
    for settings, literal in (({}, doubled), ({}, r"'\''"), ({ESCAPED: "true"}, '"\'"')):
        with _set(session.spark, settings):
            found = {row.id: row.parts for row in session.sql(sql.format(literal)).collect()}
        assert found[1] == ["it", "s"], literal


def test_literals_of_the_text(session: Session, tables: None) -> None:
    sql = rf"SELECT b.id, c.w, 'a\'b' AS x, '\n' AS y, b.v RLIKE '\w\\\d' AS z {JOIN} WHERE b.v <> 'a\d'"
    for escaped in ("false", "true"):
        _both(session, sql, {ESCAPED: escaped})


@pytest.mark.spark_since("4.1", "a quote in a quoted name")
def test_names_in_double_quotes(session: Session, tables: None) -> None:
    sql = (
        'SELECT "b"."id", "c"."w" + 1 AS "x ""y", \'v\' AS t FROM "texts_of_settings" "b" '
        'LAST JOIN keys_of_settings AS "c" ON b."k" = "c".k WHERE "b"."v" <> :v ORDER BY "id"'
    )
    _both(session, sql, {QUOTED: "true"}, args={"v": 'a "b"'})
    # without ANSI mode the setting means nothing: "a" is a text
    sql = f'SELECT b.id, "b" AS x, c.w {JOIN}'
    _both(session, sql, {QUOTED: "true", "spark.sql.ansi.enabled": "false"})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x.id, x.ID, x.s.a, x.s.A, c.w FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.k = c.k",
        "SELECT x.id AS Id, x.*, c.* FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.id = c.k AND ID > 1",
        "SELECT x.w, X.w FROM Keys_Of_Settings x LAST JOIN keys_of_settings X ON X.k = x.k",
        "SELECT x.id FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.k = c.k ORDER BY ID",
        "SELECT ID, max(id) AS m FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.k = c.k GROUP BY ID",
        "WITH q AS (SELECT 1 AS k, 2 AS K) SELECT q.k, q.K, c.w FROM q LAST JOIN keys_of_settings c ON q.k = c.k",
        "SELECT x.id, (SELECT max(id + ID) FROM cased_of_settings X WHERE X.ID > x.id) AS m "
        "FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.k = c.k",
        pytest.param(
            "SELECT * EXCEPT (ID) FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.id = c.k",
            marks=pytest.mark.spark_since("4.0", "EXCEPT"),
        ),
    ],
)
def test_names_that_differ_in_case(session: Session, tables: None, sql: str) -> None:
    _both(session, sql, {CASE: "true"})


@pytest.mark.parametrize("name", ["x.Id", "X.id", "x.s.B", "Keys.w", "c.W"])
def test_names_in_another_case_are_unknown(session: Session, tables: None, name: str) -> None:
    sql = f"SELECT {name} FROM cased_of_settings x LAST JOIN keys_of_settings c ON x.k = c.k"
    with _set(session.spark, {CASE: "true"}), pytest.raises(SqlExtError):
        session.sql(sql)


def test_windows_whose_names_differ_in_case(session: Session, tables: None) -> None:
    frame = "PARTITION BY k ORDER BY id ROWS{} BETWEEN {} PRECEDING AND CURRENT ROW"
    sql = (
        "SELECT id, count(id) OVER w AS a, count(id) OVER W AS b FROM texts_of_settings "
        f"WINDOW w AS ({frame}), W AS ({frame})"
    )
    with _set(session.spark, {CASE: "true"}):
        ours = session.sql(sql.format("_RANGE", 3, "_RANGE", 0)).collect()
        assert sorted(ours) == sorted((n, 1 + (n > 2), 1) for n in range(len(TEXTS)))


def test_expressions_that_differ_in_a_texts_case(session: Session, tables: None) -> None:
    """Windows and calls are told apart by their text, in which case says something only inside quotes."""
    sql = (
        "SELECT id, count_where(*, v <> 'z') OVER (PARTITION BY v = 'X' ORDER BY id {0}) AS a, "
        "count_where(*, v <> 'Z') OVER (PARTITION BY v = 'x' ORDER BY id {0}) AS b "
        "FROM VALUES (1, 'x'), (2, 'X'), (3, 'z'), (4, 'y') AS t(id, v)"
    ).format("ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW")
    assert sorted(session.sql(sql).collect()) == [(1, 1, 1), (2, 1, 1), (3, 1, 2), (4, 2, 3)]
    assert normal_text("A + 'x  Y'") == normal_text("a+'x  Y'") != normal_text("a + 'x y'")


@pytest.mark.parametrize(
    ("key", "sql"),
    [
        ("groupByOrdinal", "SELECT b.k AS kk, max(c.w) AS m {} GROUP BY 1"),
        ("groupByOrdinal", "SELECT max(c.w) AS m {} GROUP BY 1"),
        ("orderByOrdinal", "SELECT b.id, c.w {} ORDER BY 1 DESC, b.id"),
        ("groupByAliases", "SELECT b.k AS kk, max(c.w) AS m {} GROUP BY kk"),
        ("lateralColumnAlias.enableImplicitResolution", "SELECT b.k AS kk, kk + c.w AS m {}"),
    ],
)
def test_settings_of_names_and_places(session: Session, tables: None, key: str, sql: str) -> None:
    sql = sql.format(JOIN)
    for value in ("true", "false"):
        with _set(session.spark, {f"spark.sql.{key}": value}):
            try:
                session.spark.sql(sql.replace("LAST", "LEFT"))
            except PySparkException:
                with pytest.raises(SqlExtError):
                    session.sql(sql)
                continue
        _both(session, sql, {f"spark.sql.{key}": value})


def test_an_exponent_may_be_a_decimal(session: Session, tables: None) -> None:
    for value in ("true", "false"):
        sql = f"SELECT b.id, 1E3 AS x, -2e-1 AS y, c.w {JOIN}"
        _both(session, sql, {"spark.sql.legacy.exponentLiteralAsDecimal.enabled": value})


def test_variables_are_replaced_before_the_text_is_read(session: Session, tables: None) -> None:
    variables = {"our.column": "b.id", "our.table": "texts_of_settings", "our.nested": "${our.column}"}
    sql = (
        "SELECT ${our.column}, ${spark:our.nested} AS n, '${our.column}' AS t, '${our.none}' AS u, c.w "
        "FROM ${our.table} b LAST JOIN keys_of_settings c ON b.k = c.k WHERE b.v <> :v"
    )
    _both(session, sql, variables, args={"v": "${our.column}"})
    with _set(session.spark, variables), pytest.raises(SqlExtError) as error:
        session.sql(sql.replace("c.w", "c.nothing"))
    assert error.value.span is not None
    assert sql.replace("c.w", "c.nothing")[error.value.span.start : error.value.span.end] == "c.nothing"
    with _set(session.spark, {**variables, "spark.sql.variable.substitute": "false"}), pytest.raises(SqlExtError):
        session.sql(sql)


_LEGACY = "spark.sql.legacy."
REFUSED = [
    ("spark.sql.ansi.enforceReservedKeywords", "true", "SELECT b.id {}"),
    (
        "spark.sql.ansi.relationPrecedence",
        "true",
        "SELECT b.id {}, keys_of_settings d, keys_of_settings e JOIN e.k = d.k",
    ),
    ("spark.sql.parser.quotedRegexColumnNames", "true", "SELECT b.id {}"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ", "SELECT b.id {}"),
    (_LEGACY + "ctePrecedencePolicy", "LEGACY", "WITH x AS (WITH y AS (SELECT 1) SELECT * FROM y) SELECT b.id {}"),
    (_LEGACY + "interval.enabled", "true", "SELECT b.id {}"),
    (_LEGACY + "nullInEmptyListBehavior", "true", "SELECT b.id {} WHERE b.k NOT IN (SELECT 1 WHERE false)"),
    (_LEGACY + "parser.havingWithoutGroupByAsWhere", "true", "SELECT b.id {} HAVING b.id > 1"),
    (_LEGACY + "setopsPrecedence.enabled", "true", "SELECT b.id {} UNION SELECT 1 INTERSECT SELECT 2"),
]


@pytest.mark.parametrize(("key", "value", "sql"), REFUSED)
def test_what_is_not_followed_is_refused_by_name(
    session: Session, tables: None, key: str, value: str, sql: str
) -> None:
    with _set(session.spark, {key: value}):
        if "JOIN e.k" not in sql:
            with pytest.raises(ConfigurationError, match=f"{key} = {value}"):
                session.sql(sql.format(JOIN))
        assert session.sql("SELECT id FROM texts_of_settings b WHERE b.id < 2").count() == 2


def test_a_setting_that_does_not_matter_refuses_nothing(session: Session, tables: None) -> None:
    settings = {key: value for key, value, sql in REFUSED if sql != "SELECT b.id {}"}
    with _set(session.spark, settings):
        assert session.sql(f"SELECT b.id, c.w {JOIN}").count() == len(TEXTS)
