"""A shell: what its commands change, and how statements run in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from sqlext_planner.errors import ConfigurationError, Span, SqlExtError, UnsupportedError
from sqlext_planner.spark.versions import arrow_table

from sqlext.cli.destinations import Destination, chosen_format, result_writer
from sqlext.cli.run import errors_in
from sqlext.cli.shell.engine import CancelledError, Engine, cancellable, presses
from sqlext.cli.shell.results import Draw, lines_drawn, rows_drawn, show
from sqlext.cli.shell.script import parts
from sqlext.cli.shell.tables import KnownTables
from sqlext.cli.terminal import StageProgress, keys_unseen, progress

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlext.session import Session

#: Rows of a result that are fetched.
ROWS = 1000
#: How deep a file may run files.
_DEPTH = 10
_T = TypeVar("_T")


class LeaveError(Exception):
    r"""``\q``."""


@dataclass
class ShellOptions:
    """What commands change. `output`: the file for the next result."""

    rows: int = ROWS
    timing: bool = True
    vertical: bool = False
    pager: bool = True
    output: Destination | None = None


@dataclass
class Shell:
    """Runs statements and commands, one after the other.

    `command` runs the text of a command. `last` is the statement that ran last, `next_text` what the next prompt begins
    with. Without `is_interactive` nothing waits for keys, and nothing but results is printed.
    """

    engine: Engine
    tables: KnownTables
    out: Console
    command: Callable[[Shell, str], None]
    environment: Mapping[str, str]
    is_interactive: bool
    options: ShellOptions = field(default_factory=ShellOptions)
    last: str | None = None
    next_text: str = ""
    depth: int = 0

    def run_text(self, text: str) -> None:
        """Run what a text holds, in order. Raises the first error, LeaveError for the command to leave."""
        for part in parts(text):
            if part.is_command:
                self.command(self, part.text)
            else:
                self.statement(text, part.place)

    def run_file(self, path: Path) -> None:
        """Run a file. Raises what it raises, with a note that names the file."""
        from sqlext.cli.source import read_text

        if self.depth >= _DEPTH:
            raise ConfigurationError(
                f"{path} is run by a file that it runs", condition="command-line", help="take one of them out"
            )
        text = read_text(path)
        self.depth += 1
        try:
            self.run_text(text)
        except SqlExtError as error:
            error.notes = (*error.notes, f"this is in {path}")
            raise
        finally:
            self.depth -= 1

    def statement(self, text: str, place: Span) -> None:
        """Run the statement at a place of the text, and show its result or write it to `options.output`."""
        statement = text[place.start : place.end]
        self.last = statement
        session = self.session()
        start, output = time.perf_counter(), self.options.output
        with errors_in(text, place):
            if output is None:
                answer = self.ask(lambda shown: _answer(session, statement, self.options.rows))
            else:
                is_written = self.ask(lambda shown: _write(session, statement, output, shown))
        seconds = time.perf_counter() - start
        self.tables.forget()
        if output is None:
            self._show(answer, statement)
        elif is_written:
            self.options.output = None
            self.say(f"written to {output}")
        if self.options.timing:
            self.say(f"{seconds:.2f} s")

    def session(self) -> Session:
        """The Session, with Spark running. Raises CancelledError after Ctrl-C, ConfigurationError if Java has ended."""
        if self.engine.is_dead():
            raise dead_java()
        if self.is_interactive and not self.engine.is_over:
            with keys_unseen(), presses() as pressed, progress("Starting Spark"):
                while not self.engine.is_over and not pressed.is_set():
                    self.engine.pause()
            if not self.engine.is_over:
                raise CancelledError
        return self.engine.wait()

    def ask(self, work: Callable[[StageProgress], _T]) -> _T:
        """What `work` returns. Meanwhile Spark's stages are shown, and Ctrl-C cancels it."""
        spark = self.session().spark
        if not self.is_interactive:
            with StageProgress(spark) as shown:
                return work(shown)
        with keys_unseen(), StageProgress(spark) as shown:
            return cancellable(lambda: work(shown), self.engine.cancel)

    def look_up(self, question: Callable[[], _T]) -> _T:
        """What a question to the catalog or to Spark's settings answers; Ctrl-C ends the waiting."""
        return cancellable(question, self.engine.cancel) if self.is_interactive else question()

    def show(self, draw: Draw, *, folds: bool = False) -> bool:
        """Print something, through the pager if it is large and somebody looks at it. `folds`: long lines are
        folded, not cut. Says whether it was in the pager."""
        paged = self.options.pager and self.is_interactive
        return show(self.out, draw, folds=folds, paged=paged, environment=self.environment)

    def say(self, message: str) -> None:
        """A remark for people; scripts do not print it."""
        if self.is_interactive:
            self.out.print(message, style="dim", markup=False)

    def _show(self, answer: pa.Table | None, statement: str) -> None:
        if answer is None:
            self.say("done")
            return
        explains = statement.lstrip().upper().startswith("EXPLAIN")
        if explains and answer.column_names == ["plan"] and answer.num_rows == 1:
            self.show(lines_drawn(str(answer.column(0)[0].as_py())))
        else:
            draw, draw_count = rows_drawn(answer, limit=self.options.rows, vertical=self.options.vertical)
            if self.show(draw):
                draw_count(self.out)


def dead_java() -> ConfigurationError:
    """The error once the Java process is gone."""
    return ConfigurationError(
        "Spark's Java process has ended",
        condition="spark-stopped",
        help=r"\restart starts it again",
        notes=("Tables of --data come back; temporary views and settings of this session do not.",),
    )


def _answer(session: Session, statement: str, rows: int) -> pa.Table | None:
    """The first rows of a result, one more than asked for where there are more; None for a command without one."""
    frame = session.sql(statement)
    if frame.isStreaming:
        raise _stream_refusal(statement)
    return arrow_table(frame.limit(rows + 1)) if frame.columns else None


def _write(session: Session, statement: str, output: Destination, shown: StageProgress) -> bool:
    """Write a result to a file; False for a command without one."""
    frame = session.sql(statement)
    if frame.isStreaming:
        raise _stream_refusal(statement)
    if not frame.columns:
        return False
    with result_writer(chosen_format(None, output), output, None) as write:
        write(frame, shown)
    return True


def _stream_refusal(statement: str) -> UnsupportedError:
    return UnsupportedError(
        "this is a query over a stream: its rows never end, so they cannot be shown as a table",
        condition="stream-not-supported",
        span=Span(0, len(statement)),
        help=r"\plan shows how it runs; to run it, start it in Python with session.sql(...).writeStream",
    )
