"""`sqlext run`: statements on a local Spark, the last one's result as a table or a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer
from sqlext_planner.errors import ConfigurationError, Span, SqlExtError

from sqlext.catalog.locations import written_at
from sqlext.catalog.options import FolderOptions
from sqlext.cli.destinations import chosen_format, result_writer
from sqlext.cli.failures import placed
from sqlext.cli.source import read_settings, read_sql, split_statements
from sqlext.cli.terminal import StageProgress, progress, visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext.session import Session

_command_error = partial(ConfigurationError, condition="command-line")


def run_query(
    file: str | None,
    sql: str | None,
    data: str | None,
    format: str | None,
    output: str | None,
    limit: int,
    conf: Sequence[str],
    compat: str | None,
    read: Sequence[str],
) -> None:
    """Run every statement of the text in order; print or write the result of the last."""
    text = read_sql(file, sql)
    options = FolderOptions.of_texts(read)
    target = None if output is None else written_at(output)
    kind = chosen_format(format, target)
    places = split_statements(text)
    if compat == "openmldb":
        places = _without_declarations(text, places)
    if not places:
        raise _command_error("the text contains no statement", help="give the SQL with -e or as a file")
    with result_writer(kind, target, limit or None) as write:  # opened first: what cannot be written fails at once
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
