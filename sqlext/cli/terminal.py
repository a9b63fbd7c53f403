"""The terminal: text that it can show, streams that accept any text, tables and SQL on it, and what Spark is doing in a
run that takes longer than two seconds."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from sqlext_planner.spark.results import python_values

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: Control characters (except tab and newline), marks that change the direction of writing, line separators, and
#: surrogate halves: a terminal would obey them, or show another text than the real one.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with every such character as an escape: ``\\x1b``, ``\\u202e``."""
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def json_visible(text: str) -> str:
    """The same for JSON text. Its data stays the same, because its strings may hold the escapes."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def prepare_streams() -> None:
    """Make the standard streams exist and accept any text: what their encoding lacks is written as an escape.

    A closed one becomes /dev/null, so that no file that is opened later takes its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def exact_output() -> Iterator[TextIO]:
    """Standard output for data: UTF-8 whatever the terminal's encoding, as in a file."""
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        yield sys.stdout
        return
    sys.stdout.flush()
    import io

    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
    try:
        yield stream
        stream.flush()
    finally:
        stream.detach()


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Adds the file's name to errors raised inside: those of an open stream or of pyarrow do not have it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), str(output)) from error


@contextmanager
def keys_unseen() -> Iterator[None]:
    """What is typed inside is not shown, and is there for the next who reads: shown, it would break what is drawn.

    Does nothing where standard input is no terminal.
    """
    import termios

    try:
        before = termios.tcgetattr(0)
    except termios.error:
        yield
        return
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(0, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def width_of(stream: TextIO, default: int) -> int:
    """The width of a terminal in columns, `default` for anything else."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else default
    except (OSError, ValueError, AttributeError):
        return default


#: Wide enough for any result: a program that reads the output must get whole lines.
PIPE_WIDTH = 1 << 14


def console() -> Console:
    """Standard output; never folds lines when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on the terminal during a long step; nothing if stderr is not a terminal."""
    with Console(stderr=True).status(what):
        yield


def print_rows(out: Console, table: pa.Table, *, more: bool = False) -> None:
    """The rows as a table, and how many there are; `more`: the result has more rows than these."""
    print_grid(out, table)
    print_count(out, table.num_rows, f"first {table.num_rows} rows" if more else "")


def print_grid(out: Console, table: pa.Table) -> None:
    """The rows as a table."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        grid.add_column(Text(visible(name)), justify="right" if _is_number(column.type) else "left", overflow="fold")
    columns = [python_values(column) for column in table.columns]
    for row in zip(*columns, strict=True):
        grid.add_row(*map(cell, row))
    out.print(grid)


def print_count(out: Console, count: int, instead: str = "") -> None:
    """How many rows there are, or what is to be said instead."""
    out.print(instead or f"{count:,} row{'' if count == 1 else 's'}", style="dim")


def print_sql(out: Console, sql: str) -> None:
    """SQL, in colours on a terminal."""
    if out.is_terminal:
        from rich.syntax import Syntax

        out.print(Syntax(sql.strip(), "sql", background_color="default"))
    else:
        out.print(Text(sql.strip()))


def print_lines(out: Console, lines: Sequence[str]) -> None:
    """Text as it is: no markup, no highlighting."""
    for line in lines:
        out.print(Text(visible(line)))


def cell(value: Any) -> Text:
    """A value as it is shown; NULL is dim."""
    if value is None:
        return Text("NULL", style="dim")
    is_plain = isinstance(value, float) and value == value and abs(value) < 1e6
    return Text(f"{value:.6g}" if is_plain else visible(str(value)))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


#: Seconds before it shows, and between two looks at Spark.
_QUIET_SECONDS = 2.0
_EVERY_SECONDS = 0.25


class StageProgress:
    """A line on stderr: the active stages, how many of their tasks are done, seconds. Only on a terminal.

    Works inside a `with` block; `stop` removes the line earlier, before something else is written to the terminal.
    """

    def __init__(self, spark: SparkSession, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._tracker = spark.sparkContext.statusTracker()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> StageProgress:
        if self._console.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *caught: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the line, for good."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._over.wait(_QUIET_SECONDS):
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn("{task.completed}/{task.total} tasks"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as line:
            task = line.add_task("Running", total=None)
            while not self._over.wait(_EVERY_SECONDS):
                try:
                    stages, done, total = self._active()
                except Exception:  # Spark is being stopped
                    return
                what = f"Stage {', '.join(map(str, stages))}" if stages else "Running"
                line.update(task, description=what, completed=done, total=total or None)

    def _active(self) -> tuple[list[int], int, int]:
        """The active stages, and how many tasks of theirs are done, of how many."""
        stages = sorted(self._tracker.getActiveStageIds())
        found = [info for info in map(self._tracker.getStageInfo, stages) if info is not None]
        return stages, sum(info.numCompletedTasks for info in found), sum(info.numTasks for info in found)
