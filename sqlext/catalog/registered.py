"""Files that are views of a Spark session, and files that become views once a statement names them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlext_planner.errors import SqlExtError
from sqlext_planner.spark.versions import condition_name
from sqlext_planner.spark.views import quoted_name

from sqlext.catalog.names import last_part
from sqlext.catalog.options import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Statements about all tables.
_ALL = re.compile(r"\bSHOW\s+(TABLES?|VIEWS)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class RegisteredFiles:
    """The files of one Session by the names of their views. Thread-safe.

    `zone` is that of clock times without a zone in the files; None leaves them to Spark.
    """

    def __init__(self, zone: str | None) -> None:
        self._zone = zone
        self._lock = threading.RLock()
        #: Replaced, never changed: what others hold stays as it is.
        self.known: Mapping[str, DataFiles] = {}
        self._offered: Mapping[str, DataFiles] = {}
        self._errors: dict[str, SqlExtError] = {}

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of files that are not views yet."""
        return tuple(self._offered)

    def register(self, spark: SparkSession, name: str, files: DataFiles) -> None:
        """Make files a view. Raises ConfigurationError."""
        from sqlext.catalog.reading import read_files

        files.check(name)
        frame = read_files(spark, files.path, files.options, zone=self._zone)
        frame.createOrReplaceTempView(quoted_name(name))
        name = last_part(name) if name.startswith("`") else name
        with self._lock:
            self.known = {**self.known, name: files}
            self._offered = {other: found for other, found in self._offered.items() if other != name}
            self._errors.pop(name.lower(), None)

    def register_again(self, spark: SparkSession) -> None:
        """Make all views anew, in another Spark. What cannot be read is an error of the statement that names it."""
        with self._lock:
            before, self.known = self.known, {}
            self._offered = {**before, **self._offered}
            for name in before:
                self._try(spark, name)

    def offer(self, tables: Mapping[str, DataFiles]) -> None:
        """Files that become views once a text names them."""
        with self._lock:
            new = {name: files for name, files in tables.items() if self.known.get(name) != files}
            self._offered = {**self._offered, **new}

    def read_named(self, spark: SparkSession, text: str) -> None:
        """Make those offered files views whose names stand anywhere in a text. What cannot be read is kept for `check`:
        the text may mean something else by the name, and the next one may find better files."""
        if not self._offered:
            return
        with self._lock:
            for name in self._offered:
                if _ALL.search(text) or _stands_in(name, text):
                    self._try(spark, name)

    def _try(self, spark: SparkSession, name: str) -> None:
        try:
            self.register(spark, name, self._offered[name])
        except SqlExtError as error:
            self._errors[name.lower()] = error

    def check(self, name: str) -> None:
        """Raises the error of files that cannot be read, if `name` is theirs (its last part, with or without
        backticks)."""
        error = self._errors.get(last_part(name).lower())
        if error is not None:
            raise error

    @contextmanager
    def errors_of_files(self) -> Iterator[None]:
        """If Spark misses a table inside, the error is that of its files."""
        try:
            yield
        except Exception as error:
            if not type(error).__module__.startswith("pyspark"):
                raise
            from pyspark.errors import PySparkException

            if isinstance(error, PySparkException) and condition_name(error) == "TABLE_OR_VIEW_NOT_FOUND":
                self.check(str((error.getMessageParameters() or {}).get("relationName", "")))
            raise


def _stands_in(name: str, text: str) -> bool:
    lowered, text = name.lower(), text.lower()
    if _WORD.fullmatch(lowered):
        return lowered in _WORD.findall(text)
    return lowered in text or lowered.replace("`", "``") in text
