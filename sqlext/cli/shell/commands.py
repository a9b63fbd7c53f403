"""The commands of the shell: what begins with a backslash."""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ConfigurationError, Span

from sqlext.catalog.locations import written_at
from sqlext.cli.destinations import chosen_format
from sqlext.cli.plan import DEFAULT_STAGES
from sqlext.cli.run import errors_in
from sqlext.cli.shell.completion import Argument
from sqlext.cli.shell.help import functions_drawn, topic_drawn, topics_drawn
from sqlext.cli.shell.results import lines_drawn, listing_drawn
from sqlext.cli.shell.state import LeaveError, Shell
from sqlext.cli.source import statements_from
from sqlext.cli.terminal import writing
from sqlext.explain.pages import SHOWN, explain_text, render

_command_error = partial(ConfigurationError, condition="command-line")

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Command:
    """A command: its names with the backslash, its argument for people and for completion, what it does."""

    names: tuple[str, ...]
    form: str
    argument: Argument
    meaning: str
    run: Callable[[Shell, str], None]


def run_command(shell: Shell, text: str) -> None:
    """Run a command, ``\\name argument``. Raises ConfigurationError for an unknown one, and what the command raises."""
    name, _, argument = text.strip().partition(" ")
    argument = argument.strip()
    chosen = next((command for command in COMMANDS if name in command.names), None)
    if chosen is None:
        names = [known for command in COMMANDS for known in command.names]
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        help = f"did you mean {near[0]}? " if near else ""
        raise _command_error(f"there is no command {name}", help=rf"{help}\? lists the commands")
    # a statement keeps its semicolon, a file name may end in one: nothing else has any
    chosen.run(shell, argument if chosen.argument in ("sql", "file") else argument.rstrip(";").rstrip())


def command_words() -> dict[str, tuple[Argument, str]]:
    """What the argument of each command is and what it does, for completion."""
    return {name: (command.argument, command.meaning) for command in COMMANDS for name in command.names}


def _help(shell: Shell, argument: str) -> None:
    def draw(out: Console) -> None:
        out.print("A statement ends with a semicolon, and may have several lines.\n", markup=False)
        wide = max(len(_shown(command)) for command in COMMANDS)
        for command in COMMANDS:
            out.print(Text.assemble((_shown(command).ljust(wide), "bold"), "  ", command.meaning))
        out.print()
        for key, meaning in _KEYS:
            out.print(Text.assemble((key.ljust(wide), "bold"), "  ", meaning))

    shell.show(draw, folds=True)


def _shown(command: Command) -> str:
    return f"{', '.join(command.names)} {command.form}".rstrip()


_KEYS = (
    ("Tab", "completes words, tables, columns, settings, commands"),
    ("Ctrl-C", "clears what is typed; cancels a statement that runs"),
    ("Ctrl-R", "searches in what was typed before"),
    ("Alt-Enter", "begins a new line in a statement that is complete"),
    ("Ctrl-X Ctrl-E", "opens what is typed in $EDITOR"),
    ("Ctrl-D", "leaves"),
)


def _leave(shell: Shell, argument: str) -> None:
    raise LeaveError


def _describe(shell: Shell, argument: str) -> None:
    if not argument:
        _list_tables(shell)
        return
    name = argument.replace("`", "")
    info = shell.look_up(lambda: shell.tables.info(name))
    if info is None:
        shell.session().read_named(name)  # Spark may have it
        info = shell.look_up(lambda: shell.tables.info(name))
    if info is None:
        near = difflib.get_close_matches(name, shell.look_up(shell.tables.names), n=1)
        raise AnalysisError(
            f"there is no table '{name}'",
            condition="unknown-table",
            help=f"did you mean {near[0]}?" if near else r"\d lists them",
        )
    shell.show(listing_drawn(("column", "type"), info.columns), folds=True)
    known = [f"{info.rows:,} rows" if info.rows is not None else "", _size(info.paths), info.format or ""]
    if any(known):
        shell.out.print(", ".join(filter(None, known)), style="dim", markup=False)


def _list_tables(shell: Shell) -> None:
    if not shell.look_up(shell.tables.names):
        shell.session()
    lines = shell.look_up(lambda: [_line(name, shell.tables.info(name)) for name in shell.tables.names()])
    if not lines:
        shell.out.print("no tables", style="dim")
        return
    shell.show(
        listing_drawn(("table", "columns", "rows", "size", "from"), lines, right="columns rows size"), folds=True
    )
    if not shell.engine.is_over:
        shell.say("Spark is still starting; it may have more")


def _line(name: str, info: TableInfo | None) -> tuple[str, ...]:
    """A table in the list of tables; only the name if nothing is known."""
    if info is None:
        return name, "", "", "", ""
    rows = "" if info.rows is None else f"{info.rows:,}"
    return name, str(len(info.columns)), rows, _size(info.paths), info.format or "Spark's"


def _size(paths: tuple[str, ...]) -> str:
    """The bytes of files on disk, for people."""
    try:
        size = float(sum(Path(path).stat().st_size for path in paths))
    except OSError:
        return ""
    if not paths:
        return ""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"


def _functions(shell: Shell, argument: str) -> None:
    shell.show(functions_drawn(argument), folds=True)


def _topic(shell: Shell, argument: str) -> None:
    if not argument:
        shell.show(topics_drawn(), folds=True)
        return
    of_spark = None
    if shell.engine.is_ready and argument.lower().rstrip("()") in shell.engine.functions:
        spark, name = shell.session().spark, argument.rstrip("()")
        rows = shell.look_up(lambda: spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect())
        of_spark = "\n".join(str(row[0]) for row in rows)
    shell.show(topic_drawn(argument, of_spark), folds=True)


def _switch(name: str, what: str) -> Callable[[Shell, str], None]:
    """A command that turns an option on or off, or over."""

    def run(shell: Shell, argument: str) -> None:
        if argument not in ("", "on", "off"):
            raise _command_error(f"'{argument}' is neither on nor off", help="give on, off, or nothing")
        wanted = argument == "on" if argument else not getattr(shell.options, name)
        setattr(shell.options, name, wanted)
        shell.say(f"{what}: {'on' if wanted else 'off'}")

    return run


def _limit(shell: Shell, argument: str) -> None:
    if argument:
        digits = argument.replace(",", "").replace("_", "")
        if not digits.isdecimal() or int(digits) < 1:
            raise _command_error(f"'{argument}' is no number of rows", help=r"write for example \limit 5000")
        shell.options.rows = int(digits)
    shell.say(f"a result shows at most {shell.options.rows:,} rows")


def _plan(shell: Shell, argument: str) -> None:
    word, _, rest = argument.partition(" ")
    match word.lower():
        case "analyze":
            sql = _statement_of(shell, rest)
            shell.statement(f"EXPLAIN ANALYZE {sql}", Span(0, len(sql) + 16))
            shell.last = sql
        case "html":
            file, _, sql = rest.strip().partition(" ")
            if not file:
                raise _command_error("a file for the page is missing", help=r"write \plan html plan.html")
            page = _rendered(shell, _statement_of(shell, sql), "html")
            path = Path(file).expanduser()
            with writing(path):
                path.write_text(page, encoding="utf-8", errors="backslashreplace")
            shell.say(f"written to {path}")
        case _:
            shell.show(lines_drawn(_rendered(shell, _statement_of(shell, argument), "text")))


def _rendered(shell: Shell, sql: str, format: str) -> str:
    session = shell.session()
    with errors_in(sql, Span(0, len(sql))):
        plan = shell.ask(lambda shown: session.plan(sql))
    shell.last = sql
    return explain_text(plan, SHOWN) if format == "text" else render(plan, DEFAULT_STAGES, format)


def _statement_of(shell: Shell, argument: str) -> str:
    """The statement that a command is given, else the last one."""
    piece = next(statements_from(argument), None)
    if piece is not None:
        return argument[piece.place.start : piece.place.end]
    if shell.last is None:
        raise _command_error("no statement has run yet", help=r"write it behind the command: \plan SELECT ...")
    return shell.last


def _output(shell: Shell, argument: str) -> None:
    if not argument:
        shell.options.output = None
        shell.say("results are shown")
        return
    place = written_at(argument)
    chosen_format(None, place)
    shell.options.output = place
    shell.say(f"the next result is written to {place}")


def _file(shell: Shell, argument: str) -> None:
    if not argument:
        raise _command_error("the name of a file is missing", help=r"write \i query.sql")
    shell.run_file(Path(argument).expanduser())


def _settings(shell: Shell, argument: str) -> None:
    name, _, value = argument.replace("=", " ").partition(" ")
    if value.strip():
        sql = f"SET {name} = {value.strip()}"
        shell.statement(sql, Span(0, len(sql)))
        return
    conf = shell.session().spark.conf
    known = [setting for setting in Config.described() if name.lower() in setting.key.lower()]
    if not known:
        current = shell.look_up(lambda: conf.get(name, None))
        if current is None:
            raise ConfigurationError(
                f"no setting has '{name}' in its name",
                condition="unknown-setting",
                help=r"\set lists those of the extension",
            )
        shell.show(listing_drawn(("setting", "value"), [(name, current)]), folds=True)
        return
    values = shell.look_up(lambda: [conf.get(setting.key, None) for setting in known])
    lines = [
        (setting.key, value or f"{setting.default} (default)", setting.doc.split(". ")[0])
        for setting, value in zip(known, values, strict=True)
    ]
    shell.show(listing_drawn(("setting", "value", "meaning"), lines), folds=True)


def _edit(shell: Shell, argument: str) -> None:
    if not shell.is_interactive:
        raise _command_error(r"\e works only at the prompt", help="leave it out of scripts")
    editor = shell.environment.get("VISUAL") or shell.environment.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="sqlext-edit-") as folder:
        path = Path(folder) / "statement.sql"
        path.write_text(f"{shell.last};\n" if shell.last else "", encoding="utf-8")
        done = subprocess.run([*shlex.split(editor), path], env={**os.environ, **shell.environment}, check=False)
        if done.returncode != 0:
            raise _command_error(f"the editor '{editor}' has failed", help="set EDITOR to another one")
        shell.next_text = path.read_text(encoding="utf-8").strip()


def _restart(shell: Shell, argument: str) -> None:
    shell.engine.restart()
    shell.tables.forget()
    shell.say("Spark is starting again; temporary views and settings of before are gone")


#: In the order of `\?`.
COMMANDS = (
    Command((r"\d",), "[TABLE]", "table", "the tables, or the columns of one", _describe),
    Command((r"\df",), "[PART]", "help", "the functions, or those with this in their name", _functions),
    Command((r"\h",), "[WORD]", "help", "explains a clause, function, predicate or setting", _topic),
    Command((r"\plan",), "[analyze | html FILE] [SQL]", "sql", "how a statement runs; that of the last one", _plan),
    Command(
        (r"\x",), "[on | off]", ("on", "off"), "a line for each column", _switch("vertical", "a line for each column")
    ),
    Command((r"\limit",), "[N]", "none", "how many rows of a result are fetched", _limit),
    Command(
        (r"\o",), "[FILE]", "file", "writes the next result to a file or URI: .csv .json .jsonl .parquet .txt", _output
    ),
    Command((r"\i",), "FILE", "file", "runs a file", _file),
    Command((r"\e",), "", "none", "opens the last statement in $EDITOR", _edit),
    Command((r"\set", r"\conf"), "[NAME [VALUE]]", "setting", "settings: shows them, or sets one", _settings),
    Command((r"\timing",), "[on | off]", ("on", "off"), "the time of each statement", _switch("timing", "times")),
    Command((r"\pager",), "[on | off]", ("on", "off"), "large results in $PAGER", _switch("pager", "pager")),
    Command((r"\restart",), "", "none", "ends Spark and starts it again", _restart),
    Command((r"\?",), "", "none", "this list", _help),
    Command((r"\q",), "", "none", "leaves", _leave),
)
