"""top, topn_frequency, top1_ratio and the window_split family in SQL, against Spark's own lists of frames."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session

#: Spark's text of a value; how the functions write it.
TEXT = {
    "v": "string(x)",
    "s": "x",
    "d": "format_string('%f', x)",
    "dt": "string(x)",
    "t": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
}
FRAMES = ("4 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND CURRENT ROW", "9 PRECEDING AND 3 PRECEDING")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    rng = random.Random(7)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    rows = [
        (
            rng.randrange(3),
            place,
            maybe(rng.randrange(-2, 3)),
            maybe(rng.choice(["a", "b", "", "k:1,j:2", "j:3,x,:4:5", "é:1"])),
            maybe(rng.choice([0.5, -1.25, 1e9])),
            maybe(dt.date(2020, 1, 1 + rng.randrange(3))),
            maybe(dt.datetime(2020, 3, 8, rng.randrange(8, 12), tzinfo=dt.UTC)),
        )
        for place in range(150)
    ]
    schema = "k int, place int, v int, s string, d double, dt date, t timestamp"
    spark.createDataFrame(rows, schema).createOrReplaceTempView("frequency_rows")
    spark.createDataFrame(rows[:40], schema).createOrReplaceTempView("frequency_others")
    yield spark
    spark.catalog.dropTempView("frequency_rows")
    spark.catalog.dropTempView("frequency_others")


def lists(frame: str, *columns: str) -> str:
    """The non-NULL values of each row's frame, oldest first, and its number of rows, by Spark alone."""
    window = f"(PARTITION BY k ORDER BY place ROWS BETWEEN {frame})"
    items = ", ".join(f"collect_list({column}) OVER {window} AS {column}" for column in columns)
    return f"(SELECT k, place, count(*) OVER {window} AS n, {items} FROM frequency_rows)"


def largest(column: str) -> str:
    return f"array_join(transform(slice(reverse(array_sort({column})), 1, 3), x -> {TEXT[column]}), ',')"


def frequent(column: str) -> str:
    counted = f"transform(array_distinct({column}), x -> struct(-size(filter({column}, y -> y = x)) AS c, x AS x))"
    texts = f"transform(array_sort({counted}).x, x -> {TEXT[column]})"
    return f"if(n = 0, '', array_join(slice(concat({texts}, array_repeat('NULL', 3)), 1, 3), ','))"


def share(column: str) -> str:
    most = f"array_max(transform(array_distinct({column}), x -> size(filter({column}, y -> y = x))))"
    return f"ifnull(try_divide({most}, size({column})), 0D)"


@pytest.mark.few(2)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values(tables: SparkSession, frame: str, zone: str) -> None:
    """Every type at once; the texts of timestamps follow the session's zone, over the change to daylight time too."""
    before = tables.conf.get("spark.sql.session.timeZone")
    tables.conf.set("spark.sql.session.timeZone", zone)
    try:
        functions = [("top", 3, largest), ("topn_frequency", 3, frequent), ("top1_ratio", None, share)]
        ours, theirs = [], []
        for name, n, spark_text in functions:
            for column in TEXT:
                arguments = column if n is None else f"{column}, {n}"
                ours.append(f"{name}({arguments}) OVER w AS {name}_{column}")
                theirs.append(f"{spark_text(column)} AS {name}_{column}")
        got = Session(tables).sql(
            f"SELECT k, place, {', '.join(ours)} FROM frequency_rows "
            f"WINDOW w AS (PARTITION BY k ORDER BY place ROWS BETWEEN {frame})"
        )
        want = tables.sql(f"SELECT k, place, {', '.join(theirs)} FROM {lists(frame, *TEXT)}")
        assert got.columns == want.columns
        assert sorted(got.collect()) == sorted(want.collect())
    finally:
        tables.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.parametrize("frame", FRAMES)
def test_parts(tables: SparkSession, frame: str) -> None:
    ours = """window_split(s, ',') OVER w AS parts, window_split_by_key(s, ',', ':') OVER w AS keys,
        array_join(window_split_by_value(s, ',', ':') OVER w, ' ') AS joined,
        size(window_split(s, '') OVER w) AS none"""
    parts = "flatten(transform(reverse(s), x -> split(x, ',')))"
    pairs = f"filter({parts}, p -> contains(p, ':'))"
    theirs = f"""{parts} AS parts, transform({pairs}, p -> split(p, ':')[0]) AS keys,
        array_join(transform({pairs}, p -> split(p, ':')[1]), ' ') AS joined, 0 AS none"""
    got = Session(tables).sql(
        f"SELECT k, place, {ours} FROM frequency_rows WINDOW w AS (PARTITION BY k ORDER BY place ROWS BETWEEN {frame})"
    )
    want = tables.sql(f"SELECT k, place, {theirs} FROM {lists(frame, 's')}")
    assert dict(got.dtypes)["parts"] == "array<string>"
    assert sorted(got.collect()) == sorted(want.collect())


def test_union_windows(tables: SparkSession) -> None:
    """The newest 5 rows of another table, none of FROM: '' where it has none, though the row itself has a value."""
    window = """WINDOW w AS (UNION frequency_others PARTITION BY k ORDER BY place
        ROWS_RANGE BETWEEN 100 PRECEDING AND CURRENT ROW MAXSIZE 5 EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)"""
    got = Session(tables).sql(f"SELECT place, topn_frequency(v, 3) OVER w AS f FROM frequency_rows {window}")
    joined = """SELECT r.place, o.place IS NOT NULL AS here, o.place AS at, o.v FROM frequency_rows r
        LEFT JOIN frequency_others o ON r.k = o.k AND o.place BETWEEN r.place - 100 AND r.place"""
    newest = f"""SELECT place, collect_list(v) AS v, count_if(here) AS n
        FROM (SELECT *, row_number() OVER (PARTITION BY place ORDER BY at DESC) AS rank FROM ({joined}))
        WHERE rank <= 5 GROUP BY place"""
    want = tables.sql(f"SELECT place, {frequent('v')} AS f FROM ({newest})")
    assert sorted(got.collect()) == sorted(want.collect())
    assert ("",) in [row[1:] for row in want.collect()]


LISTS = [
    ("`join`(window_split(s, ','), '|')", "array_join({0}, '|')"),
    ("fz_join(fz_window_split(s, ','), '|')", "array_join({0}, '|')"),
    ("count(window_split(s, ','))", "bigint(size({0}))"),
    ("distinct_count(window_split(s, ','))", "bigint(size(array_distinct({0})))"),
    ("1 + count(window_split(s, ','))", "1 + bigint(size({0}))"),
    ("case when !isnull(lag(v, 0)) then distinct_count(window_split(s, ',')) end", None),
    ("min(window_split(s, ','))", "array_min({0})"),
    ("max(window_split(s, ','))", "array_max({0})"),
    ("top(window_split(s, ','), 2)", "concat_ws(',', slice(reverse(array_sort({0})), 1, 2))"),
    ("count(split(s, ','))", None),
]


def test_lists_in_compat_mode(tables: SparkSession) -> None:
    """Aggregates of a list, and lists as text, where OVER stands behind the whole expression."""
    frame = FRAMES[0]
    items = ", ".join(f"{text} OVER w AS c{i}" for i, (text, _) in enumerate(LISTS))
    more = "topn_frequency(window_split(s, ','), 3) OVER w AS f, top1_ratio(window_split(s, ',')) OVER w AS r"
    got = Session(tables, compat="openmldb").sql(
        f"SELECT k, place, v, s, {items}, {more} FROM frequency_rows "
        f"WINDOW w AS (PARTITION BY k ORDER BY place ROWS BETWEEN {frame})"
    )
    parts = "flatten(transform(reverse(s), x -> split(x, ',')))"
    theirs = ", ".join(f"{'NULL' if text is None else text.format(parts)} AS c{i}" for i, (_, text) in enumerate(LISTS))
    want = tables.sql(f"SELECT k, place, {parts} AS parts, {theirs} FROM {lists(frame, 's')}")
    expected = {(row.k, row.place): row for row in want.collect()}
    for row in got.collect():
        other = expected[row.k, row.place]
        for i, (_, text) in enumerate(LISTS):
            if text is not None:
                assert row[f"c{i}"] == other[f"c{i}"]
        assert row.c5 == (None if row.v is None else len(set(other.parts)))
        assert row.c9 == (0 if row.s is None else len(row.s.split(",")))
        counts = {part: other.parts.count(part) for part in other.parts}
        ranks = sorted(counts, key=lambda part: (-counts[part], part.encode()))
        assert row.f == (",".join([*ranks, "NULL", "NULL", "NULL"][:3]) if counts else "")
        assert row.r == (counts[ranks[0]] / len(other.parts) if counts else 0.0)
