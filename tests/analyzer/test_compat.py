"""OpenMLDB's dialect traits: on with compat="openmldb", off without."""

from __future__ import annotations

import re

import pytest
from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.plan_format import tree_text

from sqlext.analyzer.compat_functions import datetime_pattern
from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

CATALOG = DictCatalog(
    {
        "t": {"id": "int", "k": "string", "v": "int", "b": "bigint", "d": "double", "ts": "timestamp", "day": "date"},
    }
)
W = "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
MS = "INTERVAL '0.001' SECOND"


def item(expression: str, compat: str | None = "openmldb") -> str:
    """The text that an expression of the select list becomes."""
    plan = analyze(parse(f"SELECT {expression} AS x FROM t", compat=compat), CATALOG)
    line = next(line for line in tree_text(plan, details=False).splitlines() if "Project" in line)
    return line.strip().removeprefix("Project: ").removesuffix(" AS x")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0.5", "0.5D"),
        ("0.5f", "0.5f"),
        ("5L", "5L"),
        ('k == "a"', 't.k = "a"'),
        ("k = null", "t.k = null"),
        ("k != null", "t.k <> null"),
        ("!isnull(`k`)", "!isnull(t.k)"),
        ("! v = b", "! t.v = t.b"),
        ("`string`(v)", "`string`(t.v)"),
        ("int(d)", "int(t.d)"),
        ("bool(k)", "boolean(t.k)"),
        ("int16(k)", "smallint(t.k)"),
        ("`int64`(k)", "bigint(t.k)"),
        ("cast(k as bool)", "cast(t.k as boolean)"),
        ("cast(k as int32)", "cast(t.k as int)"),
        ("cast(k as varchar)", "cast(t.k as string)"),
        ("timestamp(b)", "timestamp_millis(t.b)"),
        ("timestamp('2020-01-01')", "timestamp('2020-01-01')"),
        ("cast(b as timestamp)", "cast(timestamp_millis(t.b) as timestamp)"),
        ("bigint(ts)", "bigint(unix_millis(t.ts))"),
        ("double(ts)", "double(unix_millis(t.ts))"),
        ("cast(ts as bigint)", "cast(unix_millis(t.ts) as bigint)"),
        ("bigint(v)", "bigint(t.v)"),
        ("ts + 5", f"t.ts + ({MS} * (5))"),
        ("v + ts", f"({MS} * (t.v)) + t.ts"),
        ("ts - 86400000 - 1", f"t.ts - ({MS} * (86400000)) - ({MS} * (1))"),
        ("month(ts + (v + 1))", f"month(t.ts + ({MS} * ((t.v + 1))))"),
        ("bigint(ts + v) - bigint(ts)", f"bigint(unix_millis(t.ts + ({MS} * (t.v)))) - bigint(unix_millis(t.ts))"),
        ("add(ts, v)", f"(t.ts + {MS} * (t.v))"),
        ("add(v, ts)", f"(t.ts + {MS} * (t.v))"),
        ("add(v, 0.5)", "(t.v + 0.5D)"),
        ("v + 5", "t.v + 5"),
        ("dayofweek(b)", "dayofweek(timestamp_millis(t.b))"),
        ("week(b)", "weekofyear(timestamp_millis(t.b))"),
        ("week(day)", "weekofyear(t.day)"),
        ("hour(ts)", "hour(t.ts)"),
        ("if_null(v, 0.5)", "ifnull(t.v, 0.5D)"),
        ("is_null(v)", "isnull(t.v)"),
        ("identity(v)", "(t.v)"),
        ("inc(inc(v))", "(1 + (((1 + (t.v)))))"),
        ("atan(v, d)", "atan2(t.v, t.d)"),
        ("atan(d)", "atan(t.d)"),
        ("pmod(v, b)", "pmod(t.v, nullif(t.b, 0))"),
        ("truncate(d)", "(double(t.d) - double(t.d) % 1)"),
        ("like_match(k, 'a%')", "like(t.k, 'a%')"),
        ("date_format(ts, '%Y-%m-%dT%H:%M:%S')", "date_format(t.ts, 'yyyy-MM-dd\\'T\\'HH:mm:ss')"),
        ("date_format(ts, 'yyyy')", "date_format(t.ts, 'yyyy')"),
        ("char_length(k) + length(k)", "char_length(t.k) + length(t.k)"),
        ("substr(k, 1, 2)", "substr(t.k, 1, 2)"),
        ("log(d)", "log(t.d)"),
    ],
)
def test_what_a_scalar_expression_becomes(written: str, read: str) -> None:
    assert item(written) == read


@pytest.mark.parametrize(
    "written",
    ["0.5", "ts + 5", "inc(v)", "bigint(ts)", "date_format(ts, '%Y')", "timestamp(b)", "week(b)", "bool(v)"],
)
def test_off_without_the_option(written: str) -> None:
    names = {"ts": "t.ts", "v": "t.v", "b": "t.b"}
    expected = "".join(names.get(part, part) for part in _words(written))
    assert item(written, None) == expected


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\W", text)


def test_window_calls_know_their_type() -> None:
    sql = f"SELECT bigint(ts) - bigint(lag(ts, 1) OVER w) AS gap, hour(last_value(b) OVER w) AS h FROM t {W}"
    text = tree_text(analyze(parse(sql, compat="openmldb"), CATALOG), details=False)
    assert "bigint(unix_millis(t.ts)) - bigint(unix_millis(" in text
    assert "hour(timestamp_millis(" in text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("`join`(window_split(k, ','), ' ') OVER w", "concat_ws(' ', window_split)"),
        ("fz_join(fz_window_split(k, ','), ' ') OVER w", "concat_ws(' ', fz_window_split)"),
        ("fz_join(window_split(k, ',') OVER w, ' ')", "concat_ws(' ', window_split)"),
        ("count(window_split(k, ',')) OVER w", "bigint(size(window_split))"),
        ("1 + Count(window_split_by_key(k, ',', ':')) OVER w", "1 + bigint(size(window_split_by_key))"),
        ("distinct_count(split(k, '')) OVER w", "bigint(size(array_distinct((CAST(array() AS array<string>)))))"),
        (
            "case when !isnull(lag(k, 0)) then distinct_count(window_split(k, ',')) end OVER w",
            "case when !isnull(lag) then bigint(size(array_distinct(window_split))) end",
        ),
    ],
)
def test_lists_over_a_window(written: str, read: str) -> None:
    """Aggregates around the split functions are about one list's parts, not about the window's rows."""
    plan = analyze(parse(f"SELECT {written} AS x FROM t {W}", compat="openmldb"), CATALOG)
    assert f"Project: {read} AS x" in tree_text(plan, details=False)


def test_a_trailing_comma() -> None:
    sql = "SELECT id, v, FROM t"
    assert parse(sql, compat="openmldb").kind == "query"
    assert parse(sql).kind == "spark"  # and Spark refuses it


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT /*a*/hash64(k)/*a*/ FROM t", "hash64"),
        ("SELECT get_json_object(k, /*a*/'/a/0'/*a*/) FROM t", "JSON pointer"),
        ("SELECT date_format(ts, /*a*/'%Q'/*a*/) FROM t", "'%Q'"),
        ("SELECT v + /*a*/earth_distance(1, 2, 3, 4)/*a*/ FROM t", "earth_distance"),
    ],
)
def test_what_spark_has_nothing_for_is_refused_at_its_place(sql: str, message: str) -> None:
    first, last = sql.index("/*a*/") + 5, sql.rindex("/*a*/")
    with pytest.raises(UnsupportedError, match=message) as caught:
        analyze(parse(sql, compat="openmldb"), CATALOG)
    error: SqlExtError = caught.value
    assert error.help
    assert error.span is not None
    assert (error.span.start, error.span.end) == (first, last)


@pytest.mark.parametrize(
    ("c", "spark"),
    [
        ("%Y%m%d", "yyyyMMdd"),
        ("day %j of 'y", "'day' DDD 'of' '''y'"),
        ("100%%", "100%"),
        ("%F %T", "yyyy-MM-dd HH:mm:ss"),
    ],
)
def test_formats_of_dates(c: str, spark: str) -> None:
    assert datetime_pattern(c, Span(0, 1)) == spark
