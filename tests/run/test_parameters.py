"""Values in a statement's text: literals, markers, references, and the way back to the user's text."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
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


def test_numpy_scalars_have_literals() -> None:
    assert literal(np.int64(7)) == "7"
    assert literal(np.float32(0.5)) == "0.5D"


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
