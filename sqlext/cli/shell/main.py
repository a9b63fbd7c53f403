"""`sqlext shell`: asks, runs and shows, until one leaves."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError

from sqlext import __version__
from sqlext.catalog.options import FolderOptions
from sqlext.cli.failures import explained
from sqlext.cli.run import open_session
from sqlext.cli.shell.commands import command_words, run_command
from sqlext.cli.shell.completion import ShellCompleter
from sqlext.cli.shell.engine import CancelledError, Engine
from sqlext.cli.shell.state import LeaveError, Shell, dead_java
from sqlext.cli.shell.tables import KnownTables
from sqlext.cli.signals import stopped_by
from sqlext.cli.source import read_settings, read_sql
from sqlext.cli.terminal import console, visible
from sqlext.embedded import silence_servers

if TYPE_CHECKING:
    from sqlext.catalog import FileCatalog
    from sqlext.cli.shell.prompt import Prompt

#: Tables that the first lines name.
_NAMED = 8


def run_shell(sql: str | None, data: str | None, conf: Sequence[str], compat: str | None, read: Sequence[str]) -> None:
    """A shell on the terminal; without one, or with `sql`, a script: it ends with the first error."""
    _quiet_py4j()
    ours, spark = read_settings(conf)
    Config.from_mapping(ours)
    options = FolderOptions.of_texts(read)
    files = _files(data, options, compat)
    session = open_session([f"{key}={value}" for key, value in spark.items()], compat)
    engine = Engine(session, data, ours, options)
    is_interactive = sql is None and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    tables = KnownTables(files, engine.catalog, engine.offered)
    shell = Shell(engine, tables, console(), run_command, dict(os.environ), is_interactive)
    text = "" if is_interactive else read_sql(None, sql)
    engine.start()
    try:
        if is_interactive:
            _Conversation(shell).run()
        else:
            with suppress(LeaveError):
                shell.run_text(text)
    finally:
        engine.end()


def _quiet_py4j() -> None:
    """If Java has ended, Py4J logs with a traceback what it also raises, to its own logger and to the root, and
    PySpark's servers print what they miss. The shell says it once."""
    silence_servers()
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.module != "java_gateway")


def _files(data: str | None, options: FolderOptions, compat: str | None) -> FileCatalog | None:
    """The tables of a local folder. Raises ConfigurationError for one that does not exist."""
    from sqlext.catalog import FileCatalog
    from sqlext.catalog.locations import LocalData, located

    if data is None or not isinstance(located(data), LocalData):
        return None
    return FileCatalog(data, options, instants=compat is not None)


class _Conversation:
    """Asks and runs until somebody leaves; it prints errors and goes on."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._errors = Console(stderr=True, highlight=False)

    def run(self) -> None:
        """Until somebody leaves. Meanwhile Ctrl-C raises KeyboardInterrupt, and ends nothing."""
        from sqlext.cli.shell.prompt import Prompt, history_path, open_history

        shell = self._shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
        completer = ShellCompleter(shell.tables, command_words(), lambda: shell.engine.functions)
        prompt = Prompt(completer, open_history(history_path(shell.environment)), vi=_prefers_vi(shell.environment))
        shell.engine.on_over = prompt.spark_started
        self._greet()
        while True:
            try:
                self._turn(prompt)
            except (EOFError, LeaveError):
                return
            except (KeyboardInterrupt, CancelledError) as stop:
                self._say_cancelled(stop)
            except Exception as error:
                if stopped_by() is not None:
                    raise
                self._tell(error)

    def _turn(self, prompt: Prompt) -> None:
        shell = self._shell
        if not shell.engine.is_over:
            prompt.spark_starts()
            if shell.engine.is_over:
                prompt.spark_started()
        text, shell.next_text = shell.next_text, ""
        try:
            typed = prompt.ask(text)
        except KeyboardInterrupt:
            return
        shell.run_text(typed)

    def _greet(self) -> None:
        out, names = self._shell.out, self._shell.tables.names()
        out.print(Text.assemble(("sqlext ", "bold"), __version__, (r"   \? for help, \q to leave", "dim")))
        if names:
            more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            out.print(Text(visible("tables: " + ", ".join(names[:_NAMED]) + more)))
        else:
            out.print(Text("no tables yet: --data DIR brings those of a folder", style="dim"))

    def _say_cancelled(self, stop: BaseException) -> None:
        left = isinstance(stop, CancelledError) and stop.is_left
        more = r": it does not end, and goes on by itself (\restart ends it)" if left else ""
        self._errors.print(Text(f"cancelled{more}", style="yellow"))

    def _tell(self, error: Exception) -> None:
        """Print what is wrong, in colours."""
        if not isinstance(error, SqlExtError) and self._shell.engine.is_dead():
            error = dead_java()
        message, _ = explained(error)
        for line in visible(message).splitlines():
            self._errors.print(coloured(line), soft_wrap=True)


def coloured(line: str) -> Text:
    """A line of an error: its kind red, the marks below the place red, what to do cyan."""
    text = Text(line)
    text.highlight_regex(r"^\w+(Error|Exception)(?=: )", "bold red")
    text.highlight_regex(r"^ *\^+$", "bold red")
    text.highlight_regex(r"^help: .*", "cyan")
    text.highlight_regex(r"^(note: .*|  --> .*)", "dim")
    return text


def _prefers_vi(environment: Mapping[str, str]) -> bool:
    """Whether somebody edits with the keys of vi: as psql, by the editor that they have chosen."""
    from pathlib import Path

    inputrc = Path(environment.get("INPUTRC") or Path(environment.get("HOME", "/"), ".inputrc"))
    try:
        return "set editing-mode vi" in inputrc.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
