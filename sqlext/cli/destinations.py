"""Where a result goes: its format, files that appear only when they are whole, and storage that Spark reaches."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from rich.console import Console
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import arrow_table

from sqlext.catalog.locations import RemoteData
from sqlext.catalog.reading import data_errors
from sqlext.cli.failures import failure_condition
from sqlext.cli.terminal import PIPE_WIDTH, StageProgress, console, print_rows, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from sqlext_planner.spark.results import Layout

_command_error = partial(ConfigurationError, condition="command-line")

#: A file of this machine, or a URI that Spark writes through Hadoop.
Destination = Path | RemoteData

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


def chosen_format(format: str | None, output: Destination | None) -> str:
    """The format of a result: that of --format, else that of the suffix of -o, else a table.

    Raises ConfigurationError if the two contradict each other, if neither says it, and for Parquet without a file.
    """
    if output is None:
        if format == "parquet":
            raise _command_error("--format parquet needs a file", help="add -o OUT.parquet")
        return format or "table"
    suffix = PurePosixPath(output.uri if isinstance(output, RemoteData) else output).suffix
    meant = SUFFIXES.get(suffix.lower())
    if format is None and meant is None:
        known = ", ".join(SUFFIXES)
        what = f"the suffix '{suffix}'" if suffix else "a name without a suffix"
        help = f"give --format, or a name that ends in one of {known}"
        raise _command_error(f"-o {output}: {what} does not tell the format", help=help)
    if format is not None and meant is not None and meant != format:
        better = next(suffix for suffix, meaning in SUFFIXES.items() if meaning == format)
        help = f"leave --format out to write {meant}, or change the name to OUT{better}"
        raise _command_error(f"--format {format} contradicts the suffix of -o {output}", help=help)
    return format or str(meant)


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


#: Writes the result of a frame.
_Write = Callable[["DataFrame", StageProgress], None]


@contextmanager
def result_writer(kind: str, output: Destination | None, limit: int | None) -> Iterator[_Write]:
    """What writes a result to its place, which is open; storage is tried before the rows are computed."""
    if isinstance(output, RemoteData):
        yield partial(_write_remote, kind, output, limit)
    elif kind == "parquet" and output is not None:
        with replacing(output) as path:
            yield partial(_write_parquet, path, output)
    elif kind == "table" and output is None:
        yield partial(_write_table, None, limit)
    else:
        with byte_sink(output) as sink:
            if kind == "table":
                yield partial(_write_table, sink, limit)
            else:
                yield partial(_write_text, sink, kind, output is None and sys.stdout.isatty())


def _write_remote(kind: str, output: RemoteData, limit: int | None, frame: DataFrame, shown: StageProgress) -> None:
    """One file, as on this machine, made here and sent when it is whole."""
    from sqlext_planner.spark.file_systems import check_writable, send_file

    spark = frame.sparkSession
    with data_errors(spark, output.uri, "written"):
        check_writable(spark, output.uri)
    with tempfile.TemporaryDirectory(prefix="sqlext-") as folder:
        made = Path(folder) / "result"
        with result_writer(kind, made, limit) as write:
            write(frame, shown)
        with data_errors(spark, output.uri, "written"):
            send_file(spark, made, output.uri)


def _write_parquet(path: Path, output: Path, frame: DataFrame, shown: StageProgress) -> None:
    from sqlext_planner.spark.results import write_one_parquet

    path.with_name("written").mkdir()
    try:
        write_one_parquet(frame, path.with_name("written")).replace(path)
    except Exception as error:
        if failure_condition(str(error)) != "disk-full":
            raise
        raise ConfigurationError(
            f"no space was left on a disk while {output} was written",
            condition="disk-full",
            help="free some space beside that file, and in the folder of spark.local.dir, where Spark keeps what does "
            "not fit into memory",
        ) from error


def _write_table(sink: IO[bytes] | None, limit: int | None, frame: DataFrame, shown: StageProgress) -> None:
    """The first rows, one more than shown to know whether there are more; all with no limit."""
    rows = arrow_table(frame if limit is None else frame.limit(limit + 1))
    shown.stop()
    if sink is None:
        _print_table(console(), rows, limit)
    else:
        page = io.StringIO()
        _print_table(Console(file=page, width=PIPE_WIDTH), rows, limit)
        sink.write(page.getvalue().encode("utf-8", "backslashreplace"))


def _print_table(out: Console, rows: pa.Table, limit: int | None) -> None:
    more = limit is not None and rows.num_rows > limit
    print_rows(out, rows.slice(0, limit), more=more)


def _write_text(sink: IO[bytes], kind: str, is_terminal: bool, frame: DataFrame, shown: StageProgress) -> None:
    """CSV with a header, JSON as an array of objects or as lines; rows come as they are computed."""
    from sqlext_planner.spark.results import csv_header, text_stream

    names = frame.columns
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and kind != "csv":
        help = "name them with AS, or write csv"
        raise ConfigurationError(
            f"two columns of the result are named '{twice[0]}', and JSON tells them apart by their names",
            condition="duplicate-name",
            help=help,
        )
    with text_stream(frame, _LAYOUTS[kind]) as pieces:
        coming = iter(pieces)
        first = next(coming, b"")
        if is_terminal:
            shown.stop()
        before = csv_header(names) if kind == "csv" else b""
        after = b""
        if kind == "json":  # each row comes with a comma before it
            first, before, after = first[1:], b"[", b"\n]\n" if first else b"]\n"
        write_pieces(chain((first,), coming), sink, before, after)


_LAYOUTS: dict[str, Layout] = {"csv": "csv", "jsonl": "lines", "json": "array"}
