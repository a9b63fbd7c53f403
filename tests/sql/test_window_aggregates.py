"""Every aggregate that is Spark's own, over a union window and over Spark's window of the same rows: same values, same
types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import DataType
from sqlext_planner.spark.session import settings_changed
from sqlext_planner.spark.versions import spark_version

from sqlext import Session

SCHEMA = (
    "k int, ts bigint, i int, l bigint, h smallint, f float, x double, y double, z double, d decimal(10,2), "
    "w decimal(38,6), s string, raw binary, b boolean, dt date, tz timestamp, often int, arr array<int>"
)
COLUMNS = [part.split()[0] for part in SCHEMA.split(", ")]

#: Calls that are written the same in Spark.
SAME = [
    *(f"{name}({column})" for name in ("mean", "try_avg", "try_sum") for column in ("i", "h", "x", "d", "w")),
    "try_sum(l)",
    *(
        f"{name}({column}{more})"
        for name in ("first", "last", "any_value")
        for column in "sx"
        for more in ("", ", true")
    ),
    *("nth_value(s, 2)", "nth_value(x, 3, true)", "nth_value(i, 1000)", "first(arr)"),
    *("count_if(b)", "count_if(x > 0)", "bool_and(b)", "bool_or(b)", "some(i > 3)", "every(i > 3)"),
    *(f"bit_{name}({column})" for name in ("and", "or", "xor") for column in "ilh"),
    *(
        f"{name}({pair})"
        for name in ("corr", "covar_pop", "covar_samp")
        for pair in ("x, y", "i, d", "f, h", "h, h", "z, x")
    ),
    *(
        f"regr_{name}({pair})"
        for name in ("count", "avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")
        for pair in ("x, y", "i, d", "x, h")
    ),
    *(f"{name}({column})" for name in ("skewness", "kurtosis", "stddev", "var_pop") for column in "xidh"),
    *(f"percentile({column}, {p})" for column in "ixdz" for p in ("0.5", "0.37", "0", "1")),
    *("percentile(x, 0.5, often)", "percentile(x, array(0.1, 0.5, 1))", "percentile(i, array(0.25, 0.5), often)"),
    *(f"percentile_approx({column}, 0.4)" for column in ("i", "x", "d", "dt", "tz", "l")),
    *("approx_percentile(i, array(0.1, 0.5, 0.9), 100)", "percentile_approx(dt, array(0D, 1D))"),
    *(f"approx_count_distinct({column})" for column in ("i", "s", "z", "b", "dt")),
    *(
        f"{name}({pair})"
        for name in ("max_by", "min_by")
        for pair in ("s, i", "x, z", "i, s", "arr, h", "d, b", "i, dt")
    ),
    *(f"collect_list({column})" for column in ("i", "s", "z", "d", "raw", "tz", "b", "arr")),
    *(f"collect_set({column})" for column in ("i", "s", "z", "d", "dt")),
    *("array_agg(i)", "listagg(s)", "listagg(s, ', ')", "string_agg(raw)", "string_agg(s, NULL)"),
]
_MODE = "get(array_sort(transform(array_distinct({0}), e -> struct(-size(filter({0}, o -> o = e)) AS c, e AS v))), 0).v"
#: Calls that Spark does not have over a window with an order: what they are there, over lists of the window's values.
OTHER = {
    "median(x)": "percentile(x, 0.5) OVER w",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x)": "percentile(x, 0.25) OVER w",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY i DESC)": "percentile(i, 0.75) OVER w",
    "percentile_cont(array(0.25, 0.5)) WITHIN GROUP (ORDER BY d)": "percentile(d, array(0.25, 0.5)) OVER w",
    "percentile_disc(0.4) WITHIN GROUP (ORDER BY i)": "CAST(percentile_approx(i, 0.4) OVER w AS double)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x) FILTER (WHERE b)": "percentile(if(b, x, NULL), 0.25) OVER w",
    "mode(i)": _MODE.format("list_i"),
    "mode() WITHIN GROUP (ORDER BY s)": _MODE.format("list_s"),
    "listagg(s, '-') WITHIN GROUP (ORDER BY s)": "if(size(list_s) = 0, NULL, array_join(array_sort(list_s), '-'))",
    "listagg(s, '-') WITHIN GROUP (ORDER BY s DESC)": (
        "if(size(list_s) = 0, NULL, array_join(reverse(array_sort(list_s)), '-'))"
    ),
    "product(h)": "aggregate(list_h, CAST(NULL AS double), (a, e) -> ifnull(a, 1D) * e)",
}


def _rows(random: Random, parity: int) -> list[tuple[Any, ...]]:
    """Rows whose times are all different, also from those of the other parity."""
    found = []
    for n in range(60):
        number = random.randint(-9, 9)
        row = (
            number % 7,
            random.choice([number, 2**62 + number, -(2**61)]),
            number,
            number / 4,
            round(random.gauss(1000, 1), 3),
            round(random.gauss(0, 5), 3),
            random.choice([math.nan, -0.0, 0.0, 1.5, number / 2]),
            Decimal(number) / 4,
            Decimal(number) * 10**20 + Decimal("0.25"),
            random.choice(["", "a", "B", "é", "ab"]),
            bytes([number % 3]),
            number > 0,
            date(2024, 1, 1) + timedelta(days=number),
            datetime(2024, 1, 1) + timedelta(seconds=number),
            random.randint(0, 3),
            [number, None],
        )
        nullable = [None if random.random() < 0.15 else value for value in row]
        found.append((n % 3, 2 * n + parity, *nullable))
    return found


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    random = Random(5)
    for parity, name in enumerate(("agg_from", "agg_union")):
        spark.createDataFrame(_rows(random, parity), SCHEMA).createOrReplaceTempView(name)
    yield
    for name in ("agg_from", "agg_union"):
        spark.catalog.dropTempView(name)


def _same(got: Any, want: Any, call: str) -> bool:
    if call.startswith("approx_count_distinct"):  # Spark's is an estimate
        return abs(got - want) <= 2
    if call == "percentile_approx(l, 0.4)":  # Spark's goes through doubles
        return (got is None and want is None) or float(got) == float(want)
    if call == "try_sum(l)" and want is None:  # Spark's is NULL once a part of the sum overflows
        return got is None or -(2**63) <= got < 2**63
    if call.startswith("collect_set"):
        return len(got) == len(want) and sorted(map(str, got)) == sorted(map(str, want))
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(_same(a, b, "") for a, b in zip(got, want, strict=True))
    if isinstance(got, float) and isinstance(want, float):
        return (math.isnan(got) and math.isnan(want)) or math.isclose(got, want, rel_tol=1e-8, abs_tol=1e-9)
    return bool(got == want)


def _compare(ours: Sequence[Row], spark: Sequence[Row], calls: Sequence[str]) -> None:
    assert len(ours) == len(spark) == 60
    wrong: dict[str, tuple[Any, ...]] = {}
    for got, want in zip(ours, spark, strict=True):
        for n, call in enumerate(calls):
            if not _same(got[f"c{n}"], want[f"c{n}"], call):
                wrong.setdefault(call, (got["k"], got["ts"], got[f"c{n}"], want[f"c{n}"]))
    assert wrong == {}


#: Functions and forms that older Sparks lack, or compute otherwise.
NEWER = ("listagg", "string_agg", "nth_value", "collect_set(z)")
FRAMES = ("20 PRECEDING AND CURRENT ROW", "9 PRECEDING AND 4 PRECEDING")


def _type(frame: DataFrame, number: int) -> DataType | str:
    """Up to Spark 4.0 elements of percentiles could not be NULL."""
    kind = frame.schema[f"c{number}"].dataType
    return kind if spark_version() >= (4, 1) else kind.simpleString()


def _is_shared(spark: SparkSession, call: str) -> bool:
    """Whether a Spark up to 4.1 has a call, with the same meaning."""
    if not call.startswith(NEWER):
        return True
    if call == "collect_set(z)":  # NaN comes twice, and -0.0 beside 0.0
        return False
    try:
        spark.sql(f"SELECT {call} OVER (PARTITION BY k ORDER BY ts) FROM agg_from")
    except AnalysisException:
        return False
    return True


@pytest.mark.every_spark("windows over a union")
@pytest.mark.parametrize("frame", FRAMES)
def test_every_aggregate_is_that_of_sparks_window(spark: SparkSession, tables: None, frame: str) -> None:
    window = f"PARTITION BY k ORDER BY ts {{}} BETWEEN {frame}"
    shared = [call for call in SAME if spark_version() >= (4, 2) or _is_shared(spark, call)]
    calls = [*shared, *OTHER]
    ours = ", ".join(f"{call} OVER w AS c{n}" for n, call in enumerate(calls))
    theirs = [f"{call} OVER w" for call in shared] + list(OTHER.values())
    named = [f"{text} AS c{n}" for n, text in enumerate(theirs)]
    lists = [f"collect_list({column}) OVER w AS list_{column}" for column in "ish"]
    inner = ", ".join([text for text in named if " OVER w" in text] + lists)
    outer = ", ".join([text for text in named if " OVER w" not in text])
    got = Session(spark).sql(
        f"SELECT k, ts, {ours} FROM agg_from WINDOW w AS (UNION agg_union {window.format('ROWS_RANGE')})"
    )
    # Up to 4.2 Spark fails on corr where a variance is 0.
    with settings_changed(spark, {} if spark_version() >= (4, 3) else {"spark.sql.ansi.enabled": "false"}):
        want = spark.sql(
            f"SELECT *, {outer} FROM (SELECT k, ts, src, {inner} FROM "
            "(SELECT *, 0 AS src FROM agg_from UNION ALL SELECT *, 1 FROM agg_union) "
            f"WINDOW w AS ({window.format('RANGE')})) WHERE src = 0"
        )
        types = [(call, *(_type(frame, n) for frame in (got, want))) for n, call in enumerate(calls)]
        assert [found for found in types if found[1] != found[2]] == []
        theirs_rows = want.orderBy("k", "ts").collect()
    _compare(got.orderBy("k", "ts").collect(), theirs_rows, calls)
