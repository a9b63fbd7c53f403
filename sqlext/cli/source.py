"""Where a command takes its SQL text, its tables and its settings from."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer
from sqlext_planner.config import PREFIX
from sqlext_planner.errors import ConfigurationError, Span

_schema_error = partial(ConfigurationError, condition="schema-file")
_file_error = partial(ConfigurationError, condition="file-access")

#: A larger file is not text that somebody wrote; /dev/zero never ends.
_MOST_BYTES = 64 << 20


def read_sql(file: str | None, text: str | None) -> str:
    """The SQL of `-e TEXT`, of FILE, or of stdin (`-`, or neither where stdin is no terminal).

    Raises ConfigurationError for what cannot be read, typer.BadParameter if there is no SQL, or two.
    """
    if file is not None and text is not None:
        raise typer.BadParameter("give the SQL either as a FILE (`-` is standard input) or with -e")
    if text is not None:
        return _utf8(text)
    if file is not None:
        return _from_stdin() if file == "-" else read_text(Path(file))
    found = "" if sys.stdin is not None and sys.stdin.isatty() else _from_stdin()
    if not found.strip():
        raise typer.BadParameter("give the SQL as a FILE, with -e, or through a pipe")
    return found


def _utf8(argument: str) -> str:
    """A command line argument under an ASCII locale: Python then keeps its other bytes as surrogate halves."""
    try:
        return argument.encode(sys.getfilesystemencoding(), "surrogateescape").decode()
    except UnicodeError:
        return argument


def _from_stdin() -> str:
    """Standard input as UTF-8, like a file. Raises ConfigurationError."""
    if sys.stdin is None:
        raise ConfigurationError(
            "standard input is closed", condition="command-line", help="give the SQL with -e or as a file"
        )
    try:
        raw = getattr(sys.stdin, "buffer", None)
        return str(sys.stdin.read()) if raw is None else bytes(raw.read()).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise _file_error(
            f"standard input cannot be read: {error}", help="give UTF-8 text, or the SQL with -e or as a file"
        ) from error


def read_text(path: Path) -> str:
    """The content of a UTF-8 text file. Raises ConfigurationError if there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise _file_error(f"{path} has more than {_MOST_BYTES >> 20} MB", help="check the path")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise _file_error(f"cannot read {path}: {error.strerror}", help="check the path") from error
    except UnicodeDecodeError as error:
        raise _file_error(f"{path} is not UTF-8 text", help="convert it to UTF-8") from error


def read_schema(path: Path) -> dict[str, dict[str, str]]:
    """``{"table": {"column": "spark type"}}``, from JSON or from the CREATE TABLE statements of a ``.sql`` file.

    Raises ConfigurationError for a file in another form, SqlExtError for a mistake in a CREATE TABLE.
    """
    if path.suffix.lower() == ".sql":
        return _declared(path)
    help = 'write it as {"table": {"column": "spark type"}}, or give a .sql file with CREATE TABLE statements'
    try:
        schema = json.loads(read_text(path), object_pairs_hook=partial(_object, path))
    except ValueError as error:  # a number with too many digits is not a JSONDecodeError
        raise _schema_error(f"{path} is not JSON: {error}", help=help) from error
    except RecursionError as error:
        raise _schema_error(f"{path} is nested too deeply for a schema", help=help) from error
    tables = schema.values() if isinstance(schema, dict) else [None]
    if not all(isinstance(t, dict) and all(isinstance(kind, str) for kind in t.values()) for t in tables):
        raise _schema_error(f"{path} is not a schema", help=help)
    return {str(table): dict(columns) for table, columns in schema.items()}


def _object(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated names: the names of tables and columns ignore case."""
    known: dict[str, str] = {}
    for name, _ in pairs:
        if name.lower() in known:
            raise ConfigurationError(
                f"{path} names '{name}' twice in one object (as '{known[name.lower()]}')",
                condition="duplicate-name",
                help="rename one of them",
            )
        known[name.lower()] = name
    return dict(pairs)


def _declared(path: Path) -> dict[str, dict[str, str]]:
    from sqlext.catalog.ddl import read_ddl

    tables = read_ddl(read_text(path))
    if not tables:
        raise _schema_error(f"{path} creates no table", help="write CREATE TABLE name (column type, ...)")
    return tables


def read_settings(pairs: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """`k=v` pairs, as (sqlext.* settings, Spark settings). Raises typer.BadParameter for anything else."""
    ours: dict[str, str] = {}
    spark: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"--conf {pair}: write it as --conf key=value")
        (ours if key.strip().lower().startswith(PREFIX) else spark)[key.strip()] = value.strip()
    return ours, spark


def refuse_spark_settings(spark: Mapping[str, str]) -> None:
    """Raises typer.BadParameter for a setting of Spark's where a plan is made without it."""
    if spark:
        raise typer.BadParameter(f"--conf {next(iter(spark))}: `plan` starts no Spark; give sqlext.* settings only")


_PARTS = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` | (?P<end>;)
      | (?P<blank> \s+ | --[^\n]* | /\*.*?\*/ ) | (?P<open> ['"`] | /\* ) | [^\s;]""",
    re.VERBOSE | re.DOTALL,
)
_SCRIPT = re.compile(r"BEGIN\b", re.IGNORECASE)


@dataclass(frozen=True)
class SourcePiece:
    """A statement of a text: its place without the semicolon; whether one follows; the quote or ``/*`` left open."""

    place: Span
    is_ended: bool
    opened: str = ""


def statements_from(text: str, at: int = 0) -> Iterator[SourcePiece]:
    """The statements from `at` on, in order, each found when it is asked for; a script (BEGIN ... END) is one of them,
    with all that follows."""
    start: int | None = None
    for part in _PARTS.finditer(text, at):
        if part["end"] is not None:
            if start is not None:
                yield SourcePiece(Span(start, part.start()), is_ended=True)
            start = None
        elif part["blank"] is None and start is None:
            start = part.start()
            if _SCRIPT.match(text, start):
                yield SourcePiece(Span(start, len(text.rstrip())), is_ended=False)
                return
        if part["open"] is not None:
            yield SourcePiece(
                Span(part.start() if start is None else start, len(text)), is_ended=False, opened=part["open"]
            )
            return
    if start is not None:
        yield SourcePiece(Span(start, len(text.rstrip())), is_ended=False)


def split_statements(text: str) -> list[Span]:
    """The places of the statements between semicolons; a script (BEGIN ... END) is one statement."""
    return [piece.place for piece in statements_from(text)]
