"""Temporary files that cannot be made, written or read: one sentence with the folder and what to do."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from sqlext_operators.errors import Place, Places, RowError, TaskError, about, explained, spilling
from sqlext_operators.exchange.blocks import BlockSpools, decode
from sqlext_operators.sequences.sorted_runs import SpilledRuns

from tests.operators.exchange.pieces import gather
from tests.operators.exchange.test_scatter_gather import SEQUENCE, Row, shipped

SPILLING = replace(SEQUENCE, memory_bytes=1, piece_rows=3)


def wires() -> list[pa.RecordBatch]:
    rows = [Row(0, (0, place), 1, "x", place, 0.5) for place in range(20)]
    return [wire for part in shipped([rows], block_bytes=1, batch_rows=5).values() for wire in part]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker's local folder."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    return tmp_path


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpilledRuns, "_paths", lambda self, number: (Path("/dev/full"), Path("/dev/full")))
    with pytest.raises(TaskError, match=r"^the disk of the temporary folder .*sqlext-exchange-.* is full\n") as caught:
        list(gather(SPILLING, wires()))
    assert str(folder) in caught.value.message
    assert "spark.local.dir" in str(caught.value.help)
    assert list(folder.iterdir()) == []


def test_a_full_disk_for_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(block for wire in wires() for block in decode(wire))
    monkeypatch.setattr(BlockSpools, "_path", lambda self, name: Path("/dev/full"))
    with BlockSpools() as spools, pytest.raises(TaskError, match="the temporary folder /dev is full"):
        spools.add("left", block)
    assert list(folder.iterdir()) == []


def test_files_that_vanish_while_they_are_read(folder: Path) -> None:
    pieces = gather(SPILLING, broken_behind(wires(), folder))
    with pytest.raises(TaskError, match="does not exist, or its files were deleted"):
        list(pieces)
    assert list(folder.iterdir()) == []


def broken_behind(batches: list[pa.RecordBatch], folder: Path) -> Iterator[pa.RecordBatch]:
    """All batches, then somebody cleans the folder up."""
    yield from batches
    for made in folder.iterdir():
        shutil.rmtree(made)


@pytest.mark.parametrize("kind", ["missing", "a file"])
def test_a_folder_that_cannot_be_used(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "local"
    if kind == "a file":
        place.write_text("")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(place))
    with pytest.raises(TaskError) as caught:
        list(gather(SPILLING, wires()))
    assert caught.value.message == f"the temporary folder {place} does not exist, or its files were deleted"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EDQUOT, "is full"),
        (errno.EACCES, "is not writable"),
        (errno.EROFS, "is not writable"),
        (errno.ENOENT, "does not exist"),
        (errno.EMFILE, "too many files"),
        (errno.EIO, "cannot be used: Input/output error"),
    ],
)
def test_every_kind_of_failure_names_the_folder_and_the_remedy(code: int, words: str) -> None:
    with pytest.raises(TaskError, match=words) as caught, spilling("/some/where"):
        raise OSError(code, os.strerror(code))
    assert "/some/where" in caught.value.message
    assert caught.value.help


def test_other_failures_of_a_task() -> None:
    def fails(error: BaseException) -> Iterator[pa.RecordBatch]:
        raise error
        yield

    def raised(error: BaseException) -> BaseException:
        with pytest.raises(type(error) if isinstance(error, (TaskError, EOFError, KeyError)) else TaskError) as caught:
            list(explained(Places(Place(0, 1, ("whole",)), {"s": Place(2, 3, ("part",))}), fails, error))
        return caught.value

    assert "ran out of memory" in str(raised(MemoryError()))
    assert "could not read or write a file: /x: No such file" in str(
        raised(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/x"))
    )
    for passed in (EOFError(), KeyError("a bug of ours")):
        assert raised(passed) is passed
    whole, part = RowError("wrong", condition="overflow"), RowError("wrong", condition="overflow")
    with pytest.raises(RowError), about("s"):
        raise part
    assert "whole" in str(raised(whole)).splitlines()
    assert "part" in str(raised(part)).splitlines()
