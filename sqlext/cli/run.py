"""`sqlext run`: statements on a local Spark, the last one's result as a table or a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from sqlext_planner.errors import ConfigurationError, Span, SqlExtError

from sqlext.cli.console import console, print_rows, progress
from sqlext.cli.source import read_settings, read_sql, split_statements
from sqlext.cli.terminal import exact_output, json_visible, visible, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sqlext.session import Session

BATCH_ROWS = 65_536


def run_query(
    file: str | None,
    sql: str | None,
    data: str | None,
    format: str,
    output: Path | None,
    limit: int,
    conf: Sequence[str],
    compat: str | None,
) -> None:
    """Run every statement of the text in order; print or write the result of the last."""
    text = read_sql(file, sql)
    if format == "parquet" and output is None:
        raise typer.BadParameter("--format parquet needs a file: -o OUT.parquet")
    places = split_statements(text)
    if compat == "openmldb":
        places = _without_declarations(text, places)
    if not places:
        raise ConfigurationError("the text contains no statement", help="give the SQL with -e or as a file")
    with progress("Starting Spark"):
        session = _session(data, conf, compat)
    try:
        with progress("Running"):
            for place in places[:-1]:
                _execute(session, text, place)
            frame = _execute(session, text, places[-1])
            shown = limit if format == "table" and limit else None
            with _errors_in(text, places[-1]):
                result = (frame if shown is None else frame.limit(shown + 1)).toArrow()
        _write(result, format, output, shown)
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
            typer.echo(
                f"not run, because the tables come from --data: line {line}: {visible(_summary(statement))}", err=True
            )
        else:
            asked.append(place)
    return asked


def _summary(statement: str) -> str:
    words = " ".join(statement.split())
    return words if len(words) <= 60 else words[:57] + "..."


def _session(data: str | None, conf: Sequence[str], compat: str | None) -> Session:
    from sqlext.catalog import tables_at
    from sqlext.session import Session

    ours, spark = read_settings(conf)
    # Results are collected whole, so Spark's 1 GiB guard against that is switched off.
    session = Session(compat=compat, config={"spark.driver.maxResultSize": "0", **spark, **ours})
    for name, path in (tables_at(data, lambda: session.spark) if data is not None else {}).items():
        session.register(name, path)
    return session


def _execute(session: Session, text: str, place: Span) -> DataFrame:
    with _errors_in(text, place):
        return session.sql(text[place.start : place.end])


@contextmanager
def _errors_in(text: str, place: Span) -> Iterator[None]:
    """Errors of the statement at `place`, found before it runs or by its tasks, point into the whole text."""
    try:
        yield
    except SqlExtError as error:
        if error.span is not None:
            error.span = Span(error.span.start + place.start, error.span.end + place.start)
        error.sql = text
        raise


def _write(result: pa.Table, format: str, output: Path | None, shown: int | None) -> None:
    if format == "parquet" and output is not None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # a stream: pyarrow deletes a path that it fails to write, even /dev/full
            with writing(output), output.open("wb") as sink:
                pq.write_table(result, sink, write_statistics=_without_nan(result.schema))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            help = "cast that column in the statement, or write csv or json"
            raise ConfigurationError(f"a Parquet file cannot store this result: {error}", help=help) from error
        return
    if format == "table":
        if output is not None:
            from rich.console import Console

            with writing(output), output.open("w", encoding="utf-8", errors="backslashreplace") as sink:
                _table(result, shown, Console(file=sink, width=1 << 14))
        else:
            _table(result, shown, console())
        return
    with nullcontext() if output is None else writing(output), _sink(output) as stream:
        (_write_csv if format == "csv" else _write_json)(result, stream)


def _without_nan(schema: pa.Schema) -> list[str]:
    """The paths of the columns that hold no floating-point numbers.

    Arrow ignores NaN for a column's largest value. Spark, for which NaN is the largest of all, would skip rows because
    of it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), written)
    columns = pq.ParquetFile(pa.BufferReader(written.getvalue())).schema
    kinds = {columns.column(place).path: columns.column(place).physical_type for place in range(len(columns))}
    return [path for path, kind in kinds.items() if kind not in ("FLOAT", "DOUBLE")]


def _table(result: pa.Table, shown: int | None, out: Any) -> None:
    more = shown is not None and result.num_rows > shown
    print_rows(out, result.slice(0, shown) if shown is not None else result, more=more)


def _sink(output: Path | None) -> AbstractContextManager[TextIO]:
    if output is None:
        return exact_output()
    return output.open("w", encoding="utf-8", newline="")


def _write_csv(result: pa.Table, stream: TextIO) -> None:
    """With a header; NULL is an empty field, booleans are true and false, times are ISO 8601."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(result.column_names)
    for batch in result.to_batches(BATCH_ROWS):
        columns = [column.to_pylist() for column in batch.columns]
        buffer = io.StringIO()
        rows = csv.writer(buffer, lineterminator="\n")
        rows.writerows([_csv_cell(value) for value in row] for row in zip(*columns, strict=True))
        stream.write(buffer.getvalue())


def _write_json(result: pa.Table, stream: TextIO) -> None:
    """An array of objects, one row a line."""
    separator = "[\n"
    for batch in result.to_batches(BATCH_ROWS):
        for row in batch.to_pylist():
            stream.write(separator + json_visible(json.dumps(_finite(row), default=_text, ensure_ascii=False)))
            separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json.dumps(_finite(value), default=_text, ensure_ascii=False)
    return value if value is None or isinstance(value, (int, float, str)) else _text(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no Infinity: they become strings, as in Spark's JSON writer."""
    match value:
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case dict():
            return {str(key): _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value


def _text(value: Any) -> Any:
    """Dates and times in ISO 8601, bytes in hexadecimal, anything else as `str` prints it."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
