"""Where a result goes: its format, and files that appear only when they are whole."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlext_planner.errors import ConfigurationError

from sqlext.cli.terminal import writing

#: The formats that the suffix of -o stands for.
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "table",
}


def chosen_format(format: str | None, output: Path | None) -> str:
    """The format of a result: that of --format, else that of the suffix of -o, else a table.

    Raises ConfigurationError if the two contradict each other, if neither says it, and for Parquet without a file.
    """
    if output is None:
        if format == "parquet":
            raise ConfigurationError(
                "--format parquet needs a file", condition="command-line", help="add -o OUT.parquet"
            )
        return format or "table"
    meant = SUFFIXES.get(output.suffix.lower())
    if format is None and meant is None:
        known = ", ".join(SUFFIXES)
        what = f"the suffix '{output.suffix}'" if output.suffix else "a name without a suffix"
        help = f"give --format, or a name that ends in one of {known}"
        raise ConfigurationError(f"-o {output}: {what} does not tell the format", condition="command-line", help=help)
    if format is not None and meant is not None and meant != format:
        help = f"leave --format out to write {meant}, or change the name to OUT{_suffix_of(format)}"
        raise ConfigurationError(
            f"--format {format} contradicts the suffix of -o {output}", condition="command-line", help=help
        )
    return format or str(meant)


def _suffix_of(format: str) -> str:
    return next(suffix for suffix, meant in SUFFIXES.items() if meant == format)


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new folder beside `output`; if the block ends well, the file `result` in it takes the place of `output`.

    So a file that exists is replaced by a whole one or stays as it is. A device or a pipe gets the bytes. Raises
    OSError with the name of `output` where that is not possible, before the block is entered.
    """
    target = Path(os.path.realpath(output)) if output.is_symlink() else output
    is_special = target.exists() and not target.is_file() and not target.is_dir()
    with writing(output):
        if target.is_dir():
            raise IsADirectoryError(21, os.strerror(21), str(output))
        if target.exists():
            target.open("ab").close()  # may be written at all
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}-", dir=None if is_special else target.parent))
    try:
        yield folder / "result"
        with writing(output):
            if is_special:
                with (folder / "result").open("rb") as made, target.open("wb") as sink:
                    shutil.copyfileobj(made, sink)
            else:
                if target.exists():
                    shutil.copymode(target, folder / "result")
                (folder / "result").replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def byte_sink(output: Path | None) -> Iterator[IO[bytes]]:
    """Where bytes of text go: standard output, or a file that takes the place of `output` if the block ends well."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
    elif output.exists() and not output.is_file() and not output.is_dir():
        with writing(output), output.open("wb") as device:
            yield device
    else:
        with replacing(output) as path, writing(output), path.open("wb") as file:
            yield file


def write_pieces(pieces: Iterable[bytes], sink: IO[bytes], before: bytes = b"", after: bytes = b"") -> None:
    """Write pieces as they come, each at once; `before` goes with the first one."""
    for piece in pieces:
        sink.write(before + piece)
        sink.flush()
        before = b""
    sink.write(before + after)
    sink.flush()
