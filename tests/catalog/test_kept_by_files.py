"""What was read from files is kept for as long as the files are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sqlext.catalog.locations import kept_by_files


class Reader:
    """Counts how often the files are read."""

    def __init__(self) -> None:
        self.reads = 0
        self.read = kept_by_files(8)(self._read)

    def _read(self, files: Sequence[Path], suffix: str) -> str:
        self.reads += 1
        return "".join(file.read_text() for file in files) + suffix


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(path.name)
    return paths


def test_the_same_files_are_read_once_for_each_argument(files: list[Path]) -> None:
    reader = Reader()
    assert [reader.read(files, "x"), reader.read([str(file) for file in files], "x")] == ["abx", "abx"]
    assert reader.reads == 1
    assert reader.read(files, "y") == "aby"
    assert reader.read(files[::-1], "y") == "bay"
    assert reader.reads == 3


def test_files_that_were_written_or_replaced_are_read_again(files: list[Path], tmp_path: Path) -> None:
    reader = Reader()
    reader.read(files, "")
    files[0].write_text("longer")
    assert reader.read(files, "") == "longerb"
    other = tmp_path / "other"
    other.write_text("c")
    other.replace(files[1])
    assert reader.read(files, "") == "longerc"
    assert reader.reads == 3


def test_a_missing_file_is_the_functions_error(files: list[Path]) -> None:
    reader = Reader()
    reader.read(files, "")
    files[1].unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="b"):
            reader.read(files, "")
    assert reader.reads == 3
