"""Keys of running streams that get other places: the rows are those of batch, also when the query is stopped midway."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session
from tests.sql.streams import (
    CLOSING,
    SECOND,
    START,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_files,
)

#: Micro-batches of each stream.
FILES = 16
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


def statement(suffix: str, hint: str, more: str = "") -> str:
    window = f"UNION b{suffix} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 4s PRECEDING AND 1s FOLLOWING {more}"
    return f"SELECT {hint} k, ts, v, {COUNTED} FROM a{suffix} WINDOW w AS ({window})"


def changes(folder: Path) -> list[dict[str, Any]]:
    """The placements that the query's checkpoint has, the newest last."""
    files = (folder / "checkpoint" / "sqlext" / "placements" / "0").glob("*.json")
    return [json.loads(file.read_text()) for file in sorted(files, key=lambda file: int(file.stem))]


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


def test_a_query_that_starts_again_has_its_places(session: Session, tmp_path: Path) -> None:
    frame = session.sql(statement("", "/*+ PARTITIONER(fragment) */"))
    query = started(frame, tmp_path)
    while not (changes(tmp_path) or not query.isActive):
        query.awaitTermination(1)
    query.stop()
    before = changes(tmp_path)[-1]["number"]
    again = streamed(session.sql(statement("", "/*+ PARTITIONER(fragment) */")), tmp_path)
    assert again == sorted_rows(session.sql(statement("_t", "")))
    assert changes(tmp_path)[-1]["number"] > before


def test_places_that_were_lost_are_an_error(session: Session, tmp_path: Path) -> None:
    frame = session.sql(statement("", "/*+ PARTITIONER(fragment) */"))
    query = started(frame, tmp_path)
    while len(changes(tmp_path)) < 2 and query.isActive:
        query.awaitTermination(1)
    query.awaitTermination(5)
    query.stop()
    for file in (tmp_path / "checkpoint" / "sqlext" / "placements" / "0").glob("*"):
        file.unlink()
    with pytest.raises(Exception, match="the folder 'sqlext' in the query's checkpoint was lost"):
        streamed(session.sql(statement("", "/*+ PARTITIONER(fragment) */")), tmp_path)


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
    shown = session.sql("EXPLAIN " + statement("", "/*+ PARTITIONER(fragment) */")).collect()[0][0]
    assert "(partitioner: fragment: by hash at first; keys get other places as the stream shows" in shown
