"""Every partitioner gives the same rows, and says in EXPLAIN what it does."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.config import PARTITIONERS
from sqlext_planner.errors import ParseError, Span, UnsupportedError
from sqlext_planner.plan_format import tree_json

from sqlext import Session

PARTITIONS = 5
ROWS = {"skew_a": 420, "skew_b": 540}
ALL = sum(ROWS.values())


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Most rows have the key 1; times and rows repeat."""
    folder: Path = tmp_path_factory.mktemp("skew")
    rng = random.Random(5)
    for name, count in ROWS.items():
        keys = [rng.choice([1, 1, 1, 1, 2, 3, None]) for _ in range(count)]
        times = [rng.choice([None, *range(400)]) for _ in range(count)]
        columns = {
            "k": pa.array(keys, pa.int32()),
            "ts": pa.array([None if t is None else t * 1_000_000 for t in times], pa.timestamp("us", tz="UTC")),
            "v": pa.array([rng.choice([None, *range(9)]) for _ in range(count)], pa.int64()),
            "s": pa.array([rng.choice([None, "x", "yy"]) for _ in range(count)], pa.string()),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=120)
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    yield
    for name in ROWS:
        spark.catalog.dropTempView(name)


CALLS = "sum(v) OVER w AS total, count(*) OVER w AS n, max(s) OVER w AS most, distinct_count(v) OVER w AS kinds"
#: Windows, and whether they have a bound in time.
WINDOWS = {
    "ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW": True,
    "ROWS_RANGE BETWEEN 5s PRECEDING AND 7s FOLLOWING INSTANCE_NOT_IN_WINDOW": True,
    "ROWS_RANGE BETWEEN 30s PRECEDING AND 3s PRECEDING MAXSIZE 4": True,
    "ROWS_RANGE BETWEEN 9s OPEN PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME": True,
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": False,
    "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW": False,
    "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW": False,
}


def statement(window: str, hint: str = "") -> str:
    keys = "UNION skew_b PARTITION BY k ORDER BY ts"
    return f"SELECT {hint} k, ts, v, {CALLS} FROM skew_a WINDOW w AS ({keys} {window})"


def rows(session: Session, sql: str) -> Counter[str]:
    return Counter(map(str, session.sql(sql).collect()))


@pytest.fixture
def several(spark: SparkSession, tables: None) -> Iterator[None]:
    spark.conf.set("sqlext.exchange.partitions", str(PARTITIONS))
    yield
    spark.conf.unset("sqlext.exchange.partitions")


@pytest.mark.few(9)
@pytest.mark.every_spark("placement of keys (skew)")
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_are_the_same_by_every_partitioner(session: Session, several: None, window: str) -> None:
    expected = rows(session, statement(window))
    assert sum(expected.values()) == ROWS["skew_a"]
    for name in PARTITIONERS:
        sql = statement(window, f"/*+ PARTITIONER({name}) */")
        if name == "time_range" and not WINDOWS[window]:
            with pytest.raises(UnsupportedError, match="no bound in time"):
                session.sql(sql)
        else:
            assert rows(session, sql) == expected, name


LAST_JOIN = (
    "SELECT {hint} a.k, a.ts, a.v, b.v AS bv, b.s AS bs FROM skew_a a LAST JOIN skew_b b ORDER BY b.ts "
    "ON a.k = b.k AND b.ts <= a.ts"
)


def test_last_join_is_the_same_by_every_partitioner(session: Session, several: None) -> None:
    expected = rows(session, LAST_JOIN.format(hint=""))
    assert sum(expected.values()) == ROWS["skew_a"]
    for name in PARTITIONERS:
        sql = LAST_JOIN.format(hint=f"/*+ PARTITIONER({name}) */")
        if name == "time_range":
            with pytest.raises(UnsupportedError, match="can have any time"):
                session.sql(sql)
        else:
            assert rows(session, sql) == expected, name
            assert f"(partitioner {name}: " in explained(session, sql)


UMJOIN = (
    "SELECT /*+ UMJOIN, PARTITIONER({name}) */ {items} FROM skew_a a JOIN skew_b b ON a.k = b.k JOIN skew_a c "
    "ON b.k = c.k {more} WHERE a.v = 1 AND b.v = 2 AND c.v = 3 AND a.s = 'x' AND b.s = 'x' AND c.s = 'yy'"
)


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("items", "more"),
    [
        ("a.k, a.ts, b.ts AS tb, c.s", ""),
        ("count(*) AS n", ""),
        ("a.k, a.ts, b.ts AS tb, d.s", "LEFT JOIN (SELECT * FROM skew_b WHERE k = 1 AND v = 5) d ON d.k = a.k"),
        ("a.k, a.ts, b.ts AS tb", "LEFT ANTI JOIN (SELECT * FROM skew_b WHERE s = 'q') d ON d.k = a.k"),
    ],
)
def test_multi_way_joins_are_the_same_by_every_partitioner(
    session: Session, several: None, items: str, more: str
) -> None:
    plain = UMJOIN.format(name="key", items=items, more=more).replace("/*+ UMJOIN, PARTITIONER(key) */", "")
    expected = Counter(map(str, session.spark.sql(plain).collect()))
    for name in PARTITIONERS:
        sql = UMJOIN.format(name=name, items=items, more=more)
        if name == "time_range":
            with pytest.raises(UnsupportedError, match="has no time"):
                session.sql(sql)
        else:
            assert rows(session, sql) == expected, name
            assert f"(partitioner {name}: " in explained(session, sql)


def explained(session: Session, sql: str) -> str:
    return str(session.sql(f"EXPLAIN {sql}").collect()[0][0])


def test_a_setting_gives_way_where_a_hint_is_refused(session: Session, spark: SparkSession, several: None) -> None:
    sql = statement("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW")
    expected = rows(session, sql)
    spark.conf.set("sqlext.exchange.partitioner", "time_range")
    try:
        assert rows(session, sql) == expected
        shown = explained(session, sql)
    finally:
        spark.conf.unset("sqlext.exchange.partitioner")
    assert "(partitioner time_range: a window has no bound in time: its rows are counted" in shown
    assert re.search(rf"\(partitioner hash: moves {ALL} of {ALL} rows, .* \(chosen\)\)", shown)


def test_explain_says_what_every_partitioner_moves(session: Session, several: None) -> None:
    window = "ROWS_RANGE BETWEEN 5s PRECEDING AND 7s FOLLOWING INSTANCE_NOT_IN_WINDOW"
    shown = explained(session, statement(window, "/*+ PARTITIONER(fragment) */"))
    moved = dict(re.findall(rf"\(partitioner (\w+): moves (\d+) of {ALL} rows", shown))
    assert set(moved) == set(PARTITIONERS)
    assert moved["hash"] == moved["key"] == str(ALL)
    assert moved["broadcast"] == str(PARTITIONS * ALL)
    assert ALL < int(moved["time_range"]) < int(moved["fragment"]) < int(moved["hybrid"]) < PARTITIONS * ALL
    chosen = next(line for line in shown.splitlines() if "(chosen)" in line)
    assert re.search(r"partitioner fragment: .*; split: k = 1 x\d", chosen)


#: Each kind with another relation; the periods of a row begin at ts, ties abound.
INTERVALS = {
    "JOIN": "b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS",
    "LEFT JOIN": "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)",
    "RIGHT JOIN": "PERIOD(b.ts, b.te) CONTAINS a.ts",
    "FULL JOIN": "PERIOD(a.ts, a.te) ALLEN OVERLAPS PERIOD(b.ts, b.te)",
    "LEFT SEMI JOIN": "PERIOD(a.ts, a.te) BEFORE PERIOD(b.ts, b.te) WITHIN 3 SECONDS",
    "LEFT ANTI JOIN": "PERIOD(a.ts, a.te) ALLEN DURING PERIOD(b.ts, b.te)",
}
WITH_ENDS = "(SELECT *, ts + make_dt_interval(0, 0, 0, v) AS te FROM {})"


def intervals(hint: str, *, keys: bool = True, kinds: Sequence[str] = tuple(INTERVALS)) -> str:
    """One statement for all kinds; the compared values are columns of tables for the first, computed for others."""
    parts = []
    for kind in kinds:
        source = "{}" if kind == "JOIN" else WITH_ENDS
        left, right = source.format("skew_a"), source.format("skew_b")
        theirs = "NULL AS tb, NULL AS vb" if kind[5:] in ("SEMI JOIN", "ANTI JOIN") else "b.ts AS tb, b.v AS vb"
        on = f"a.k = b.k AND {INTERVALS[kind]}" if keys else INTERVALS[kind]
        parts.append(f"SELECT {hint} '{kind}' AS kind, a.k, a.ts, a.v, {theirs} FROM {left} a {kind} {right} b ON {on}")
    return " UNION ALL ".join(parts)


@pytest.fixture
def exchanged(spark: SparkSession, several: None) -> Iterator[None]:
    spark.conf.set("sqlext.intervalJoin.strategy", "exchange")
    yield
    spark.conf.unset("sqlext.intervalJoin.strategy")


@pytest.mark.slow
def test_interval_joins_are_the_same_by_every_partitioner(session: Session, exchanged: None) -> None:
    split = [kind for kind in INTERVALS if kind != "FULL JOIN"]
    expected = rows(session, intervals("/*+ NO_SWEEP */"))
    without_full = rows(session, intervals("/*+ NO_SWEEP */", kinds=split))
    assert len(expected) > len(without_full) > 1000
    for name in PARTITIONERS:
        whole = name in ("hash", "key", "time_range")
        sql = intervals(f"/*+ SWEEP, PARTITIONER({name}) */", kinds=tuple(INTERVALS) if whole else split)
        assert rows(session, sql) == (expected if whole else without_full), name
        assert f"(partitioner {name}: " in explained(session, sql)
    with pytest.raises(UnsupportedError, match="FULL JOIN keeps rows of both sides") as found:
        session.sql(intervals("/*+ SWEEP, PARTITIONER(hybrid) */", kinds=["FULL JOIN"]))
    assert found.value.message.startswith("the hint PARTITIONER(hybrid) cannot be followed: ")


@pytest.mark.slow
def test_interval_joins_without_keys_are_cut_or_copied(session: Session, exchanged: None) -> None:
    kinds = ["JOIN", "LEFT ANTI JOIN"]
    expected = rows(session, intervals("/*+ NO_SWEEP */", keys=False, kinds=kinds))
    for name in PARTITIONERS:
        sql = intervals(f"/*+ SWEEP, PARTITIONER({name}) */", keys=False, kinds=kinds)
        if name in ("hash", "time_range", "broadcast"):
            assert rows(session, sql) == expected, name
        else:
            with pytest.raises(UnsupportedError, match="has no keys"):
                session.sql(sql)


def test_interval_joins_count_by_every_partitioner(session: Session, exchanged: None) -> None:
    joined = f"skew_a a JOIN skew_b b ON a.k = b.k AND {INTERVALS['JOIN']}"
    sql = f"SELECT {{}} b.s, count(*) AS n FROM {joined} GROUP BY b.s"
    expected = rows(session, sql.format("/*+ NO_SWEEP */"))
    for name in PARTITIONERS:
        assert rows(session, sql.format(f"/*+ SWEEP, PARTITIONER({name}) */")) == expected, name


def test_the_setting_is_for_interval_joins_too(session: Session, spark: SparkSession, exchanged: None) -> None:
    sql = intervals("/*+ SWEEP */", kinds=["JOIN", "FULL JOIN"])
    expected = rows(session, intervals("/*+ NO_SWEEP */", kinds=["JOIN", "FULL JOIN"]))
    spark.conf.set("sqlext.exchange.partitioner", "fragment")
    try:
        assert rows(session, sql) == expected
        shown = explained(session, sql)
    finally:
        spark.conf.unset("sqlext.exchange.partitioner")
    chosen = re.findall(r"\(partitioner (\w+): .*\(chosen\)", shown)
    assert chosen == ["fragment", "hash"]


def test_a_hint_is_followed_and_refused_whatever_the_number_of_rows(session: Session, tables: None) -> None:
    counted = statement("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", "/*+ PARTITIONER(time_range) */")
    with pytest.raises(UnsupportedError, match="no bound in time"):
        session.sql(counted)
    shown = explained(session, statement("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", "/*+ PARTITIONER(broadcast) */"))
    assert f"(partitioner broadcast: moves {2 * ALL} of {ALL} rows" in shown


def test_a_plan_as_json_holds_no_placement(session: Session, several: None) -> None:
    plan = session.plan(statement("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", "/*+ PARTITIONER(key) */"))
    assert plan.physical is not None
    shown = json.dumps(tree_json(plan.physical))
    assert "partitioner key" in shown
    assert '"slots"' not in shown
    assert len(shown) < 20_000


@pytest.mark.parametrize(
    ("hint", "message", "help"),
    [
        ("[[PARTITIONER]]", "the hint PARTITIONER takes one name", "use one of auto, hash, key, "),
        ("[[PARTITIONER(key, hybrid)]]", "the hint PARTITIONER takes one name", "use one of auto, hash, key, "),
        ("PARTITIONER([[hybird]])", "the hint PARTITIONER has no partitioner 'hybird'", "did you mean 'hybrid'?"),
        (
            "PARTITIONER([[k + 1]])",
            "the hint PARTITIONER has no partitioner 'k + 1'",
            "use one of auto, hash, key, ",
        ),
    ],
)
def test_a_hint_that_cannot_be_read(session: Session, several: None, hint: str, message: str, help: str) -> None:
    marked = statement("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", f"/*+ {hint} */")
    sql = marked.replace("[[", "").replace("]]", "")
    with pytest.raises(ParseError) as found:
        session.sql(sql)
    assert found.value.message == message
    assert found.value.span == Span(marked.index("[["), marked.index("]]") - 2)
    assert str(found.value.help).startswith(help)
