"""Values in a statement's text: literals, markers, references, and the way back to the user's text."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError

from sqlext.run.parameters import bind_arguments, errors_show, format_references, literal

VALUES: list[Any] = [
    None,
    True,
    0,
    -5,
    2**31,
    -(2**63),
    1.5,
    -0.1,
    float("inf"),
    "",
    'it\'s a \\ "test"\n:x ?',
    b"\x00\xff",
    Decimal("-1.50"),
    Decimal("0.001"),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 123456),
    datetime.datetime(2024, 2, 29, 23, 59, 59, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
    datetime.timedelta(days=-1, seconds=3, microseconds=7),
    [1, 2, 3],
    {"a": 1},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_literal_is_what_lit_gives(spark: SparkSession, value: Any) -> None:
    ours = spark.sql(f"SELECT {literal(value)} AS v")
    theirs = spark.range(1).select(
        F.create_map(*[F.lit(part) for item in value.items() for part in item]).alias("v")
        if isinstance(value, dict)
        else F.lit(value).alias("v")
    )
    assert ours.schema["v"].dataType == theirs.schema["v"].dataType
    assert ours.collect() == theirs.collect()


NUMPY = (
    *(np.int8(-128), np.int16(3), np.int32(-3), np.int64(7), np.bool_(True), np.str_("a"), np.float64(0.1)),
    *(np.float32(0.1), np.float32(-1e-30), np.float64("nan"), np.float32("inf")),
)


def test_numpy_scalars_are_what_lit_gives(spark: SparkSession) -> None:
    columns = ", ".join(f"{literal(value)} AS c{number}" for number, value in enumerate(NUMPY))
    ours = spark.sql(f"SELECT {columns}")
    theirs = spark.range(1).select(*(F.lit(value).alias(f"c{number}") for number, value in enumerate(NUMPY)))
    assert ours.dtypes == theirs.dtypes
    assert str(ours.collect()) == str(theirs.collect())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(7), "7L"),
        (np.int8(-3), "(-3Y)"),
        (np.uint8(3), "3S"),
        (np.uint64(2**63), "CAST('9223372036854775808' AS DECIMAL(19, 0))"),
        (np.float64(1.5), "1.5D"),
        (np.float32(0.1), "0.1F"),
        (np.array(5), "5L"),
        (np.array([1, 2], "int16"), "array(1S, 2S)"),
        (np.datetime64("2024-02-29"), "DATE '2024-02-29'"),
        (np.datetime64("NaT"), "NULL"),
        (np.timedelta64(1500, "ms"), "INTERVAL '0 00:00:01.500000' DAY TO SECOND"),
        (np.timedelta64(5000, "ns"), "INTERVAL '0 00:00:00.000005' DAY TO SECOND"),
        (np.timedelta64("NaT"), "NULL"),
        (pd.NaT, "NULL"),
        (pd.NA, "NULL"),
        (pd.Timestamp("2024-02-29 12:00:00.000001", tz="UTC"), "TIMESTAMP '2024-02-29 12:00:00.000001+00:00'"),
        (pd.Timedelta(5, "us"), "INTERVAL '0 00:00:00.000005' DAY TO SECOND"),
    ],
    ids=repr,
)
def test_scalars_of_numpy_and_pandas_have_literals(value: Any, text: str) -> None:
    assert literal(value) == text


def test_times_without_a_zone_are_those_of_python() -> None:
    moment = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)
    assert literal(pd.Timestamp(moment)) == literal(np.datetime64(moment)) == literal(moment)
    assert literal(np.datetime64(moment, "ns")) == literal(moment)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.datetime64("2024-01-01T00:00:00.000000001"), "finer than a microsecond"),
        (np.timedelta64(5, "ns"), "finer than a microsecond"),
        (pd.Timestamp("2024-01-01 00:00:00.000000001"), "finer than a microsecond"),
        (pd.Timedelta(1, "ns"), "finer than a microsecond"),
        (np.timedelta64(5), "without a unit"),
        (np.timedelta64(5, "M"), "no fixed length"),
        (np.datetime64("20000-01-01"), "beyond the years"),
        (np.complex64(1), "has no SQL literal"),
        (np.longdouble(1.5), "has no SQL literal"),
        (pd.Series([1]), "has no SQL literal"),
    ],
    ids=repr,
)
def test_scalars_that_no_value_of_spark_is(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        literal(value)


def test_markers_in_strings_comments_and_paths_stay() -> None:
    sql = "SELECT ':a', `?`, -- :a ?\n v:a, x::int, /* ? */ :a, ? FROM t"
    assert bind_arguments(sql, {"a": 1}).sql == "SELECT ':a', `?`, -- :a ?\n v:a, x::int, /* ? */ 1, ? FROM t"


def test_positional_markers_count_only_markers() -> None:
    assert bind_arguments("SELECT '?', ?, ? /* ? */, ?", [1, "b"]).sql == "SELECT '?', 1, 'b' /* ? */, ?"


def test_markers_without_value_are_listed() -> None:
    bound = bind_arguments("SELECT :a, :b, :c", {"a": 1, "c": object()})
    assert [type(error) for error in bound.unbound] == [AnalysisError, UnsupportedError]
    assert [error.span for error in bound.unbound] == [Span(11, 13), Span(15, 17)]


@pytest.mark.parametrize(
    ("place", "original"),
    [((0, 6), (0, 6)), ((7, 14), (7, 9)), ((9, 11), (7, 9)), ((16, 20), (11, 15)), ((0, 20), (0, 15))],
)
def test_places_lead_back_to_the_users_text(place: tuple[int, int], original: tuple[int, int]) -> None:
    bound = bind_arguments("SELECT :a, rest", {"a": "it is"})
    assert bound.sql == "SELECT 'it is', rest"
    assert bound.original(Span(*place)) == Span(*original)


def test_errors_point_at_the_users_text() -> None:
    sql = "SELECT :a, rest"
    bound = bind_arguments(sql, {"a": "something long"})
    start = bound.sql.index("rest")
    with pytest.raises(AnalysisError) as caught, errors_show(sql, bound):
        raise AnalysisError("no such column", condition="unknown-column", span=Span(start, start + 4), sql=bound.sql)
    assert str(caught.value).splitlines()[-2:] == ["1 | " + sql, " " * 15 + "^^^^"]


def test_references_follow_pythons_format() -> None:
    bound = format_references("{{a}} {x} {y:.2f} {z[0]}", {"x": "s", "y": 1 / 3, "z": [7]}, lambda v: v)
    assert bound.sql == "{a} s 0.33 7"


@pytest.mark.parametrize("sql", ["SELECT {nobody}", "SELECT {x.y}", "SELECT {", "SELECT }"])
def test_wrong_references_have_a_place(sql: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        format_references(sql, {"x": 1}, lambda value: value)
    assert caught.value.span is not None
    assert caught.value.span.start == 7
