"""Tables and views of a running Spark session. Files that are views of it, and files that become views once a statement
names them."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Judgement, KeyStatistics, TableInfo
from sqlext_planner.errors import ConfigurationError, SqlExtError
from sqlext_planner.expressions.types import normalize
from sqlext_planner.relational.physical_plan import quoted, sentences
from sqlext_planner.spark.plans import estimated_bytes, table_growth
from sqlext_planner.spark.scans import why_only_spark
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.streams import check_settings, watermarks
from sqlext_planner.spark.tables import KnownView, TemporaryViews, quoted_name
from sqlext_planner.spark.versions import check_streams, condition_name, text_places

from sqlext.catalog.columnar import file_sample, file_statistics
from sqlext.catalog.files import format_at_hand, table_info
from sqlext.catalog.locations import INFERRED, last_part
from sqlext.catalog.options import DataFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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
        """Raises the error of files that cannot be read, if `name` is theirs (its last part)."""
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


#: Number of tables that are listed for a suggestion.
_LISTED = 1000
#: A column with more values than this share of the rows tells rows apart.
_KEY = 0.1


class SparkCatalog:
    """What a Spark session knows during one statement.

    `files` maps the views that are files to where these are, also for their size. `views` remembers
    temporary views from statement to statement; `settings` are those of VIEW_SETTINGS that are set in the session.
    `check` raises what is wrong with a table that is not there.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: Mapping[str, DataFiles] | None = None,
        *,
        case_sensitive: bool = False,
        views: TemporaryViews | None = None,
        settings: Mapping[str, str] | None = None,
        check: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._spark = spark
        self._views = views
        self._met: dict[str, KnownView | None] = {}
        self._settings = settings or {}
        self._check = check
        self._fold: Callable[[str], str] = str if case_sensitive else str.lower
        self._files = {self._fold(name): path for name, path in (files or {}).items()}
        self._known: dict[str, TableInfo | None] = {}
        self._scanned: dict[str, tuple[str, ...]] = {}
        self._streaming: set[str] = set()

    def table(self, name: str) -> TableInfo | None:
        """The table or view called `name`, as Spark resolves it."""
        key = self._fold(name)
        if key not in self._known:
            self._known[key] = self._find(name)
        return self._known[key]

    def table_bytes(self, name: str) -> int | None:
        """Catalyst's estimate."""
        from pyspark.errors import PySparkException

        try:
            return estimated_bytes(self._spark.table(_quoted(name)))
        except PySparkException:
            return None

    def key_statistics(self, name: str, columns: Sequence[str]) -> KeyStatistics | None:
        """From the footers of the table's Parquet files, else from what ANALYZE TABLE stored in Spark's catalog, as
        many times as the table's files have grown since."""
        files = self._parquet(name)
        return file_statistics(files, tuple(columns)) if files else self._analyzed(name, columns)

    def key_sample(
        self, name: str, columns: Sequence[str], rows: int, read: int = 0, spread: str | None = None
    ) -> pa.Table | None:
        """From row groups of the table's Parquet files."""
        files = self._parquet(name)
        return file_sample(files, tuple(columns), rows, read, spread) if files else None

    def cores(self) -> int:
        """Spark's default parallelism: the cores of its executors. Those of this machine under Connect."""
        from pyspark.errors import PySparkException

        try:
            return max(1, int(self._spark.sparkContext.defaultParallelism))
        except PySparkException:
            return os.cpu_count() or 1

    def stream_obstacle(self) -> str | None:
        """What is wrong with the session's settings, or Spark's version."""
        try:
            check_streams()
            check_settings(self._spark)
        except ConfigurationError as error:
            return error.message
        return None

    def placing_obstacle(self) -> str | None:
        """Spark Connect does not let us tell a running query anything."""
        return "under Spark Connect nothing can be told to a running query" if is_remote(self._spark) else None

    def tables(self) -> tuple[str, ...]:
        """Views and tables of the current database: only the first `_LISTED` names, without opening a table."""
        return tuple(str(row.tableName) for row in self._spark.sql("SHOW TABLES").take(_LISTED))

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...] | None:
        """Columns of a query, by Spark's own analysis; None for text that Spark refuses."""
        from pyspark.errors import PySparkException

        try:
            frame = self._spark.sql(sql)
            columns = columns_of(frame.schema)
        except PySparkException:
            return None
        if frame.isStreaming:
            self._streaming.add(sql)
        return columns

    def query_is_streaming(self, sql: str) -> bool:
        """From Spark's own analysis in `query_columns`."""
        return sql in self._streaming

    def judge(self, sql: str) -> Judgement:
        """The result of Spark's analysis; nothing runs."""
        from pyspark.errors import PySparkException

        try:
            return Judgement(columns_of(self._spark.sql(sql).schema))
        except PySparkException as error:
            sentence, rest = sentences(error)
            return Judgement((), condition_name(error) or type(error).__name__, sentence, rest, _place(error), error)

    def current_database(self) -> str | None:
        """The session's current database."""
        return self._spark.catalog.currentDatabase()

    def has_function(self, name: str) -> bool:
        """Whether Spark has a function of this name, built in or registered."""
        return bool(self._spark.catalog.functionExists(name))

    def _parquet(self, name: str) -> tuple[str, ...]:
        """The files of a table or view: those that were registered, or those that Spark would scan for all of its
        columns under their own names (the sample then includes rows that the view filters out)."""
        info = self.table(name)
        if info is None or info.format is not None:
            return info.paths if info is not None and info.format == "parquet" else ()
        if self._fold(name) not in self._scanned:
            lists_plainly = self._views is not None and self._views.lists_plainly(self._settings)
            view = self._view(name) if lists_plainly else None
            known = KnownView() if view is None else view
            self._scanned[self._fold(name)] = known.parquet_files(lambda: self._spark.table(_quoted(name)))
        return self._scanned[self._fold(name)]

    def _analyzed(self, name: str, columns: Sequence[str]) -> KeyStatistics | None:
        from pyspark.errors import PySparkException

        try:
            rows = re.search(r"(\d+) rows", self._statistics(name, "").get("Statistics", ""))
            if rows is None:
                return None
            counts = [self._statistics(name, quoted(column)).get("distinct_count", "NULL") for column in columns]
            growth = table_growth(self._spark.table(_quoted(name)))
        except PySparkException:  # a temporary view, or a catalog without statistics
            return None
        before = int(rows[1])
        distinct = tuple(_grown(int(count), before, growth) if count.isdigit() else None for count in counts)
        return KeyStatistics(max(1, round(before * growth)), distinct)

    def _statistics(self, name: str, column: str) -> dict[str, str]:
        rows = self._spark.sql(f"DESCRIBE EXTENDED {_quoted(name)} {column}").collect()
        return {str(row[0]): str(row[1]) for row in rows}

    def _find(self, name: str) -> TableInfo | None:
        described = self._described(name)
        if described is None:
            self._check(name)
        files = self._files.get(self._fold(last_part(name)))
        if described is None or files is None or described.is_streaming:
            return described
        try:
            info = table_info(name, files.path, files.options)
        except ConfigurationError:  # only Spark can tell, or the view's data has changed: Spark will report it
            return replace(described, inferred_doubles=_inferred_doubles(described, files))
        if [column.lower() for column, _ in info.columns] != [column.lower() for column, _ in described.columns]:
            return described
        if "timestamp_ntz" in str(info.columns) and info.columns != described.columns:  # the view reads them in a zone
            return replace(info, columns=described.columns, format=None, paths=())
        return replace(info, columns=described.columns, left_to_spark=described.left_to_spark)

    def _described(self, name: str) -> TableInfo | None:
        """The columns of a table or view."""
        from pyspark.errors import PySparkException

        view = self._view(name)
        if view is not None and view.columns is not None:
            return TableInfo(name, view.columns, left_to_spark=partial(self._left_to_spark, name))
        try:
            frame = self._spark.table(_quoted(name))
            columns, is_streaming = _columns(frame), frame.isStreaming
            watermark = next(iter(watermarks(frame.schema).items()), None) if is_streaming else None
        except PySparkException:
            return None
        if view is not None and self._views is not None and view is self._views.find(name, self._settings):
            # it was not replaced meanwhile
            view.columns = columns
        reason = partial(self._left_to_spark, name)
        return TableInfo(name, columns, is_streaming=is_streaming, watermark=watermark, left_to_spark=reason)

    def _left_to_spark(self, name: str) -> str | None:
        return why_only_spark(self._spark.table(_quoted(name)))

    def _view(self, name: str) -> KnownView | None:
        """The temporary view of this name, if it can be remembered."""
        if name not in self._met:
            is_plain = self._views is not None and "." not in name and "`" not in name
            self._met[name] = self._views.find(name, self._settings) if self._views is not None and is_plain else None
        return self._met[name]


def _place(error: PySparkException) -> tuple[int, int] | None:
    """The characters that a Spark error is about."""
    return next(((place.start, place.end) for place in text_places(error) if place.start >= 0), None)


def _inferred_doubles(found: TableInfo, files: DataFiles) -> tuple[str, ...]:
    """Of text that only Spark reads: all doubles without a given type."""
    if format_at_hand(files.path) not in INFERRED:
        return ()
    return tuple(
        column for column, dtype in found.columns if dtype == "double" and files.options.type_of(column) is None
    )


def _grown(distinct: int, rows: int, growth: float) -> int:
    """The values of a column in a table that has grown: a key of rows grows with them, and a small domain does not."""
    return max(1, round(distinct * growth)) if distinct > _KEY * rows or growth < 1 else distinct


def _quoted(name: str) -> str:
    return name if "`" in name else ".".join(f"`{part}`" for part in name.split("."))


def _columns(frame: DataFrame) -> tuple[tuple[str, str], ...]:
    """The names and types of a DataFrame's columns."""
    java_frame = getattr(frame, "_jdf", None)
    return columns_of(frame.schema) if java_frame is None else _columns_of_json(java_frame.schema().json())


@lru_cache(maxsize=1_000)
def _columns_of_json(schema: str) -> tuple[tuple[str, str], ...]:
    """The same from the text that PySpark reads a schema from; tables keep theirs from statement to statement."""
    from pyspark.sql.types import StructType

    return columns_of(StructType.fromJson(json.loads(schema)))


def columns_of(schema: StructType) -> tuple[tuple[str, str], ...]:
    """Names and simple type strings of a Spark schema."""
    return tuple((field.name, _type(field.dataType.simpleString())) for field in schema.fields)


def _type(text: str) -> str:
    """Spark's simple string in its canonical form; unchanged if it is not a plain SQL type (a user-defined one)."""
    try:
        return normalize(text)
    except SqlExtError:
        return text
