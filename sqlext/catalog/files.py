"""Tables that are files of this machine, described without Spark: from footers and from the CSV text itself."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.catalog import KeyStatistics, TableInfo
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.columnar import file_sample, file_statistics, orc_columns, parquet_columns
from sqlext.catalog.csv import csv_table
from sqlext.catalog.dictionary import CatalogWithoutSpark
from sqlext.catalog.locations import (
    LAYOUT,
    TITLES,
    LocalData,
    format_of,
    is_hidden,
    last_part,
    located,
    table_name,
    titles,
)
from sqlext.catalog.options import NO_OPTIONS, NONE, DataFiles, FolderOptions, ReadOptions
from sqlext.catalog.partitions import FolderPartitioning, partitioning

if TYPE_CHECKING:
    import pyarrow as pa

_needs_spark = partial(ConfigurationError, condition="needs-spark")
_layout_error = partial(ConfigurationError, condition="table-files")
_file_error = partial(ConfigurationError, condition="file-access")

#: Formats whose files say their columns, also without Spark. Of JSON Spark infers them by rules of its own, Avro needs
#: a package.
_READERS = {"parquet": parquet_columns, "orc": orc_columns}


class FileCatalog(CatalogWithoutSpark):
    """The tables of a folder: every NAME.parquet, NAME.csv, NAME.orc and folder NAME/ of such files is table NAME.

    A file is read when its table is first needed. Raises ConfigurationError for a folder that does not exist or that
    only Spark can list, and then for a file that cannot be read, or one of two with the table's name.
    """

    def __init__(self, folder: Path | str, options: FolderOptions = NO_OPTIONS, *, instants: bool = False) -> None:
        self._files = data_files(folder)
        self._options, self._instants = options, instants
        self._by_name = {name.lower(): name for name in self._files}
        self._known: dict[str, TableInfo] = {}

    def table(self, name: str) -> TableInfo | None:
        """The table called `name`, or called like its last part."""
        known_name = self._by_name.get(name.lower()) or self._by_name.get(last_part(name).lower())
        if known_name is None:
            return None
        if known_name not in self._known:
            files = self._files[known_name]
            files.check(known_name)
            info = table_info(known_name, files.path, self._options.of(known_name))
            self._known[known_name] = _with_instants(info) if self._instants else info
        return self._known[known_name]

    def key_statistics(self, name: str, columns: Sequence[str]) -> KeyStatistics | None:
        """From the footers of the table's Parquet files."""
        files = self._parquet(name)
        return file_statistics(files, tuple(columns)) if files else None

    def key_sample(
        self, name: str, columns: Sequence[str], rows: int, read: int = 0, spread: str | None = None
    ) -> pa.Table | None:
        """From row groups of the table's Parquet files."""
        files = self._parquet(name)
        return file_sample(files, tuple(columns), rows, read, spread) if files else None

    def tables(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._files))

    def _parquet(self, name: str) -> tuple[str, ...]:
        info = self.table(name)
        return info.paths if info is not None and info.format == "parquet" else ()


def _with_instants(info: TableInfo) -> TableInfo:
    """Times without a zone are read as times of one (`read_files` with a zone)."""
    columns = tuple((name, re.sub(r"\btimestamp_ntz\b", "timestamp", dtype)) for name, dtype in info.columns)
    return info if columns == info.columns else replace(info, columns=columns, format=None, paths=())


def data_files(folder: Path | str) -> dict[str, DataFiles]:
    """The tables of a folder by name. Raises ConfigurationError."""
    place = located(folder)
    if not isinstance(place, LocalData):
        raise _needs_spark(
            f"the tables of '{place.uri}' cannot be described without Spark",
            help="describe them with --schema FILE, or use `sqlext run`, which starts Spark",
        )
    root = Path(place.text)
    help = f"give a folder of data files: {LAYOUT}"
    if not root.is_dir():
        exists = os.path.lexists(root)
        raise _file_error(
            f"'{root}' is {_kind(root)}, not a folder" if exists else f"folder '{root}' does not exist", help=help
        )
    try:
        paths = sorted(root.iterdir())
    except OSError as error:
        raise _file_error(f"folder '{root}' cannot be read: {error.strerror}", help=help) from error
    tables = (path for path in paths if _is_table(path))
    return named_tables((path.name for path in tables), str(root))


def _is_table(path: Path) -> bool:
    if is_hidden(path.name):
        return False
    return format_of(path.name) is not None or (path.is_dir() and next(_parts(path), None) is not None)


def named_tables(names: Iterable[str], folder: str) -> dict[str, DataFiles]:
    """The files and folders of a folder of tables by the tables' names. Raises ConfigurationError if there is none."""
    tables: dict[str, DataFiles] = {}
    spelt: dict[str, str] = {}
    for file in names:
        name = spelt.setdefault(table_name(file).lower(), table_name(file))
        known = tables.get(name)
        tables[name] = DataFiles(f"{folder}/{file}") if known is None else replace(known, others=(*known.others, file))
    if not tables:
        raise _layout_error(f"folder '{folder}' contains no data files", help=LAYOUT)
    return tables


@dataclass(frozen=True)
class TableFiles:
    """The files of a table in Spark's order, their format, and the columns that are in the names of their folders."""

    files: tuple[Path, ...]
    format: str
    partitioning: FolderPartitioning | None


def table_info(name: str, path: Path | str, options: ReadOptions = NONE) -> TableInfo:
    """What is known about the files at `path`: columns as Spark reads them, rows, uncompressed bytes.

    Raises ConfigurationError that names the file and the reason; also where only Spark can tell the columns.
    """
    place = located(path)
    if not isinstance(place, LocalData):
        raise _needs_spark(
            f"the columns of '{place.uri}' cannot be told without Spark", help="describe the table with --schema FILE"
        )
    data = table_files(place)
    if data.format not in (*_READERS, "csv"):
        raise _needs_spark(
            f"the columns of {TITLES[data.format]} files ('{path}') cannot be told without Spark",
            help="describe the tables of the statement with --schema FILE",
        )
    table = csv_table(data.files, options) if data.format == "csv" else None
    doubles: tuple[str, ...] = () if table is None else table.doubles
    columns, rows, size = _from_footers(name, data, path) if table is None else (table.columns, table.rows, table.bytes)
    if data.partitioning is not None:
        _check_text(data, columns, str(path))
        columns = data.partitioning.beside(columns)
        folders = {folder for folder, dtype in data.partitioning.columns if dtype == "double"}
        doubles += tuple(folder for folder in folders if options.type_of(folder) is None)
        columns = tuple((column, options.type_of(column) or dtype) for column, dtype in columns)
    paths = tuple(str(file) for file in data.files)
    return TableInfo(name, columns, data.format, paths, rows, size, inferred_doubles=doubles)


def _from_footers(name: str, data: TableFiles, path: Path | str) -> tuple[tuple[tuple[str, str], ...], int, int]:
    reader = _READERS[data.format]
    try:
        return reader(data.files)
    except ConfigurationError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are of both kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _file_error(
            f"table '{name}' cannot be read from '{_culprit(data.files, reader, path)}': {reason}",
            help=f"give a readable {TITLES[data.format]} file",
        ) from error


def _culprit(files: Sequence[Path], reader: Callable[[Sequence[Path]], object], path: Path | str) -> Path | str:
    """The first file that cannot be read alone; the path of all without one."""
    for file in files:
        try:
            reader([file])
        except (OSError, ValueError):
            return file
        except ConfigurationError:
            continue
    return path


def _check_text(data: TableFiles, columns: Sequence[tuple[str, str]], path: str) -> None:
    """Spark reads the values of a CSV file by their places: there a column in both would move all others."""
    partition = {name.lower() for name, _ in data.partitioning.columns} if data.partitioning is not None else set()
    both = next((name for name, _ in columns if name.lower() in partition), None)
    if data.format == "csv" and both is not None:
        raise _layout_error(
            f"column '{both}' of '{path}' is in the CSV files and in the names of their folders",
            help="rename the folders: another name before the '='",
        )


def table_files(place: LocalData, *, typed: bool = True) -> TableFiles:
    """The files of a table; partition columns have types unless `typed` is false.

    Raises ConfigurationError, also for something among the files that is not a file: reading it might never end.
    """
    help = "give a Parquet, CSV, ORC, JSON or Avro file, a folder of them, or a URI such as hdfs://host/folder"
    files: list[Path] = []
    for root in place.roots:
        if not os.path.lexists(root):
            raise _file_error(f"'{root}' does not exist", help=help)
        files += _parts(root) if root.is_dir() else [root]
    files.sort(key=str)
    for file in files:
        if not file.is_file():
            raise _file_error(f"'{file}' is {_kind(file)}, not a file", help=help)
    kinds = {format_of(file.name) for file in files}
    known = {kind for kind in kinds if kind is not None}
    if len(known) < len(kinds) or not known:
        odd = next((f"'{file}' is not a data file" for file in files if format_of(file.name) is None), None)
        raise _layout_error(odd or f"'{place.text}' contains no data file", help=LAYOUT)
    if len(known) > 1:
        raise _layout_error(
            f"'{place.text}' contains both {titles(known)} files", help="keep only one kind in a folder"
        )
    bases = {root if root.is_dir() else root.parent for root in place.roots} if place.base is None else {place.base}
    return TableFiles(tuple(files), known.pop(), partitioning(files, bases, place.text, typed=typed))


def format_at_hand(path: Path | str) -> str | None:
    """The format of files, as far as it is known without Spark."""
    try:
        place = located(path)
        return table_files(place).format if isinstance(place, LocalData) else format_of(place.uri.rstrip("/"))
    except ConfigurationError:
        return None


def _parts(folder: Path) -> Iterator[Path]:
    """The paths below a folder that are named like data files, without those that Spark hides. Raises
    ConfigurationError for a folder that cannot be read."""

    def refuse(error: OSError) -> None:
        raise _file_error(
            f"folder '{error.filename}' cannot be read: {error.strerror}", help="check its permissions"
        ) from error

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in (*files, *(name for name in folders if Path(root, name).is_symlink())):
            if format_of(name) is not None and not is_hidden(name):
                yield Path(root, name)


def _kind(path: Path) -> str:
    """What is at a path that is not the expected file or folder."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"a broken link ({error.strerror})" if path.is_symlink() else f"not readable ({error.strerror})"
    for test, name in _KINDS:
        if test(mode):
            return name
    return "a special file"


_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
