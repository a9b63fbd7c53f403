"""What OpenMLDB's scalar functions give with compat="openmldb", by the examples of its documentation and cases."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session

VALUES: list[tuple[str, Any]] = [
    ("add(1, 2)", 3),
    ("atan(0, -1)", math.pi),
    ("bigint(timestamp(1590115420001))", 1590115420001),
    ("bigint(timestamp(1000) + 5)", 1005),
    ("bigint(cast(1500 as timestamp))", 1500),
    ("bool('true')", True),
    ("ceil(1.23)", 2),
    ("char(65)", "A"),
    ("char_length('Spark SQL ')", 10),
    ("concat('1', 2, 3)", "123"),
    ("concat_ws('-', '1', 2)", "1-2"),
    ("date_format(timestamp(1590115420000), '%Y-%m-%d %H:%M:%S')", "2020-05-22 10:43:40"),
    ("date_format(date('2020-05-22'), '%d/%m/%y at %I %p')", "22/05/20 at 12 AM"),
    ("datediff('2021-05-10', '2021-05-01')", 9),
    ("day(1590115420000)", 22),
    ("dayofweek(timestamp(1590115420000))", 6),
    ("dayofyear(1590115420000)", 143),
    ("hour(1590115420000)", 10),
    ("identity(3)", 3),
    ("if_null(NULL, 2)", 2),
    ("inc(1)", 2),
    ("int16('7') + int32('8') + int64('9')", 24),
    ("is_null(NULL)", True),
    ("like_match('Mike', 'Mi_e')", True),
    ("ilike_match('Mike', 'mI%')", True),
    ("maximum(1, 2)", 2),
    ("maximum(1, CAST(NULL AS INT))", None),
    ("minimum('b', 'a')", "a"),
    ("minute(timestamp(1590115420000))", 43),
    ("nvl2(NULL, 2, 1)", 1),
    ("pmod(-10, 3)", 2),
    ("pmod(-10, 0)", None),
    ("replace('ABCabc', 'abc')", "ABC"),
    ("reverse('abc')", "cba"),
    ("split('a.b||c', '.')", ["a", "b||c"]),
    ("split('a||b|||c', '||')", ["a", "b", "|c"]),
    ("split(CAST(NULL AS STRING), ',')", []),
    ("split('abc', '')", []),
    ("split_array('2,,1,', ',')", ["2", "", "1", ""]),
    ("split_by_key('k1:1,k2,:3,k4:5:6', ',', ':')", ["k1", "", "k4"]),
    ("split_by_value('k1:1,k2,:3,k4:5:6', ',', ':')", ["1", "3", "5"]),
    ("split_by_key('a{0}b;c', ';', '{0}')", ["a"]),
    ("size(split('a b c', ' '))", 3),
    ("strcmp('text', 'text1')", -1),
    ("strcmp('text1', 'text')", 1),
    ("strcmp('a', 'a')", 0),
    ("strcmp('a', CAST(NULL AS STRING))", None),
    ("substr('hello world', 3)", "llo world"),
    ("truncate(1.7)", 1.0),
    ("truncate(-1.7)", -1.0),
    ("truncate(1e300)", 1e300),
    ("week(timestamp(1590115420000))", 21),
    ("weekofyear(30L)", 1),
    ("timestamp(1590115420000) < timestamp(1590115420000) + 1", True),
]


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> tuple[Any, ...]:
    """All in one statement; over a window of OpenMLDB's so that nothing is left to Spark's own reading."""
    spark.range(1).createOrReplaceTempView("one")
    items = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(VALUES))
    window = "OVER (PARTITION BY id ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    row = Session(spark, compat="openmldb").sql(f"SELECT {items}, count(id) {window} AS n FROM one").collect()[0]
    spark.catalog.dropTempView("one")
    return tuple(row)


@pytest.mark.few(6)
@pytest.mark.parametrize("number", range(len(VALUES)), ids=[text for text, _ in VALUES])
def test_value(values: tuple[Any, ...], number: int) -> None:
    assert values[number] == VALUES[number][1]
