"""The translation of scalar expressions: types, conversions, settings, and what it refuses at which place."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from sqlext_operators.expressions import nodes as operators
from sqlext_operators.expressions.functions import KERNELS
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars import patterns
from sqlext_planner.expressions.scalars.settings import ScalarSettings, known_zone
from sqlext_planner.expressions.scalars.table import TABLE
from sqlext_planner.expressions.scalars.values import Typed

from tests.planner.plans import written

COLUMNS = {
    "o": "boolean",
    "t": "tinyint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "s": "string",
    "m": "decimal(7,2)",
    "n": "decimal(38,10)",
    "y": "date",
    "z": "timestamp",
    "w": "timestamp_ntz",
    "r": "array<int>",
}
ANSI, LEGACY = ScalarSettings(True, "UTC", 17, by_rows=True), ScalarSettings(False, "UTC", 17, by_rows=True)


def translated(text: str, settings: ScalarSettings = ANSI) -> Typed:
    types = {Column("a", name): dtype for name, dtype in COLUMNS.items()}
    return OperatorExpressions(types, settings).required(written(text, {"a": COLUMNS}))


@pytest.mark.parametrize(
    ("text", "ansi", "legacy"),
    [
        ("a.i + a.l", "bigint", "bigint"),
        ("a.t * a.t", "tinyint", "tinyint"),
        ("a.i / a.l", "double", "double"),
        ("a.i + a.f", "double", "float"),
        ("a.f / a.f", "double", "double"),
        ("a.m + a.d", "double", "double"),
        ("a.m * a.m", "decimal(15,4)", "decimal(15,4)"),
        ("a.m / 3", "decimal(11,6)", "decimal(11,6)"),
        ("a.n * a.n", "decimal(38,6)", "decimal(38,6)"),
        ("a.n + a.n", "decimal(38,9)", "decimal(38,9)"),
        ("a.m % 3", "decimal(3,2)", "decimal(3,2)"),
        ("a.m DIV a.i", "bigint", "bigint"),
        ("a.i + NULL", "int", "int"),
        ("CASE WHEN a.o THEN a.i ELSE a.m END", "decimal(12,2)", "decimal(12,2)"),
        ("CASE WHEN a.o THEN a.i ELSE a.f END", "double", "float"),
        ("CASE WHEN a.o THEN a.i ELSE a.s END", "bigint", "string"),
        ("CASE WHEN a.o THEN a.y ELSE a.z END", "timestamp", "timestamp"),
        ("coalesce(a.w, a.y)", "timestamp_ntz", "timestamp_ntz"),
        ("floor(a.m)", "decimal(6,0)", "decimal(6,0)"),
        ("round(a.n, 2)", "decimal(31,2)", "decimal(31,2)"),
        ("a.y + INTERVAL 1 DAY", "date", "date"),
        ("a.y + INTERVAL 1 HOUR", "timestamp", "timestamp"),
        ("a.s || a.i", "string", "string"),
        ("a.r", "array<int>", "array<int>"),
        ("split(a.s, ',')", "array<string>", "array<string>"),
    ],
)
def test_types(text: str, ansi: str, legacy: str) -> None:
    assert [translated(text, settings).dtype for settings in (ANSI, LEGACY)] == [ansi, legacy]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("- 1.5", Decimal("-1.5")),
        ("concat('a', 'b')", "ab"),
        ("'it''s' || '\\t'", "it's\t"),
        ("CAST('12' AS bigint)", 12),
        ("if(1 > 2, 'x', NULL)", None),
        ("power(2, 10)", 1024.0),
    ],
)
def test_constants_are_computed_once(text: str, value: Any) -> None:
    expression = translated(text).expression
    assert isinstance(expression, operators.TaskConstant)
    assert expression.value == value


def test_constants_that_fail_are_errors_of_the_rows() -> None:
    assert translated("CAST('x' AS int)").expression.may_fail
    assert translated("CAST('x' AS int)", LEGACY).constant is None


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a.i + soundex(a.s)", "soundex(a.s)", "the function soundex()"),
        ("CASE WHEN a.o THEN md5(a.s) END", "md5(a.s)", "the function md5()"),
        ("CAST(a.o AS timestamp)", "CAST(a.o AS timestamp)", "CAST(a.o AS timestamp)"),
        ("a.r = a.r", "a.r = a.r", "a.r = a.r"),
        ("a.s RLIKE '(?i)x'", "a.s RLIKE '(?i)x'", "RLIKE"),
        ("a.s RLIKE a.s", "a.s RLIKE a.s", "RLIKE"),
        ("a.s LIKE 'x' ESCAPE '!'", "a.s LIKE 'x' ESCAPE '!'", "ESCAPE"),
        ("date_format(a.z, 'yyyy G')", "date_format(a.z, 'yyyy G')", "date_format()"),
        ("to_date(a.s, 'd MMM yyyy')", "to_date(a.s, 'd MMM yyyy')", "to_date()"),
        ("trim(BOTH 'x' FROM a.s)", "trim(BOTH 'x' FROM a.s)", "trim()"),
        ("a.z + INTERVAL 1 MONTH", "INTERVAL 1 MONTH", "INTERVAL 1 MONTH"),
        ("a.s || a.i + 1", "a.s || a.i + 1", "||"),
        ("concat('a' 'b', a.s)", "'a' 'b'", "'a' 'b'"),
        ("rand() > 1", "rand()", "the function rand()"),
        ("a.i + a.s", "a.i + a.s", "a.i + a.s"),
        ("a.o = a.i", "a.o = a.i", "a.o = a.i"),
        ("a.d = 1 LIKE '1'", "a.d = 1 LIKE '1'", "LIKE"),
    ],
)
def test_what_is_not_there_is_refused_at_its_place(text: str, place: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(what)) as caught:
        translated(text)
    assert caught.value.condition == "scalar-needs-spark"
    assert caught.value.span is not None
    assert f"SELECT {text}"[caught.value.span.start : caught.value.span.end] in (place, place.split(" = ")[-1])


def test_what_depends_on_the_zone_needs_one() -> None:
    unknown = ScalarSettings.of({})
    for text in (
        "hour(a.z)",
        "CAST(a.z AS date)",
        "year(a.z)",
        "a.z > a.y",
        "date_trunc('day', a.z)",
        "a.z + INTERVAL 1 DAY",
    ):
        with pytest.raises(UnsupportedError):
            translated(text, unknown)
    for text in ("hour(a.w)", "CAST(a.w AS date)", "year(a.y)", "unix_millis(a.z)", "a.w + INTERVAL 1 DAY"):
        translated(text, unknown)


def test_settings_are_followed_or_refused() -> None:
    settings = ScalarSettings.of(
        {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Shanghai"}, java=21
    )
    assert settings == ScalarSettings(False, "Asia/Shanghai", 21, by_rows=True)
    ScalarSettings.of({"spark.sql.timestampType": "timestamp_ltz", "spark.sql.shuffle.partitions": "2"})
    for key, value in (
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.legacy.whatever.comes", "true"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(key)):
            ScalarSettings.of({key: value})


@pytest.mark.parametrize(
    ("zone", "known"),
    [("UTC", "UTC"), ("Z", "UTC"), ("+8", "+08:00"), ("GMT-5:30", "-05:30"), ("Asia/Tokyo", "Asia/Tokyo")]
    + [(zone, None) for zone in ("PST", "EST", "+19:00", "Mars/Olympus", "")],
)
def test_zones(zone: str, known: str | None) -> None:
    assert known_zone(zone) == known


@pytest.mark.parametrize(
    ("java", "python"),
    [
        ("^a+b*?c{2,3}", "^a+b*?c{2,3}"),
        ("(a|b)[^x-z_]\\d", "(?:a|b)[^x-z_]\\d"),
        ("a.b", "a[^\\n\\r\\x85\\u2028\\u2029]b"),
        *((text, None) for text in ("a$", "(?i)a", "a++", "\\bx", "[a&&b]", "[[a]b]", "a**", "(a", "\\p{L}")),
        *((text, None) for text in ("*a", "a{2}{3}")),
    ],
)
def test_regular_expressions_that_mean_the_same(java: str, python: str | None) -> None:
    assert patterns.regular_expression(java) == python


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("yyyy-MM-dd", ("yyyy", "'-", "MM", "'-", "dd")),
        ("h 'o''clock' a", ("h", "' ", "'o'clock", "' ", "a")),
        ("''", ("''",)),
        *((text, None) for text in ("yyyyy", "G", "[HH]", "EEEEE", "z", "u", "'open", "{")),
    ],
)
def test_patterns_of_times(text: str, runs: tuple[str, ...] | None) -> None:
    assert patterns.time_pattern(text) == runs


def test_the_text_that_split_finds() -> None:
    assert [patterns.plain_text(text) for text in (",", "\\|", "a b", "\\.\\.")] == [",", "|", "a b", ".."]
    assert [patterns.plain_text(text) for text in ("", "|", "a+", "\\s", "[,]", "^a")] == [None] * 6


def test_every_row_has_its_kernel() -> None:
    assert [row.names for row in TABLE if row.rule is None and row.kernel not in KERNELS] == []
    assert [row.names for row in TABLE if (row.rule is None) == (row.kernel == "")] == []


def test_conditions_of_joins_stay_with_array_kernels() -> None:
    """Without `by_rows`, as in the residual of a join, what Python computes row by row is Spark's."""
    types = {Column("a", name): dtype for name, dtype in COLUMNS.items()}
    for text, mine in (
        ("abs(a.i) > 1", True),
        ("coalesce(a.d, a.i) > 1", True),
        ("CASE WHEN a.o THEN a.i ELSE a.l END > 1", True),
        ("a.i + a.f > 1", True),
        ("a.m / 2 > 1", False),
        ("upper(a.s) = 'A'", False),
        ("CAST(a.s AS int) > 1", False),
        ("a.i / a.l > 1", False),
        ("round(a.d) > 1", False),
        ("a.n * a.n > 1", False),
    ):
        found = OperatorExpressions(types, ScalarSettings(True)).condition(written(text, {"a": COLUMNS}))
        assert (found is not None) is mine, text
