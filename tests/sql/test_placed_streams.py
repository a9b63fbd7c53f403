"""Keys of running streams that get other places: the rows are those of batch, also when the query is stopped midway."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    CLOSING,
    SECOND,
    START,
    check_refused,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_files,
)

#: Micro-batches of each stream.
FILES = 10
COUNTED = "count(*) OVER w AS n, sum(v) OVER w AS s, min(s) OVER w AS m"


def moving(seed: int, count: int) -> list[Any]:
    """Rows in the order of arrival. Key 1 is hot in the first half, key 2 in the second, up to two seconds late."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        time = 160 * n / count
        key = (1 if n < count / 2 else 2) if rng.random() < 0.7 else rng.randrange(40)
        at = START + int(time * 4) * SECOND // 4
        rows.append((time + rng.random() * 2, (key, at, rng.randrange(-9, 9), rng.random(), rng.choice("abc"))))
    found = [row for _, row in sorted(rows, key=lambda item: item[0])]
    return [*found, (0, START + CLOSING * SECOND, 0, 0.0, "")]


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b and tables a_t, b_t of the same rows."""
    folder = tmp_path_factory.mktemp("moving")
    with stream_conf(spark):
        for number, name in enumerate(("a", "b")):
            write_files(folder / name, moving(number, 1_600), FILES)
            register(spark, name, folder / name, delay=3)
        yield folder
        drop_views(spark, "a", "b")


@pytest.fixture
def halves(spark: SparkSession, views: Path, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """The streams a_h, b_h of the first half of the files, and what adds the second half: a query of the first half
    ends by itself, wherever it is."""
    for name in ("a", "b"):
        shutil.copytree(views / name, tmp_path / name, ignore=lambda _, files: sorted(files)[FILES // 2 :])
        register(spark, f"{name}_h", tmp_path / name, delay=3)

    def grow() -> None:
        for name in ("a", "b"):
            for file in sorted((views / name).iterdir())[FILES // 2 :]:
                shutil.copy2(file, tmp_path / name)

    yield grow
    drop_views(spark, "a_h", "b_h")


def statement(suffix: str, hint: str, more: str = "") -> str:
    window = f"UNION b{suffix} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 4s PRECEDING AND 1s FOLLOWING {more}"
    return f"SELECT {hint} k, ts, v, {COUNTED} FROM a{suffix} WINDOW w AS ({window})"


def changes(folder: Path, operator: int = 0) -> list[dict[str, Any]]:
    """The placements of an operator that the query's checkpoint has, the newest last."""
    files = (folder / "checkpoint" / "sqlext" / "placements" / str(operator)).glob("*.json")
    return [json.loads(file.read_text()) for file in sorted(files, key=lambda file: int(file.stem))]


@pytest.mark.few(9)
@pytest.mark.parametrize("more", ["", pytest.param("INSTANCE_NOT_IN_WINDOW", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    ["fragment", *(pytest.param(name, marks=pytest.mark.slow) for name in ("key", "dynamic", "hybrid", "broadcast"))],
)
def test_a_stream_whose_keys_move_gives_the_rows_of_batch(
    session: Session, tmp_path: Path, name: str, more: str
) -> None:
    found = streamed(session.sql(statement("", f"/*+ PARTITIONER({name}) */", more)), tmp_path)
    assert found == sorted_rows(session.sql(statement("_t", "", more)))
    numbers = [change["number"] for change in changes(tmp_path)]
    assert (numbers[-1] > 2) if name != "broadcast" else not numbers


@pytest.mark.slow
@pytest.mark.every_spark("streams: placement of keys (skew)")
def test_a_query_that_starts_again_has_its_places(session: Session, tmp_path: Path, halves: Callable[[], None]) -> None:
    streamed(session.sql(statement("_h", "/*+ PARTITIONER(fragment) */")), tmp_path)
    before = changes(tmp_path)[-1]["number"]
    halves()
    again = streamed(session.sql(statement("_h", "/*+ PARTITIONER(fragment) */")), tmp_path)
    assert again == sorted_rows(session.sql(statement("_t", "")))
    assert changes(tmp_path)[-1]["number"] > before


def test_places_that_were_lost_are_an_error(session: Session, tmp_path: Path, halves: Callable[[], None]) -> None:
    streamed(session.sql(statement("_h", "/*+ PARTITIONER(fragment) */")), tmp_path)
    assert changes(tmp_path)
    for part in ("checkpoint", "out"):  # the first query's listener may still write into its own
        shutil.copytree(tmp_path / part, tmp_path / "copy" / part, ignore=shutil.ignore_patterns("sqlext"))
    halves()
    with pytest.raises(Exception, match="the folder 'sqlext' in the query's checkpoint was lost"):
        streamed(session.sql(statement("_h", "/*+ PARTITIONER(fragment) */")), tmp_path / "copy")


def periods(name: str) -> str:
    """The rows of a stream as periods of up to a second."""
    return f"(SELECT *, CAST(timestampadd(MILLISECOND, 100 * abs(v) + 250, ts) AS timestamp) AS te FROM {name})"


def near(first: str, second: str) -> str:
    return f"{first}.k = {second}.k AND {second}.ts BETWEEN {first}.ts AND {first}.ts + INTERVAL 300 MILLISECONDS"


#: Joins of {0}, the suffix of the tables, with a partitioner {1}.
JOINS = {
    "left overlap": f"SELECT /*+ PARTITIONER({{1}}) */ p.k, p.ts, p.v, q.ts AS t2, q.v AS v2 FROM {periods('a{0}')} p "
    f"LEFT JOIN {periods('b{0}')} q ON p.k = q.k AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)",
    "right band": "SELECT /*+ SWEEP, PARTITIONER({1}) */ p.k, p.ts, p.v, q.ts AS t2, q.v AS v2 FROM a{0} p "
    f"RIGHT JOIN b{{0}} q ON {near('p', 'q')}",
    "three": "SELECT /*+ UMJOIN, PARTITIONER({1}) */ p.k, p.ts, p.v, q.ts AS t2, q.v AS v2, r.ts AS t3, r.x "
    f"FROM a{{0}} p JOIN b{{0}} q ON {near('p', 'q')} LEFT JOIN a{{0}} r ON {near('q', 'r')}",
}


@pytest.mark.few(9)
@pytest.mark.parametrize("join", ["left overlap", "three", pytest.param("right band", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    ["fragment", *(pytest.param(name, marks=pytest.mark.slow) for name in ("key", "dynamic", "hybrid", "broadcast"))],
)
def test_a_join_whose_keys_move_gives_the_rows_of_batch(session: Session, tmp_path: Path, name: str, join: str) -> None:
    query = started(session.sql(JOINS[join].format("", name)), tmp_path)
    query.awaitTermination()
    found = sorted_rows(session.spark.read.parquet(str(tmp_path / "out")))
    assert found == sorted_rows(session.sql(JOINS[join].format("_t", "hash")))
    assert any(None in row for row in found)
    numbers = [change["number"] for change in changes(tmp_path)]
    assert (numbers[-1] > 2) if name != "broadcast" else not numbers
    inputs = 3 if join == "three" else 2
    assert query_figures(query).figures["rows_in"] == inputs * 1_601


@pytest.mark.slow
def test_a_chain_places_the_keys_of_each_operator(session: Session, tmp_path: Path) -> None:
    inner = "SELECT /*+ SWEEP, PARTITIONER(fragment) */ p.k, p.ts, p.v, q.v AS v2 FROM a{0} p "
    inner += f"LEFT JOIN b{{0}} q ON {near('p', 'q')}"
    sql = f"SELECT /*+ PARTITIONER(fragment) */ k, ts, v, v2, count(v2) OVER w AS n FROM ({inner}) WINDOW w AS "
    sql += "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME)"
    query = started(session.sql(sql.format("")), tmp_path)
    query.awaitTermination()
    found = sorted_rows(session.spark.read.parquet(str(tmp_path / "out")))
    assert found == sorted_rows(session.sql(sql.format("_t")))
    assert [changes(tmp_path, operator)[-1]["number"] > 2 for operator in (0, 1)] == [True, True]
    assert query_figures(query).figures["rows_in"] == 2 * 1_601


@pytest.mark.slow
def test_a_join_that_starts_again_has_its_places_and_no_others(
    session: Session, tmp_path: Path, halves: Callable[[], None]
) -> None:
    streamed(session.sql(JOINS["left overlap"].format("_h", "fragment")), tmp_path)
    before = changes(tmp_path)[-1]["number"]
    halves()
    with pytest.raises(Exception, match="partitioner was fragment, and is hybrid"):
        streamed(session.sql(JOINS["left overlap"].format("_h", "hybrid")), tmp_path)
    again = streamed(session.sql(JOINS["left overlap"].format("_h", "fragment")), tmp_path)
    assert again == sorted_rows(session.sql(JOINS["left overlap"].format("_t", "hash")))
    assert changes(tmp_path)[-1]["number"] > before


OVERLAPS = f"FROM {periods('a')} p {{kind}} JOIN {periods('b')} q "
OVERLAPS += "ON p.k = q.k AND PERIOD(p.ts, p.te{left}) OVERLAPS PERIOD(q.ts, q.te{right})"
REFUSED_JOINS = {
    "full": (OVERLAPS.format(kind="FULL", left="", right=""), "keeps rows of both sides that match nothing"),
    "endless": ("FROM a p JOIN b q ON p.k = q.k AND p.ts < q.ts", "rows of the left side find matches for ever"),
    "table": (f"FROM a p JOIN b_t q ON {near('p', 'q')}", "tables are read once"),
    "open": (OVERLAPS.format(kind="", left="", right=" OPEN"), "an open period may be closed at any time"),
    "open owner": (OVERLAPS.format(kind="LEFT SEMI", left=" OPEN", right=""), "must come to the bucket of the row"),
    "three": (
        f"FROM a p JOIN b q ON {near('p', 'q')} JOIN a r ON p.k = r.k AND r.ts > p.ts",
        "no condition says how long after a row of p one of r may match it",
    ),
    "two keys": (
        f"FROM a p JOIN b q ON {near('p', 'q')} JOIN a r ON q.v = r.v AND r.ts > q.ts",
        "its inputs share no key",
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", REFUSED_JOINS)
def test_joins_that_cannot_have_a_partitioner(session: Session, spark: SparkSession, name: str) -> None:
    """The hint is an error at its place; the setting gives way."""
    body, reason = REFUSED_JOINS[name]
    asked = "UMJOIN, " if " r ON" in body else "SWEEP, "
    with pytest.raises(UnsupportedError, match=reason) as caught:
        session.sql(sql := f"SELECT /*+ {asked}PARTITIONER(fragment) */ p.k, p.v {body}")
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end].startswith("PARTITIONER(fragment)")
    other = Session(spark, config={"sqlext.exchange.partitioner": "fragment"})
    (plan,) = other.sql(f"EXPLAIN SELECT /*+ {asked[:-2]} */ p.k, p.v {body}").first()
    assert "StreamExec" in plan
    assert "partitioner:" not in plan
    if "open" not in name:  # their watermark would have to be elsewhere
        other.sql(f"SELECT /*+ {asked[:-2]} */ p.k, p.v {body}")


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(
    "body",
    [
        "FROM a{0} p JOIN b{0} q ON p.k = q.k AND p.v = q.v AND p.ts < q.ts",
        f"FROM a{{0}} p LEFT JOIN b_t q ON {near('p', 'q')}",
        f"FROM a_t p JOIN b{{0}} q ON {near('p', 'q')}",
        f"FROM a{{0}} p JOIN b{{0}} q ON {near('p', 'q')} JOIN a{{0}} r ON p.k = r.k AND p.v = r.v AND r.v = 1",
    ],
)
def test_every_row_in_all_buckets_suits_other_joins(session: Session, tmp_path: Path, body: str) -> None:
    asked = "UMJOIN" if " r ON" in body else "SWEEP"
    sql = f"SELECT {{1}} p.k, p.ts, p.v, q.ts AS t2, q.v AS v2 {body}"
    found = streamed(session.sql(sql.format("", f"/*+ {asked}, PARTITIONER(broadcast) */")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t", "")))


def test_a_last_join_with_tables_has_them_in_all_tasks(session: Session, spark: SparkSession) -> None:
    sql = "SELECT {0} a.k, a.ts, b_t.v FROM a LAST JOIN b_t ORDER BY b_t.ts ON a.k = b_t.k"
    check_refused(
        session, sql.format("/*+ [[PARTITIONER(fragment)]] */"), "all tasks have the tables, as with broadcast"
    )
    assert session.sql(sql.format("/*+ PARTITIONER(broadcast) */")).isStreaming
    other = Session(spark, config={"sqlext.exchange.partitioner": "fragment"})
    assert other.sql(sql.format("")).isStreaming


REFUSED = {
    "time_range": ("ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW", "b", "all in the newest range"),
    "fragment": ("ROWS BETWEEN 4 PRECEDING AND CURRENT ROW", "b", "a window has no bound in time"),
    "dynamic": ("ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW", "b_t", "tables are read once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_partitioners_that_a_stream_cannot_have(session: Session, name: str) -> None:
    frame, union, reason = REFUSED[name]
    sql = f"SELECT /*+ PARTITIONER({name}) */ k, count(*) OVER w AS n FROM a WINDOW w AS "
    sql += f"(UNION {union} PARTITION BY k ORDER BY ts {frame})"
    with pytest.raises(UnsupportedError, match=reason) as caught:
        session.sql(sql)
    assert caught.value.span is not None


@pytest.mark.slow
@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("frame", "union"),
    [
        ("ROWS BETWEEN 4 PRECEDING AND CURRENT ROW", "b{0}"),
        ("ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "b{0}"),
        ("ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW", "b_t"),
    ],
)
def test_every_row_in_all_buckets_suits_any_window(session: Session, tmp_path: Path, frame: str, union: str) -> None:
    sql = "SELECT {1} k, ts, v, count(*) OVER w AS n, sum(v) OVER w AS s FROM a{0} WINDOW w AS "
    sql += f"(UNION {union} PARTITION BY k ORDER BY ts {frame})"
    found = streamed(session.sql(sql.format("", "/*+ PARTITIONER(broadcast) */")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t", "")))


def test_plans_show_how_keys_get_their_places(session: Session) -> None:
    asked = (statement("", "/*+ PARTITIONER(fragment) */"), *(join.format("", "fragment") for join in JOINS.values()))
    for sql in asked:
        shown = session.sql("EXPLAIN " + sql).collect()[0][0]
        assert "(partitioner: fragment: by hash at first; keys get other places as the stream shows" in shown
