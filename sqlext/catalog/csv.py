"""CSV files: how they are laid out, their columns, and types from looking at every value.

Spark gets the same when it reads the files (`read_files`), so that a plan made without Spark and the run agree, and
Spark need not read the files twice.
"""

from __future__ import annotations

import bz2
import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.inferred_types import ColumnValues, is_value
from sqlext.catalog.locations import compression_of, kept_by_files, suffix_of
from sqlext.catalog.options import NONE, ReadOptions

#: How Spark reads the files: a quote in a quoted value is doubled, and a value of another type is an error.
_SPARK = {"quote": '"', "escape": '"', "mode": "FAILFAST"}
#: Delimiters that are looked for, the usual one first.
_DELIMITERS = (",", ";", "\t", "|")
_TABS = (".tsv", ".tab", ".bed")
#: The columns of BED files, which have no header (UCSC's description of the format).
_BED = "chrom,chromStart,chromEnd,name,score,strand,thickStart,thickEnd,itemRgb,blockCount,blockSizes,blockStarts"
#: Lines that are looked at, and their length in characters at most: a file without line ends is not read whole.
LINES, _MOST = 20, 16 << 20
_HELP = "correct the line, or say how the files are laid out: delimiter, header, multiline (docs/storage.md)"


@dataclass(frozen=True)
class CsvLayout:
    """How the lines of a table's files are read: the delimiter, the names of the columns, whether a header has them,
    whether a quoted value may hold line breaks, and the lines of comment before the first row."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    multiline: bool = False
    comments: int = 0

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's reader."""
        text = {True: "true", False: "false"}
        given = {"sep": self.delimiter, "header": text[self.header], "multiLine": text[self.multiline]}
        return {**_SPARK, **given, **({"comment": "#"} if self.comments else {})}


@dataclass(frozen=True)
class CsvTable:
    """The columns of CSV files with their types; rows, bytes of text. `doubles` are the columns whose type is double
    because their values look so."""

    layout: CsvLayout
    columns: tuple[tuple[str, str], ...]
    rows: int
    bytes: int
    doubles: tuple[str, ...]


@kept_by_files(256)
def csv_table(files: Sequence[Path], options: ReadOptions = NONE) -> CsvTable:
    """Columns from the header of the first file, with types that fit every value of every file. An empty value is NULL.

    Raises ConfigurationError that names the file: no header, another one than that of the first file, lines with more
    or fewer values than it.
    """
    layout = csv_layout(files[0], options)
    given = [options.type_of(name) for name in layout.names]
    seen = [ColumnValues() for _ in layout.names]
    rows, has_breaks = 0, False
    for file in files:
        _check_header(file, files[0], layout)
        for batch in _batches(file, layout):
            rows += batch.num_rows
            has_breaks = has_breaks or (layout.multiline and _has_breaks(batch))
            if has_breaks and options.multiline is False:
                raise _refused(file, "has line breaks in quoted values, and was to be read with multiline=false")
            for values, column, dtype in zip(seen, batch.columns, given, strict=True):
                if dtype is None:
                    values.add(_filled(column))
    types = []
    for place, (values, dtype) in enumerate(zip(seen, given, strict=True)):
        types.append(dtype or values.spark_type(lambda place=place: _column(files, layout, place)))  # type: ignore[misc]
    columns = tuple(zip(layout.names, types, strict=True))
    doubles = tuple(name for (name, dtype), own in zip(columns, given, strict=True) if dtype == "double" and not own)
    multiline = bool(options.multiline) or has_breaks or any("\n" in name or "\r" in name for name in layout.names)
    size = sum(file.stat().st_size for file in files)
    return CsvTable(replace(layout, multiline=multiline), columns, rows, size, doubles)


def csv_layout(file: Path, options: ReadOptions) -> CsvLayout:
    """How a file of this machine is laid out; `multiline` says whether any value may hold line breaks, for all that is
    known without reading on. Raises ConfigurationError."""
    with _opened(file) as text:
        layout = layout_of(str(file), list(islice(text, LINES)), options)
    with _bytes_of(file) as stream:
        holds_quote = any(b'"' in block for block in iter(lambda: stream.read(1 << 20), b""))
    return replace(layout, multiline=holds_quote)


def layout_of(name: str, lines: Sequence[str], options: ReadOptions) -> CsvLayout:
    """How a file is laid out, by the options, its suffix and its first lines. Raises ConfigurationError."""
    suffix = suffix_of(name)
    is_bed = suffix.startswith(".bed")
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), 0) if is_bed else 0
    rows = lines[comments:]
    delimiter = options.delimiter or ("\t" if suffix.startswith(_TABS) else _delimiter(rows))
    first = _first_row(name, rows, delimiter)
    looks_like_row = any(first) and all(map(is_value, first))
    has_header = options.header if options.header is not None else not is_bed and not looks_like_row
    names = _names(name, first) if has_header else tuple(_BED.split(",")[: len(first)] if is_bed else ())
    names += tuple(f"_c{place}" for place in range(len(names), len(first)))
    return CsvLayout(delimiter, names, has_header, bool(options.multiline), comments)


def _delimiter(lines: Sequence[str]) -> str:
    """That with which the first lines have most columns, and all the same number of them; a comma if there is none."""
    best, most = _DELIMITERS[0], 1
    for delimiter in _DELIMITERS:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
        except csv.Error:
            continue
        if len(counts) == 1 and (count := counts.pop()) > most:
            best, most = delimiter, count
    return best


def _first_row(name: str, lines: Sequence[str], delimiter: str) -> list[str]:
    if lines and len(lines[0]) >= _MOST:
        raise _refused(name, f"has a first line of more than {_MOST >> 20} MB")
    try:
        row = next(csv.reader(lines, delimiter=delimiter), None)
    except csv.Error as error:
        raise _refused(name, f"has a first line that cannot be read: {error}") from None
    if not row:
        raise _refused(name, "has no header")
    return row


def _names(file: Path | str, first: Sequence[str]) -> tuple[str, ...]:
    """The column names: an empty one is _c0, _c1, ... as in Spark. Raises ConfigurationError for a repeated one."""
    names = [name or f"_c{i}" for i, name in enumerate(first)]
    known: set[str] = set()
    for name in names:
        if name.lower() in known:
            raise ConfigurationError(
                f"the header of '{file}' names column '{name}' twice",
                condition="table-files",
                help="rename one of them; if the first line is a row, read the file with header=false",
            )
        known.add(name.lower())
    return tuple(names)


def _check_header(file: Path, first: Path, layout: CsvLayout) -> None:
    if file == first or not layout.header:
        return
    with _opened(file) as text:
        own = _names(file, _first_row(str(file), list(islice(text, LINES))[layout.comments :], layout.delimiter))
    if own != layout.names:
        raise ConfigurationError(
            f"'{file}' has another header than '{first}'",
            condition="table-files",
            help="the files of one table must have the same columns",
        )


def _column(files: Sequence[Path], layout: CsvLayout, place: int) -> Iterator[pa.Array]:
    """The values of one column, without empty ones."""
    for file in files:
        for batch in _batches(file, layout, (place,)):
            yield _filled(batch.column(0))


def _batches(file: Path, layout: CsvLayout, columns: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a file as text, all columns or some. Raises ConfigurationError that names the file."""
    from pyarrow import csv as arrow  # 60 ms that planning without CSV files need not spend

    places = [str(place) for place in range(len(layout.names))]
    included = places if columns is None else [str(place) for place in columns]
    try:
        yield from arrow.open_csv(
            file,
            read_options=arrow.ReadOptions(
                skip_rows=layout.comments, column_names=places, skip_rows_after_names=int(layout.header)
            ),
            parse_options=arrow.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=layout.multiline,
                invalid_row_handler=(lambda row: "skip" if row.text.startswith("#") else "error")
                if layout.comments
                else None,
            ),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                include_columns=included,
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except (OSError, ValueError) as error:  # pyarrow's errors are of both kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise _refused(file, f"cannot be read: {reason}") from error


def _filled(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return values.filter(pc.not_equal(values, ""))


def _has_breaks(batch: pa.RecordBatch) -> bool:
    import pyarrow.compute as pc

    return any(pc.any(pc.match_substring_regex(column, "[\r\n]")).as_py() for column in batch.columns)


@contextmanager
def _opened(file: Path) -> Iterator[Iterator[str]]:
    """The lines of a file with their ends, cut where they are too long. Raises ConfigurationError."""
    import io

    try:
        with _bytes_of(file) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            yield iter(lambda: text.readline(_MOST), "")
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            reason = error.strerror or str(error)
        else:
            reason = f"it is no text in UTF-8: {error}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise ConfigurationError(
            f"'{file}' cannot be read: {reason}", condition="file-access", help="give a readable CSV file"
        ) from error


def _bytes_of(file: Path) -> IO[bytes]:
    match compression_of(file.name):
        case ".gz":
            return cast("IO[bytes]", gzip.open(file, "rb"))
        case ".bz2":
            return bz2.open(file, "rb")
        case _:
            return file.open("rb")


def _refused(file: Path | str, what: str) -> ConfigurationError:
    return ConfigurationError(f"'{file}' {what}", condition="table-files", help=_HELP)
