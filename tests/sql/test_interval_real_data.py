"""Golden counts of the real data sets through SQL, and real periods with their dirt against DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from sqlext import Session

Shared = Callable[[str], Path]


@dataclass(frozen=True)
class Periods:
    """A data set: its files, its period's ends as SQL, its key, and the pairs that overlap, in all and by key."""

    files: tuple[str, ...]
    start: str
    end: str
    pairs: int
    key: str | None = None
    keyed: int | None = None


def parts(name: str) -> tuple[str, ...]:
    return (f"{name}_0.parquet", f"{name}_1.parquet")


SETS = {
    "git": Periods(("git_file_versions.parquet",), "ts", "te", 449_414_880, "dir", 93_581_960),
    "polars": Periods(("polars_file_versions.parquet",), "ts", "te", 265_283_276, "dir", 127_460_620),
    "flights": Periods(
        ("bts_flights_50k.parquet",),
        "CAST(dep_time AS TIMESTAMP)",
        "CAST(arr_time AS TIMESTAMP)",
        1_659_442,
        "tail_num",
        46_136,
    ),
    "taxis": Periods(
        ("nyc_taxis_2019-03_6433.parquet",), "CAST(pickup AS TIMESTAMP)", "CAST(dropoff AS TIMESTAMP)", 39_927
    ),
    "exons": Periods(parts("exons"), "pos_start", "pos_end", 2_334_548, "contig", 1_652_402),
    "fbrain": Periods(parts("fBrain-DS14718"), "pos_start", "pos_end", 388_773, "contig", 198_621),
}


@pytest.fixture(scope="module")
def real(spark: SparkSession, shared: Shared) -> Iterator[Callable[[str], str]]:
    """``real("git")``: the data set as a view of that name; gives the name."""
    made: set[str] = set()

    def view(name: str) -> str:
        if name not in made:
            paths = [str(shared(f"data/intervals/{file}")) for file in SETS[name].files]
            spark.read.parquet(*paths).createOrReplaceTempView(name)
            made.add(name)
        return name

    yield view
    for name in made:
        spark.catalog.dropTempView(name)


def count(session: Session, sql: str) -> int:
    return int(session.sql(sql).collect()[0][0])


def period(name: str, alias: str) -> str:
    """``PERIOD(a.ts, a.te)`` of a data set."""
    ends = [SETS[name].start, SETS[name].end]
    plain = [f"CAST({alias}.{end[5:]}" if end.startswith("CAST(") else f"{alias}.{end}" for end in ends]
    return f"PERIOD({', '.join(plain)})"


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("by_key", [False, True], ids=["all", "by key"])
def test_self_overlap(name: str, by_key: bool, session: Session, real: Callable[[str], str]) -> None:
    data = SETS[name]
    if by_key and data.key is None:
        pytest.skip("the data set has no key")
    table, on = real(name), f"{period(name, 'a')} OVERLAPS {period(name, 'b')}"
    keys = f"a.{data.key} = b.{data.key} AND " if by_key else ""
    sql = f"SELECT count(*) FROM {table} a JOIN {table} b ON {keys}{on}"
    assert count(session, sql) == (data.keyed if by_key else data.pairs)


@pytest.mark.parametrize("end", ["a.te OPEN, b.te OPEN", "coalesce(a.te, 2000000000), coalesce(b.te, 2000000000)"])
def test_git_with_open_ends(end: str, session: Session, real: Callable[[str], str]) -> None:
    ours, theirs = end.split(", ", 1) if "OPEN" in end else end.replace("), ", ")|").split("|")
    on = f"PERIOD(a.ts, {ours}) OVERLAPS PERIOD(b.ts, {theirs})"
    table = real("git")
    assert count(session, f"SELECT count(*) FROM {table} a JOIN {table} b ON {on}") == 667_688_502
    assert count(session, f"SELECT count(*) FROM {table} a JOIN {table} b ON a.dir = b.dir AND {on}") == 144_154_812


EXONS = "SELECT {} FROM exons e JOIN fbrain f ON e.contig = f.contig AND {}"


@pytest.mark.parametrize("form", ["exchange", pytest.param("broadcast", marks=pytest.mark.slow), "auto"])
def test_exons_and_fbrain(form: str, spark: SparkSession, real: Callable[[str], str]) -> None:
    """Half-open, closed, and closed as inequalities; counted, and with the pairs made."""
    session = Session(spark, config={"sqlext.intervalJoin.strategy": form})
    for name in ("exons", "fbrain"):
        real(name)
    ends = "(e.pos_start, e.pos_end) OVERLAPS PERIOD {}(f.pos_start, f.pos_end)"
    half_open, closed = "PERIOD " + ends.format(""), "PERIOD CLOSED " + ends.format("CLOSED ")
    plain = "e.pos_start <= f.pos_end AND f.pos_start <= e.pos_end"
    assert count(session, EXONS.format("count(*)", half_open)) == 54_246
    assert count(session, EXONS.format("count(*)", closed)) == 54_343
    assert count(session, EXONS.format("count(*)", plain)) == 54_343
    pairs = "SELECT count(*), sum(e_start), sum(f_end) FROM ({}) WHERE e_start IS NOT NULL"
    made = session.sql(pairs.format(EXONS.format("e.pos_start AS e_start, f.pos_end AS f_end", half_open))).collect()
    duck = duckdb.connect()
    for name in ("exons", "fbrain"):
        duck.register(name, spark.table(name).toArrow())
    wanted = EXONS.format("count(*), sum(e.pos_start), sum(f.pos_end)", plain.replace("<=", "<"))
    assert tuple(made[0]) == duck.execute(wanted).fetchone()


@pytest.mark.slow
def test_flights_with_their_dirty_rows(spark: SparkSession, session: Session, real: Callable[[str], str]) -> None:
    """1,469 NULL and 2,395 reversed ends: the relation leaves such rows out, inequalities take them as they are."""
    real("flights")
    columns = "tail_num AS k, CAST(dep_time AS TIMESTAMP) AS ts, CAST(arr_time AS TIMESTAMP) AS te"
    flights = f"SELECT monotonically_increasing_id() AS id, {columns} FROM flights"
    table = spark.sql(flights).toArrow()
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    duck.register("f", table)
    spark.createDataFrame(table).createOrReplaceTempView("f")
    try:
        overlap = "a.ts < b.te AND b.ts < a.te"
        valid = " AND a.ts < a.te AND b.ts < b.te"
        named = "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"
        sums = "count(*) AS n, sum(a.id) AS i, sum(b.id) AS j, count(a.id) AS l, count(b.id) AS r"
        pairs = f"SELECT {sums} FROM f a {{}} f b ON "
        rows = "SELECT count(*) AS n, sum(a.id) AS i FROM f a WHERE {} (SELECT 1 FROM f b WHERE a.id <> b.id AND "
        cases = [
            (pairs.format("JOIN") + named, pairs.format("JOIN") + overlap + valid),
            (pairs.format("JOIN") + overlap, pairs.format("JOIN") + overlap),
            *(
                (f"{pairs.format(join)}a.k = b.k AND {named}", f"{pairs.format(join)}a.k = b.k AND {overlap}{valid}")
                for join in ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            ),
            *(
                (f"{rows.format(word)}{named})", f"{rows.format(word)}{overlap}{valid})")
                for word in ("EXISTS", "NOT EXISTS")
            ),
            (
                f"{rows.format('NOT EXISTS')}a.k = b.k AND {overlap})",
                f"{rows.format('NOT EXISTS')}a.k = b.k AND {overlap})",
            ),
        ]
        for mine, theirs in cases:
            assert tuple(session.sql(mine).collect()[0]) == duck.execute(theirs).fetchone(), mine
    finally:
        spark.catalog.dropTempView("f")
