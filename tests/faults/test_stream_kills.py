"""Streaming queries that are killed: every row is in the sink once, and is the one that batch gives."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from sqlext import stream_settings

from . import QUICK
from .harness import Driver
from .streaming import (
    EARLY_ANSWERS,
    MOVING,
    STATEMENTS,
    committed,
    micro_batches,
    placed,
    wait_for_commit,
    write_streams,
)

pytestmark = pytest.mark.slow

#: `SQLEXT_KILLS=8` makes them fewer.
KILLS = int(os.environ.get("SQLEXT_KILLS") or (4 if QUICK else 20))
#: Files of each stream, and rows of a file: more micro-batches than a test has time for before its kills are over.
FILES, ROWS = (40, 200) if QUICK else (400, 200)
#: Every fourth kill comes within so many seconds of the query's start, when it may still be at its first micro-batch;
#: the others come as soon after it has committed one.
_WITHIN = 5.0
#: A driver whose keys get no other places in so many micro-batches is killed all the same.
_MICRO_BATCHES = 30
CONF = stream_settings(cores=2)


def is_all(name: str, rows: int, given: int) -> bool:
    """A window has a result for each row of its first stream; a join has about one."""
    return rows > given // 2 if "join" in name else rows == given


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_killed_driver_goes_on_from_its_checkpoint(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    rows, out = write_streams(tmp_path / "rows", FILES, ROWS), tmp_path / "out"
    request = {"sql": STATEMENTS[name], "rows": str(rows), "out": str(out)}
    behind = []
    for number in range(KILLS):
        driver = Driver("local[2]", tmp_path / f"driver{number}", CONF)
        driver.run("stream_probes.start", **request)
        if number % 4:
            wait_for_commit(out / "checkpoint", 120)
        time.sleep(rng.uniform(0, _WITHIN))
        driver.kill()
        behind.append(committed(out / "checkpoint"))
    print(f"{name}: micro-batches committed at the kills: {behind}")
    assert behind[-1] < FILES, "the query was at its end before the last kill"
    assert sum(count > 0 for count in behind) > KILLS // 2, behind
    with Driver("local[2]", tmp_path / "last", CONF) as driver:
        driver.run("stream_probes.start", **request, files=50, to_the_end=True)
        assert "error" not in driver.run("stream_probes.await_end")
        found = driver.run("stream_probes.compare", **request)
    assert found["wrong"] == {}
    assert is_all(name, found["rows"], FILES * ROWS)


@pytest.mark.parametrize("name", EARLY_ANSWERS)
def test_early_answers_of_a_killed_driver_are_those_of_one_that_was_not(tmp_path: Path, name: str) -> None:
    rng, files = random.Random("early"), 40
    statement, batch = EARLY_ANSWERS[name]
    rows, out, other = write_streams(tmp_path / "rows", files, ROWS), tmp_path / "out", tmp_path / "other"
    request = {"sql": statement, "rows": str(rows), "out": str(out)}
    for number in range(4):
        driver = Driver("local[2]", tmp_path / f"driver{number}", CONF)
        driver.run("stream_probes.start", **request)
        wait_for_commit(out / "checkpoint", 120)
        time.sleep(rng.uniform(0, _WITHIN))
        driver.kill()
    assert 4 <= committed(out / "checkpoint") < files
    with Driver("local[2]", tmp_path / "last", CONF) as driver:
        for folder in (out, other):  # a file a micro-batch, as before: early answers depend on what has come
            driver.run("stream_probes.start", **{**request, "out": str(folder)}, to_the_end=True)
            assert "error" not in driver.run("stream_probes.await_end")
        found = driver.run("stream_probes.compare_early", batch=batch, rows=str(rows), out=str(out), other=str(other))
    assert found["early"] >= 15
    assert (found["doubled"], found["as_batch"]) == (0, True)
    if micro_batches(out / "checkpoint") == micro_batches(other / "checkpoint"):
        assert found["differ"] == []
    else:  # what has come and what is learned when an early row is due depends on the micro-batches
        assert {row[-1] for row in found["differ"]} <= {"early"}


def changes(checkpoint: Path) -> int:
    """How often the keys of a query have got other places."""
    files = (checkpoint / "sqlext" / "placements" / "0").glob("*.json")
    return max((int(file.stem) for file in files), default=0)


def wait_for_change(checkpoint: Path) -> None:
    """Until keys have got other places once more, or the query has had the micro-batches for it."""
    before, last = changes(checkpoint), committed(checkpoint) + _MICRO_BATCHES
    end = time.monotonic() + 300
    while changes(checkpoint) == before and committed(checkpoint) < last and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("name", MOVING)
def test_a_driver_that_is_killed_when_keys_have_moved_goes_on(tmp_path: Path, name: str) -> None:
    """Most kills come right after a change of places was written; some of these changes have not been used yet."""
    rng, files = random.Random(0), _MICRO_BATCHES * (KILLS + 1)
    rows, out = write_streams(tmp_path / "rows", files, ROWS, hot_for=MOVING[name]), tmp_path / "out"
    request = {"sql": placed(name), "rows": str(rows), "out": str(out)}
    moved = []
    for number in range(KILLS):
        driver = Driver("local[2]", tmp_path / f"driver{number}", CONF)
        driver.run("stream_probes.start", **request)
        wait_for_change(out / "checkpoint")
        time.sleep(rng.choice([0, 0, 0.2, 1]))
        driver.kill()
        moved.append(changes(out / "checkpoint"))
    print(f"changes at the kills: {moved}; micro-batches: {committed(out / 'checkpoint')}")
    assert committed(out / "checkpoint") < files, "the query was at its end before the last kill"
    assert moved[-1] >= KILLS // 2, moved
    with Driver("local[2]", tmp_path / "last", CONF) as driver:
        driver.run("stream_probes.start", **request, files=10, to_the_end=True)
        assert "error" not in driver.run("stream_probes.await_end")
        found = driver.run("stream_probes.compare", **request)
    assert found["wrong"] == {}
    assert is_all(name, found["rows"], files * ROWS)


@pytest.mark.parametrize("harm", [None, "deleted", "damaged"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_killed_workers_change_no_row(tmp_path: Path, name: str, harm: str | None) -> None:
    """The chunk files stay, or are deleted or damaged now and then."""
    files = FILES // 6
    rows, out = write_streams(tmp_path / "rows", files, ROWS), tmp_path / "out"
    request = {"sql": STATEMENTS[name], "rows": str(rows), "out": str(out)}
    disturbance = {"kills": KILLS, "seed": 1, "harm": harm, "caches": str(tmp_path / "driver")}
    with Driver("local[2,8]", tmp_path / "driver", CONF) as driver:
        ended = driver.run("stream_probes.kill_workers", **request, **disturbance)
        found = driver.run("stream_probes.compare", **request)
    print(f"{name}: {ended}; rows: {found['rows']}")
    assert ended["kills"] == KILLS
    assert bool(ended["harmed"]) is (harm is not None)
    assert found["wrong"] == {}
    assert is_all(name, found["rows"], files * ROWS)
