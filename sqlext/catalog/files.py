"""Tables that are Parquet or CSV files, described without Spark: from footers and from the CSV text itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.catalog import KeyStatistics, TableInfo
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.csv import csv_columns
from sqlext.catalog.parquet import parquet_columns
from sqlext.catalog.samples import file_sample
from sqlext.catalog.statistics import file_statistics

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".csv")
_LAYOUT = "tables are NAME.parquet, NAME.csv, or folders NAME/ of such files"


class FileCatalog:
    """The tables of a folder: every NAME.parquet, NAME.csv and folder NAME/ of such files is table NAME.

    A file is read when its table is first needed. Raises ConfigurationError for a folder that does not exist, for two
    tables of one name, and for a file that cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        self._files = data_files(folder)
        self._by_name = {name.lower(): name for name in self._files}
        self._known: dict[str, TableInfo] = {}

    def table(self, name: str) -> TableInfo | None:
        """The table called `name`, or called like its last part."""
        found = self._by_name.get(name.lower()) or self._by_name.get(name.lower().rpartition(".")[2])
        if found is None:
            return None
        if found not in self._known:
            self._known[found] = table_info(found, self._files[found])
        return self._known[found]

    def table_bytes(self, name: str) -> int | None:
        """None: what is known is already in `table`."""
        return None

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

    def cores(self) -> int:
        """The cores of this machine."""
        return os.cpu_count() or 1

    def tables(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._files))

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...] | None:
        """None: there is no Spark to ask."""
        return None

    def query_is_streaming(self, sql: str) -> bool:
        """False: files are not streams."""
        return False

    def judge(self, sql: str) -> None:
        """Nothing: there is no Spark here."""

    def current_database(self) -> str | None:
        """None: files are in no database."""
        return None

    def has_function(self, name: str) -> bool:
        """False: there is no Spark to register one in."""
        return False

    def _parquet(self, name: str) -> tuple[str, ...]:
        info = self.table(name)
        return info.paths if info is not None and info.format == "parquet" else ()


def data_files(folder: Path | str) -> dict[str, Path]:
    """The tables of a folder by name. Raises ConfigurationError."""
    root = Path(folder)
    help = f"give a folder of data files: {_LAYOUT}"
    if not root.is_dir():
        exists = os.path.lexists(root)
        raise ConfigurationError(
            f"'{root}' is {_kind(root)}, not a folder" if exists else f"folder '{root}' does not exist", help=help
        )
    try:
        paths = sorted(root.iterdir())
    except OSError as error:
        raise ConfigurationError(f"folder '{root}' cannot be read: {error.strerror}", help=help) from error
    found: dict[str, Path] = {}
    for path in paths:
        if path.name.startswith((".", "_")):
            continue
        is_table = path.suffix.lower() in SUFFIXES or (path.is_dir() and next(_parts(path), None) is not None)
        if not is_table:
            continue
        name = path.stem if path.suffix.lower() in SUFFIXES else path.name
        other = next((known for known in found if known.lower() == name.lower()), None)
        if other is not None:
            raise ConfigurationError(
                f"'{found[other].name}' and '{path.name}' would both be table '{name}'", help="rename one of them"
            )
        found[name] = path
    if not found:
        raise ConfigurationError(f"folder '{root}' contains no data files", help=_LAYOUT)
    return found


def table_info(name: str, path: Path | str) -> TableInfo:
    """What is known about the files at `path`: columns as Spark reads them, rows, uncompressed bytes.

    Raises ConfigurationError that names the file and the reason.
    """
    files, kind, is_partitioned = table_files(Path(path))
    try:
        columns, rows, size = (parquet_columns if kind == "parquet" else csv_columns)(files)
    except ConfigurationError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are of both kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(
            f"table '{name}' cannot be read from '{path}': {reason}", help=f"give a readable {kind} file"
        ) from error
    if is_partitioned:
        raise ConfigurationError(
            f"'{path}' is split into folders like '{files[0].parent.name}', which is not supported",
            help="register it in your own Spark session: spark.read.parquet(...).createOrReplaceTempView(...)",
        )
    return TableInfo(name, columns, kind, tuple(str(file) for file in files), rows, size)


def table_files(path: Path) -> tuple[list[Path], str, bool]:
    """The files of a table, their format, and whether they are in ``key=value`` folders.

    Raises ConfigurationError, also for something among the files that is not a file: reading it might never end.
    """
    help = "give a Parquet or CSV file, or a folder of them"
    if not os.path.lexists(path):
        raise ConfigurationError(f"'{path}' does not exist", help=help)
    files = sorted(_parts(path)) if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise ConfigurationError(f"'{file}' is {_kind(file)}, not a file", help=help)
    kinds = {file.suffix.lower() for file in files}
    if not files or not kinds <= set(SUFFIXES):
        raise ConfigurationError(f"'{path}' contains no Parquet or CSV file", help=_LAYOUT)
    if len(kinds) > 1:
        raise ConfigurationError(f"'{path}' contains both Parquet and CSV files", help="keep only one kind in a folder")
    return (
        files,
        kinds.pop()[1:],
        any("=" in file.parent.name and file.parent != path for file in files if path.is_dir()),
    )


def _parts(folder: Path) -> Iterator[Path]:
    """The paths below a folder that are named like data files, without those that Spark hides. Raises
    ConfigurationError for a folder that cannot be read."""

    def refuse(error: OSError) -> None:
        raise ConfigurationError(
            f"folder '{error.filename}' cannot be read: {error.strerror}", help="check its permissions"
        ) from error

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in (*files, *(name for name in folders if Path(root, name).is_symlink())):
            path = Path(root, name)
            if path.suffix.lower() in SUFFIXES and not name.startswith((".", "_")):
                yield path


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
