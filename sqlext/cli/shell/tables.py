"""The tables of a shell: files, known at once, and whatever Spark has once it runs. Looks at no rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from sqlext_planner.catalog import TableInfo
from sqlext_planner.errors import SqlExtError

from sqlext.cli.shell.scope import Columns

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog


_T = TypeVar("_T")


class KnownTables:
    """Names and columns, each looked up once until `forget`.

    files  the tables of a folder, which need no Spark; None without
    spark  Spark's catalog; None as long as Spark does not run
    """

    def __init__(self, files: Catalog | None, spark: Callable[[], Catalog | None]) -> None:
        self._files, self._spark = files, spark
        self._lock = threading.Lock()
        self._known: dict[str, TableInfo | None] = {}
        self._names: tuple[str, ...] | None = None

    def forget(self) -> None:
        """Look everything up again: a statement may have changed it."""
        with self._lock:
            self._known, self._names = {}, None

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        with self._lock:
            if self._names is not None:
                return self._names
            no_names: tuple[str, ...] = ()
            files, catalog = self._files, self._spark()
            found = set() if files is None else set(files.tables())
            if catalog is not None:
                # Spark writes names in its own case: those of files stay as they are written.
                lower = {name.lower() for name in found}
                found |= {name for name in _asked(catalog.tables, no_names) if name.lower() not in lower}
            names = tuple(sorted(found))
            self._names = names if catalog is not None or files is not None else None
            return names

    def info(self, name: str) -> TableInfo | None:
        """What is known about a table; None if there is none, or while only Spark could tell and does not run."""
        with self._lock:
            key = name.lower()
            if key not in self._known:
                found, is_final = self._find(name)
                if not is_final:
                    return found
                self._known[key] = found
            return self._known[key]

    def columns(self, name: str) -> Columns:
        """The columns with their types; () for an unknown table."""
        found = self.info(name)
        return () if found is None else found.columns

    def _find(self, name: str) -> tuple[TableInfo | None, bool]:
        """The table, and whether the answer stays the same when Spark runs."""
        catalog = self._spark()
        in_files = self._table_of_files(name)
        if catalog is None:
            return in_files, False
        in_spark = _asked(lambda: catalog.table(name), None)
        same = in_files is not None and in_spark is not None and _names(in_files.columns) == _names(in_spark.columns)
        return (in_files if same else in_spark), True

    def _table_of_files(self, name: str) -> TableInfo | None:
        try:
            return None if self._files is None or "." in name else self._files.table(name)
        except SqlExtError:  # JSON, or a file that cannot be read: only Spark can tell, or says what is wrong
            return None


def _names(columns: Iterable[tuple[str, str]]) -> list[str]:
    return [name.lower() for name, _ in columns]


def _asked(question: Callable[[], _T], otherwise: _T) -> _T:
    """Spark's answer, or `otherwise` where it has none: completion says nothing about a table that cannot be read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return question()
    except (SqlExtError, PySparkException, Py4JError, OSError):
        return otherwise
