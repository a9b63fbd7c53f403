"""The tables of a shell: files, known at once, and whatever Spark has once it runs. Looks at no rows."""

from __future__ import annotations

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
    offered  files that become tables of Spark once a statement names them
    """

    def __init__(
        self,
        files: Catalog | None,
        spark: Callable[[], Catalog | None],
        offered: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._files, self._spark, self._offered = files, spark, offered
        self._known: dict[str, TableInfo | None] = {}
        self._names: list[tuple[str, ...]] = []

    def forget(self) -> None:
        """Look everything up again: a statement may have changed it. Another thread that is looking something up keeps
        what it finds in what is forgotten here; nobody waits for it."""
        self._known, self._names = {}, []

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        names = self._names
        if names:
            return names[0]
        in_files = () if self._files is None else self._files.tables()
        catalog = self._spark()
        if catalog is None:
            return tuple(sorted(in_files))
        no_names: tuple[str, ...] = ()
        # Spark writes names in its own case: those of files stay as they are written.
        written = {name.lower(): name for name in in_files}
        in_spark = {written.get(name.lower(), name) for name in _asked(catalog.tables, no_names)}
        names.append(tuple(sorted(in_spark.union(self._offered()))))
        return names[0]

    def info(self, name: str) -> TableInfo | None:
        """What is known about a table; None if there is none, or while only Spark could tell and does not run."""
        known, key = self._known, name.lower()
        if key not in known:
            found, is_final = self._find(name)
            if not is_final:
                return found
            known[key] = found
        return known[key]

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
        if in_spark is None and name.lower() in {offered.lower() for offered in self._offered()}:
            return in_files, False
        same = in_files is not None and in_spark is not None and _names(in_files.columns) == _names(in_spark.columns)
        return (in_files if same else in_spark), True

    def _table_of_files(self, name: str) -> TableInfo | None:
        try:
            return None if self._files is None else self._files.table(name)
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
