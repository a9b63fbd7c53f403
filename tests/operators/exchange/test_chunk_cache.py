"""Files of chunks: none, damaged, changed while they are in use, or unwritable: the same rows, or none found."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from sqlext_operators.exchange.chunks import UNUSED_SECONDS, ChunkCache, encoded, name_of

ROWS = pa.RecordBatch.from_pydict({"v": list(range(1_000))})
DATA = encoded(ROWS)
NAME = name_of(DATA)


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\x07" * path.stat().st_size)


def _one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = [_cut, _emptied, _overwritten, _one_bit, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_not_used(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    ChunkCache(tmp_path).add(NAME, DATA, ROWS)
    assert ChunkCache(tmp_path).find(NAME).equals(ROWS)
    damage(tmp_path / NAME)
    assert ChunkCache(tmp_path).find(NAME) is None


@pytest.mark.parametrize("damage", DAMAGE)
def test_rows_that_were_found_do_not_change_with_their_file(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    ChunkCache(tmp_path).add(NAME, DATA, ROWS)
    cache = ChunkCache(tmp_path)
    found = cache.find(NAME)
    damage(tmp_path / NAME)
    assert found.equals(ROWS)
    assert cache.find(NAME).equals(ROWS)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_derived_is_made_again_if_its_file_is_damaged(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    made = []

    def make() -> pa.RecordBatch:
        made.append(1)
        return ROWS

    for _ in range(2):
        assert ChunkCache(tmp_path).derived("owner", 5, "digest", make).equals(ROWS)
    assert len(made) == 1
    (file,) = tmp_path.iterdir()
    damage(file)
    assert ChunkCache(tmp_path).derived("owner", 5, "digest", make).equals(ROWS)
    assert len(made) == 2


def test_a_derived_file_in_the_place_of_another_is_not_used(tmp_path: Path) -> None:
    other = ROWS.slice(1)
    cache = ChunkCache(tmp_path)
    cache.derived("owner", 5, "one", lambda: ROWS)
    cache.derived("owner", 5, "two", lambda: other)
    one, two = sorted(tmp_path.iterdir(), key=lambda path: path.name)
    one.write_bytes(two.read_bytes())
    assert ChunkCache(tmp_path).derived("owner", 5, "one", lambda: ROWS).equals(ROWS)


def test_a_folder_that_cannot_be_written_costs_only_speed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ChunkCache(tmp_path / "file" / "folder")
    cache.add(NAME, DATA, ROWS)
    assert cache.find(NAME).equals(ROWS)
    assert cache.derived("owner", 5, "digest", lambda: ROWS).equals(ROWS)
    cache.drop(NAME)
    assert cache.find(NAME) is None


def test_files_that_nobody_reads_are_deleted_in_the_end(tmp_path: Path) -> None:
    """What is read stays; what a query that has ended, or a worker that was killed, has left goes."""
    ChunkCache(tmp_path).add(NAME, DATA, ROWS)
    long_ago = time.time() - 2 * UNUSED_SECONDS
    for name in (NAME, "left", f".{NAME}.4711"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago, long_ago))
    cache = ChunkCache(tmp_path)
    assert cache.find(NAME) is not None
    cache.forget_derived("owner", 0)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
