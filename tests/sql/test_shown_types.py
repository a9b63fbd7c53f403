"""Names and types of results of extension statements are what plain Spark shows: a LAST JOIN with one match a row,
beside a LEFT JOIN with the same condition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError

from sqlext import Session

pytestmark = pytest.mark.tidied

ITEMS = {
    "arrays_zip": "arrays_zip(a.arr, c.arr)",
    "arrays_zip of an expression": "arrays_zip(a.arr, transform(c.arr, x -> x + 1))",
    "arrays_zip in parentheses": "arrays_zip((a.arr), c.arr) AS z",
    "arrays_zip of one side": "arrays_zip(arr2, a.arr)",
    "nested arrays_zip": "transform(arrays_zip(a.arr2, c.arr), x -> x.arr2)",
    "struct": "struct(a.s, c.s)",
    "struct of a field": "struct(a.st.x, c.k)",
    "struct of an expression": "struct(a.k + 1, upper(c.s))",
    "array of structs": "array(struct(a.k, c.s), struct(a.k, c.s))",
    "JSON of a struct": "to_json(struct(a.k, c.s))",
    "JSON of all columns": "to_json(struct(c.*))",
    "schema of a struct": "typeof(struct(a.k, c.arr))",
    "a row constructor": "(a.k, c.s)",
    "named struct": "named_struct('p', a.k, 'q', c.s)",
    "map": "map(a.s, c.arr)",
    "a field of a struct": "struct(a.k, c.s).s",
}


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> Iterator[None]:
    arrays = "array(k, k + 1) AS arr, array(CAST(k AS STRING)) AS arr2"
    columns = f"k, concat('k', k) AS s, {arrays}, named_struct('x', k) AS st"
    spark.sql(f"SELECT {columns} FROM VALUES (1), (2), (3) AS t(k)").createOrReplaceTempView("shown_a")
    texts = "k, upper(concat('k', k)) AS s, array(k) AS arr, k * 10 AS v"
    spark.sql(f"SELECT {texts} FROM VALUES (1), (2), (4) AS t(k)").createOrReplaceTempView("shown_c")
    yield
    for name in ("shown_a", "shown_c"):
        spark.catalog.dropTempView(name)


def compare(session: Session, text: str, plain: str) -> None:
    found, expected = session.sql(text), session.spark.sql(plain)
    assert found.columns == expected.columns
    assert [item.dataType for item in found.schema] == [item.dataType for item in expected.schema] or (
        found.schema.simpleString() == expected.schema.simpleString()
    )
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(ITEMS))
def test_inner_names_show_in_no_type(session: Session, name: str) -> None:
    text = f"SELECT {ITEMS[name]} FROM shown_a a {{}} JOIN shown_c c {{}} ON a.k = c.k"
    compare(session, text.format("LAST", "ORDER BY c.v"), text.format("LEFT", ""))


@pytest.mark.spark_since("4.0", "collations")
@pytest.mark.parametrize(
    "condition",
    [
        "a.s COLLATE UTF8_LCASE = c.s",
        "a.s = c.s COLLATE UTF8_LCASE",
        "collate(a.s, 'UTF8_LCASE') = c.s AND a.k <= c.k",
        "concat(a.s, '') COLLATE UTF8_LCASE = concat(c.s, '')",
    ],
)
def test_a_key_keeps_its_collation(session: Session, condition: str) -> None:
    text = "SELECT a.k, c.v FROM shown_a a {} JOIN shown_c c {} ON " + condition
    plain = text.format("LEFT", "")
    assert any(row["v"] is not None for row in session.spark.sql(plain).collect())
    compare(session, text.format("LAST", "ORDER BY c.v"), plain)


@pytest.mark.spark_since("4.0", "collations")
def test_values_over_windows_keep_their_collation(session: Session) -> None:
    window = "(PARTITION BY 1 = 1 ORDER BY k {}BETWEEN 1 PRECEDING AND CURRENT ROW)"
    items = (
        "k, first_value(s COLLATE UTF8_LCASE) OVER w AS f, max(s COLLATE UTF8_LCASE COLLATE UTF8_BINARY) OVER w AS m"
    )
    text = f"SELECT {items} FROM shown_a WINDOW w AS {window}"
    compare(session, text.format("ROWS_RANGE "), text.format("RANGE "))
    with pytest.raises(AnalysisError, match="does not take string collate UTF8_LCASE"):
        session.sql(text.format("ROWS_RANGE ").replace(" COLLATE UTF8_BINARY", ""))


@pytest.mark.spark_since("4.0", "collations")
def test_a_scalar_subquery_keeps_its_collation(session: Session) -> None:
    text = (
        "SELECT a.k, (SELECT max(c.v) FROM shown_c c WHERE c.s = a.s COLLATE UTF8_LCASE) AS m "
        "FROM shown_a a {} JOIN shown_c d {} ON a.k = d.k"
    )
    compare(session, text.format("LAST", "ORDER BY d.v"), text.format("LEFT", ""))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("qualify", "where"),
    [
        ("n >= 2", "n >= 2"),
        ("sum(v) OVER w > 15", "t > 15"),
        ("row_number() OVER (PARTITION BY g ORDER BY v DESC) = 1", "r = 1"),
        ("n >= 2 AND count(*) OVER w < 3", "n >= 2 AND n < 3"),
    ],
)
def test_qualify_filters_the_rows_of_windows(session: Session, qualify: str, where: str) -> None:
    """Rows go after all windows are computed, as by a WHERE around the query."""
    rows = "SELECT k % 2 AS g, k AS i, CAST(k AS BIGINT) AS ts, k * 5 AS v FROM VALUES (1), (2), (3), (4), (5) AS t(k)"
    window = "WINDOW w AS (UNION u PARTITION BY g ORDER BY ts ROWS_RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)"
    session.spark.sql(rows).createOrReplaceTempView("qualified")
    session.spark.sql(rows).limit(2).createOrReplaceTempView("u")
    items = "i, count(*) OVER w AS n"
    more = ", sum(v) OVER w AS t, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS r"
    found = session.sql(f"SELECT {items} FROM qualified {window} QUALIFY {qualify} ORDER BY i")
    expected = session.sql(f"SELECT i, n FROM (SELECT {items}{more} FROM qualified {window}) WHERE {where} ORDER BY i")
    assert found.columns == ["i", "n"]
    assert found.collect() == expected.collect() != []
