"""`auto` on streams: a hot key that appears, moves and goes is spread while that pays; the rows are those of batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_operators.exchange.stream_placement import ALWAYS
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.replanner import STEPS, Replanned
from sqlext_planner.exchange.stream_listeners import folders_of

from benchmarks.skew.streams import (
    PHASES,
    STATEMENTS,
    MicroBatch,
    Phases,
    phases_of,
    run_stream,
    settled,
    started,
    write_streams,
)
from sqlext import Session
from tests.sql.streams import sorted_rows as rows_in_order

ROWS = 2_000
SHORT: Phases = ((None, 2), (1, 8))
#: Micro-batches until the fullest bucket has half of the work: one to see it, one with copies, one in which both places
#: own rows, and one for a report that comes when the next micro-batch has begun; each of two steps may wait for that.
MOST = 6


@pytest.fixture(autouse=True)
def views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("moving_a", "moving_b", "moving_a_t", "moving_b_t"):
        spark.catalog.dropTempView(name)


def sorted_rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """All rows but those that close the streams, whose key is 0: they are never complete."""
    return rows_in_order(frame.where("k <> 0"))


def rows_of(session: Session, out: Path) -> list[tuple[object, ...]]:
    return sorted_rows(session.spark.read.parquet(str(out / "rows")))


def in_batch(session: Session, folder: Path, statement: str) -> list[tuple[object, ...]]:
    """The rows of the same files as tables."""
    for name in "ab":
        session.spark.read.parquet(str(folder / name)).createOrReplaceTempView(f"moving_{name}_t")
    return sorted_rows(session.sql(STATEMENTS[statement].format(hint="", a="moving_a_t", b="moving_b_t")))


def places(out: Path) -> list[int]:
    """The numbers of the placements that the checkpoint has."""
    folder = out / "checkpoint" / "sqlext" / "placements" / "auto-0"
    return sorted(json.loads(file.read_text())["number"] for file in folder.glob("*.json"))


@pytest.mark.parametrize("statement", ["window", pytest.param("interval", marks=pytest.mark.slow)])
def test_a_hot_key_is_spread_without_a_hint(session: Session, tmp_path: Path, statement: str) -> None:
    write_streams(tmp_path, SHORT, ROWS)
    own = run_stream(session, tmp_path, statement, "auto", 4, tmp_path / "auto")
    theirs = run_stream(session, tmp_path, statement, "hash", 4, tmp_path / "hash")
    assert rows_of(session, tmp_path / "auto") == in_batch(session, tmp_path, statement)
    assert rows_of(session, tmp_path / "hash") == rows_of(session, tmp_path / "auto")
    assert own[-1].changes == 1
    assert not places(tmp_path / "hash")
    check_spread(own, theirs, SHORT)


def check_spread(own: list[MicroBatch], theirs: list[MicroBatch], phases: Phases) -> None:
    for (hot, ours), (_, others) in zip(phases_of(own, phases), phases_of(theirs, phases), strict=True):
        if hot is not None:
            number = settled(ours, others)
            assert number is not None
            assert number <= MOST
    assert all(item.copies <= 0.15 * item.rows for item in own)


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [4, 16])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_hot_key_appears_moves_and_goes(session: Session, tmp_path: Path, statement: str, buckets: int) -> None:
    rows = 4 * ROWS
    write_streams(tmp_path, PHASES, rows)
    own = run_stream(session, tmp_path, statement, "auto", buckets, tmp_path / "auto")
    theirs = run_stream(session, tmp_path, statement, "hash", buckets, tmp_path / "hash")
    assert rows_of(session, tmp_path / "auto") == in_batch(session, tmp_path, statement)
    check_spread(own, theirs, PHASES)
    assert own[-1].changes == 3
    assert own[-1].copies == 0
    assert max(places(tmp_path / "auto")) >= 3 * STEPS - 1


@pytest.mark.slow
@pytest.mark.parametrize("statement", list(STATEMENTS))
def test_a_key_that_is_hot_for_one_micro_batch_stays(session: Session, tmp_path: Path, statement: str) -> None:
    """Other places get copies for it, and are given up; it may be hot once more then."""
    phases: Phases = ((None, 2), (1, 1), (None, 6), (1, 1), (None, 6))
    write_streams(tmp_path, phases, ROWS)
    batches = run_stream(session, tmp_path, statement, "auto", 4, tmp_path / "auto", pace=2)
    assert rows_of(session, tmp_path / "auto") == in_batch(session, tmp_path, statement)
    assert 1 <= batches[-1].changes <= 2
    assert batches[-1].copies == 0
    assert all(item.copies <= 0.15 * item.rows for item in batches)
    for file in (tmp_path / "auto" / "checkpoint" / "sqlext" / "placements" / "auto-0").glob("*.json"):
        assert all(epoch["since"] in (None, ALWAYS) for epoch in json.loads(file.read_text())["epochs"])


@pytest.mark.slow
def test_even_keys_are_not_touched(session: Session, tmp_path: Path) -> None:
    write_streams(tmp_path, ((None, 12),), ROWS)
    own = run_stream(session, tmp_path, "window", "auto", 4, tmp_path / "auto")
    assert {item.changes for item in own} == {0}
    assert {item.copies for item in own} == {0}
    assert not (tmp_path / "auto" / "checkpoint" / "sqlext").exists()


def deliver(files: Path, folder: Path, number: int) -> None:
    """The files of a micro-batch."""
    for name in "ab":
        (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copy2(files / name / f"{number:04d}.parquet", folder / name)


@pytest.mark.slow
@pytest.mark.parametrize("step", range(STEPS + 1))
@pytest.mark.every_spark("streams: placement of keys (skew)")
def test_a_query_goes_on_from_each_step(session: Session, tmp_path: Path, step: int) -> None:
    """By `auto`; by `hash`, or from it, only where no key has moved."""
    files, folder = tmp_path / "files", tmp_path / "streams"
    write_streams(files, ((None, 1), (1, 9)), ROWS)
    number = 0
    deliver(files, folder, number)
    before = "auto" if step else "hash"
    with started(session, folder, "window", before, 4, tmp_path / "out", processingTime="0 seconds") as query:
        query.processAllAvailable()
        # one more micro-batch: the step is in the state then
        while number < 2 or max(places(tmp_path / "out"), default=0) < step:
            number += 1
            deliver(files, folder, number)
            query.processAllAvailable()
            session.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # what it has reported is heard
        if step:
            number += 1
            deliver(files, folder, number)
            query.processAllAvailable()
    for later in range(number + 1, 11):
        deliver(files, folder, later)
    if step:
        with pytest.raises(Exception, match=r"sqlext\.exchange\.partitioner = auto has given keys of the checkpoint"):
            run_stream(session, folder, "window", "hash", 4, tmp_path / "out")
    run_stream(session, folder, "window", "auto", 4, tmp_path / "out")
    assert rows_of(session, tmp_path / "out") == in_batch(session, files, "window")
    assert max(places(tmp_path / "out"), default=0) >= min(step + 1, STEPS)


@pytest.mark.slow
def test_a_stream_that_was_never_changed_goes_on_by_hash(session: Session, tmp_path: Path) -> None:
    files, folder = tmp_path / "files", tmp_path / "streams"
    write_streams(files, ((None, 3),), ROWS)
    for number, name in enumerate(("auto", "hash", "auto", "hash")):
        deliver(files, folder, number)
        run_stream(session, folder, "interval", name, 4, tmp_path / "out")
    assert rows_of(session, tmp_path / "out") == in_batch(session, files, "interval")


def test_places_of_operators_have_the_same_folder_whatever_the_others_do() -> None:
    adaptive, named = (Replanned(name, Demand(), (0, 1)) for name in ("auto", "fragment"))
    assert folders_of({"x": named, "y": None, "z": named}) == {
        "x": "sqlext/placements/0",
        "z": "sqlext/placements/1",
    }
    assert folders_of({"x": adaptive, "y": named, "z": adaptive}) == {
        "x": "sqlext/placements/auto-0",
        "y": "sqlext/placements/0",
        "z": "sqlext/placements/auto-2",
    }
