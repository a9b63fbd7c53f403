"""`sqlext run`: statements on a local Spark, the last one's result as a table or a file. Where a result goes: its
format, and files that appear only when they are whole."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer
from rich.console import Console
from sqlext_planner.errors import ConfigurationError, Span, SqlExtError
from sqlext_planner.spark.versions import arrow_table

from sqlext.catalog.options import FolderOptions
from sqlext.cli.failures import failure_condition, placed
from sqlext.cli.source import read_settings, read_sql, split_statements
from sqlext.cli.terminal import PIPE_WIDTH, StageProgress, console, print_rows, progress, visible, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from sqlext_planner.spark.results import Layout

    from sqlext.session import Session

_command_error = partial(ConfigurationError, condition="command-line")

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
            raise _command_error("--format parquet needs a file", help="add -o OUT.parquet")
        return format or "table"
    meant = SUFFIXES.get(output.suffix.lower())
    if format is None and meant is None:
        known = ", ".join(SUFFIXES)
        what = f"the suffix '{output.suffix}'" if output.suffix else "a name without a suffix"
        help = f"give --format, or a name that ends in one of {known}"
        raise _command_error(f"-o {output}: {what} does not tell the format", help=help)
    if format is not None and meant is not None and meant != format:
        suffix = next(suffix for suffix, meaning in SUFFIXES.items() if meaning == format)
        help = f"leave --format out to write {meant}, or change the name to OUT{suffix}"
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


def run_query(
    file: str | None,
    sql: str | None,
    data: str | None,
    format: str | None,
    output: Path | None,
    limit: int,
    conf: Sequence[str],
    compat: str | None,
    read: Sequence[str],
) -> None:
    """Run every statement of the text in order; print or write the result of the last."""
    text = read_sql(file, sql)
    options = FolderOptions.of_texts(read)
    kind = chosen_format(format, output)
    places = split_statements(text)
    if compat == "openmldb":
        places = _without_declarations(text, places)
    if not places:
        raise _command_error("the text contains no statement", help="give the SQL with -e or as a file")
    with result_writer(kind, output, limit or None) as write:  # opened first: what cannot be written fails at once
        with progress("Starting Spark"):
            session = open_session(conf, compat)
            register_tables(session, data, options)
        try:
            with StageProgress(session.spark) as shown:
                for place in places[:-1]:
                    _execute(session, text, place)
                frame = _execute(session, text, places[-1])
                with errors_in(text, places[-1]):
                    write(frame, shown)
        finally:
            session.spark.stop()


def _without_declarations(text: str, places: Sequence[Span]) -> list[Span]:
    """The statements of an OpenMLDB script that do something here; prints on stderr which are left out."""
    from sqlext.syntax.scripts import declares

    asked = []
    for place in places:
        statement = text[place.start : place.end]
        if declares(statement):
            line = text.count("\n", 0, place.start) + 1
            words = " ".join(statement.split())
            shown = visible(words if len(words) <= 60 else words[:57] + "...")
            typer.echo(f"not run, because the tables come from --data: line {line}: {shown}", err=True)
        else:
            asked.append(place)
    return asked


#: `--limit 0` collects a whole result to show it as a table: no guard against that. Times in Parquet as every reader
#: knows them, with statistics; Spark's default is the older INT96, which has none.
_DEFAULTS = {"spark.driver.maxResultSize": "0", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


def open_session(conf: Sequence[str], compat: str | None) -> Session:
    """A Session with these settings, whose Spark is not started yet. Raises ConfigurationError for a wrong setting."""
    from sqlext.session import OPENMLDB_SETTINGS, Session

    ours, spark = read_settings(conf)
    openmldb = OPENMLDB_SETTINGS if compat == "openmldb" else {}  # also for what is printed
    return Session(compat=compat, config={**_DEFAULTS, **openmldb, **spark, **ours})


def register_tables(session: Session, data: str | None, options: FolderOptions) -> None:
    """Make the tables of a folder or URI views of the session, each once a statement names it.

    Raises ConfigurationError for a folder that cannot be read.
    """
    from sqlext.catalog import tables_at

    tables = tables_at(data, lambda: session.spark) if data is not None else {}
    session.register_when_named({name: replace(files, options=options.of(name)) for name, files in tables.items()})


def _execute(session: Session, text: str, place: Span) -> DataFrame:
    with errors_in(text, place):
        return session.sql(text[place.start : place.end])


@contextmanager
def errors_in(text: str, place: Span) -> Iterator[None]:
    """Errors of the statement at `place`, found before it runs or by its tasks, point into the whole text."""
    try:
        yield
    except SqlExtError as error:
        raise _moved(error, text, place) from error.__cause__
    except Exception as error:
        mistake = placed(error, text[place.start : place.end])
        if mistake is None:
            raise
        raise _moved(mistake, text, place) from error


def _moved(error: SqlExtError, text: str, place: Span) -> SqlExtError:
    if error.span is not None:
        error.span = Span(error.span.start + place.start, error.span.end + place.start)
    error.sql = text
    return error


#: Writes the result of a frame.
_Write = Callable[["DataFrame", StageProgress], None]


@contextmanager
def result_writer(kind: str, output: Path | None, limit: int | None) -> Iterator[_Write]:
    """What writes a result to its place, which is open."""
    if kind == "parquet" and output is not None:
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
