"""Keeps what was read from files as long as the files stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Args = TypeVarTuple("Args")
#: A file as it was: its path, device and inode, size, and when it was written (nanoseconds).
_Stamp = tuple[Path, int, int, int, int]


def kept_by_files(
    size: int,
) -> Callable[[Callable[[Sequence[Path], *Args], Result]], Callable[[Sequence[Path | str], *Args], Result]]:
    """A decorator for functions of files (and of hashable arguments) whose last `size` results are kept.

    A file that was written or replaced since is read again; one without readable metadata is left to the function.
    """

    def decorate(
        function: Callable[[Sequence[Path], *Args], Result],
    ) -> Callable[[Sequence[Path | str], *Args], Result]:
        @lru_cache(maxsize=size)
        def known(stamps: tuple[_Stamp, ...], args: tuple[Any, ...]) -> Result:
            return function([stamp[0] for stamp in stamps], *args)

        def read(files: Sequence[Path | str], *args: *Args) -> Result:
            paths = [Path(file) for file in files]
            try:
                stamps = tuple(map(_stamp, paths))
            except OSError:
                return function(paths, *args)
            return known(stamps, args)

        read.__doc__ = function.__doc__
        return read

    return decorate


def _stamp(file: Path) -> _Stamp:
    found = file.stat()
    return file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
