"""Tables that a statement reads: temporary views, and plans that hold the tables that somebody other than Spark reads.

Temporary views are recognised from statement to statement, so that what is known about them is kept.

Spark analyzes a name anew for each statement, and a plan has to be walked over for its files: 1 ms and 10 ms a table. A
temporary view made of a DataFrame has its analyzed plan in Spark's catalog. As long as that holds an equal plan (its
columns have ids that no other one has), the columns are the same, and the list of files is the same object. DataFrames
that a statement reads are under names of temporary views that go when it has been planned.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import class_name, items_of, optimized_plan
from sqlext_planner.spark.scans import (
    PLAIN_SETTINGS,
    file_index,
    files_of,
    is_file_index,
    local_paths,
    plain_parquet_scan,
    reads_plainly,
)
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.versions import frame_of_plan, metadata_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_operators.exchange.parquet_scan import Source


#: Settings by which a plain name may be looked up elsewhere than among the temporary views first.
_LOOKUP_SETTINGS = ("spark.sql.path.enabled", "spark.sql.defaultPath", "spark.sql.functionResolution.sessionOrder")
#: The settings that `TemporaryViews` asks for.
VIEW_SETTINGS = (*_LOOKUP_SETTINGS, *PLAIN_SETTINGS)
#: Relations that are what they were when a DataFrame was made, whatever has become of a table in a catalog.
_FIXED = {"LogicalRelation", "LogicalRDD", "Range", "OneRowRelation"}
#: Number of views that are remembered; the least recently used one goes first.
_CAPACITY = 1_000

Columns = tuple[tuple[str, str], ...]


@dataclass
class KnownView:
    """What is known of a temporary view as long as Spark has the same one: its columns' names and types, once somebody
    has told them, and where its files are listed. Holds nothing of the JVM but a weak reference."""

    columns: Columns | None = None
    _index: Any = None
    _is_plain: bool | None = None

    def parquet_files(self, opened: Callable[[], DataFrame]) -> tuple[str, ...]:
        """The paths of the files, as Spark lists them now, if the view has all of its columns from plain Parquet files
        under their own names; else none. `opened` gives a DataFrame of the view; it is called at first."""
        index = None if self._index is None else self._index.get()
        if index is None and self._is_plain is not False:
            frame = opened()
            found = plain_parquet_scan(frame)
            names = None if found is None else [_name(column).lower() for column in found.columns]
            self._is_plain = names == [name.lower() for name in frame.columns]
            if self._is_plain:
                index = file_index(optimized_plan(frame))
                java: Any = frame.sparkSession._jvm
                self._index = java.java.lang.ref.WeakReference(index)
        return () if index is None else local_paths(index) or ()


def quoted_name(name: str) -> str:
    """A view's name as Spark takes it, whatever it holds; one in backticks stays."""
    return name if re.fullmatch("`([^`]|``)+`", name) else "`" + name.replace("`", "``") + "`"


def _name(column: Source) -> str:
    """The column's own name, in the files or in the names of their folders; none for anything else."""
    return column if isinstance(column, str) else getattr(column, "name", "")


class TemporaryViews:
    """The temporary views of one session that were met. Thread-safe."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._known: OrderedDict[int, KnownView | None] = OrderedDict()
        self._next = count()
        self._lock = threading.Lock()
        java = getattr(spark, "_jvm", None)
        #: From the view in Spark's catalog, as long as that has it, to its number here.
        self._numbers: Any = None
        if java is not None:
            session = self._spark._jsparkSession
            self._catalog, self._cached = session.sessionState().catalog(), session.sharedState().cacheManager()
            self._numbers = java.java.util.Collections.synchronizedMap(java.java.util.WeakHashMap())

    def find(self, name: str, settings: Mapping[str, str]) -> KnownView | None:
        """The view with a plain name; the same object as long as Spark has the same view.

        None for any other name, under Connect, for a stream, and for a view whose columns depend on more than its plan
        (one that Spark keeps as text).
        """
        if self._numbers is None or any(key in settings for key in _LOOKUP_SETTINGS):
            return None
        found = self._catalog.getRawTempView(name)
        if not found.isDefined():
            return None
        relation = found.get()
        number = self._numbers.get(relation)
        with self._lock:
            if number in self._known:
                self._known.move_to_end(number)
                return self._known[number]
        return self._added(relation)

    def lists_plainly(self, settings: Mapping[str, str]) -> bool:
        """Whether `KnownView.parquet_files` tells all: no setting changes how files are read, and nothing is cached.
        Never under Connect."""
        return self._numbers is not None and reads_plainly(settings) and bool(self._cached.isEmpty())

    def _added(self, relation: Any) -> KnownView | None:
        plan = relation.plan()
        leaves = items_of(plan.get().collectLeaves()) if plan.isDefined() else []
        is_fixed = bool(leaves) and all(class_name(leaf) in _FIXED for leaf in leaves)
        view = KnownView() if is_fixed and not plan.get().isStreaming() else None
        with self._lock:
            number = next(self._next)
            self._known[number] = view
            if len(self._known) > _CAPACITY:
                self._known.popitem(last=False)
        self._numbers.put(relation, number)
        return view


def over_sources(rows: DataFrame, frames: Iterable[DataFrame]) -> DataFrame:
    """`rows`, which somebody other than Spark reads from `frames`, now or later, in a plan with the frames' tables.

    Catalyst then knows what the plan reads: it refuses to overwrite a table that it reads, drops the plan's cached rows
    when the table gets new ones, and `inputFiles` is right. For each table of files the plan holds the files that
    Spark has come to list since now, and an error for them: there are none unless the table was listed again, for a
    cached plan after an INSERT, or by REFRESH TABLE. Other tables are in the plan without rows, and are optimised
    away. Under Connect `rows` is returned unchanged.
    """
    others = ["NULL"] * (len(rows.columns) - 1)  # a union gives a NULL, and an error, the column's type
    for frame in frames:
        plan = optimized_plan(frame)
        leaves = items_of(plan.collectLeaves()) if plan is not None else []
        listed = [_whole(frame.sparkSession, leaf) for leaf in leaves if _is_file_relation(leaf)]
        for leaf in listed:
            scanned, error = _new_files(frame.sparkSession, leaf)
            rows = rows.unionAll(scanned.selectExpr(error, *others))
        if len(listed) < len(leaves):
            rows = rows.unionAll(frame.where("false").selectExpr("NULL", *others))
    return rows


def _is_file_relation(leaf: Any) -> bool:
    relation = files_of(leaf)
    return relation is not None and is_file_index(relation.location())


def _whole(spark: SparkSession, leaf: Any) -> Any:
    """The relation of all partitions: a condition leaves Catalyst a list of some, which does not grow any more."""
    if leaf.relation().partitionSchema().isEmpty() or leaf.catalogTable().isEmpty():
        return leaf
    table = spark.table(str(leaf.catalogTable().get().identifier().quotedString()))
    return table._jdf.queryExecution().analyzed().collectLeaves().head()


def _new_files(spark: SparkSession, relation: Any) -> tuple[DataFrame, str]:
    """The rows of files that Spark does not list now, and an expression over them that raises an error.

    Spark compares the files' names when it plans the scan, which then has no tasks.
    """
    listed = list(relation.relation().location().inputFiles())
    listed += ["file:/" + uri.removeprefix("file:///") for uri in listed if uri.startswith("file:///")]
    rows = frame_of_plan(spark, relation)
    path = "_metadata.file_path"
    if any(name.lower() == "_metadata" for name in rows.columns):  # a column of the data hides Spark's
        rows, path = rows.select(metadata_column(rows, "_metadata").getField("file_path").alias("path")), "path"
    known, line = _text_literal("\n".join(["", *listed, ""])), _text_literal("\n")
    error = f"raise_error(concat('file ', {_text_literal(chr(39))}, {path}, {_added_file()}))"
    return rows.where(f"instr({known}, concat({line}, {path}, {line})) = 0"), f"{error} AS error"


@cache
def _added_file() -> str:
    """A literal: how an error about a new file goes on behind its name."""
    from sqlext_operators.errors import MARK, marked
    from sqlext_operators.exchange.source_files import AGAIN

    message = "a file was added to a table of the statement after it was planned"
    mark = f"{MARK} {marked('ConfigurationError', 'changed-file', message, AGAIN, None)}"
    return _text_literal(f"' was added to its table after the statement was planned\n{mark}")


def _text_literal(text: str) -> str:
    """A literal that reads the same under every setting of the parser."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


_HELD: ContextVar[Mapping[str, DataFrame] | None] = ContextVar("sqlext_references", default=None)


@contextmanager
def held(name: str, frame: DataFrame) -> Iterator[None]:
    """Inside, the table `name` is this DataFrame."""
    token = _HELD.set({**(_HELD.get() or {}), name: frame})
    try:
        yield
    finally:
        _HELD.reset(token)


def referenced_table(spark: SparkSession, name: str) -> DataFrame:
    """The table, as a DataFrame that lasts. Under Connect that of `held`: there ``spark.table`` looks its name up anew
    each time the DataFrame runs, when the view is gone."""
    frame = (_HELD.get() or {}).get(name.strip("`"))
    return frame if frame is not None and is_remote(spark) else spark.table(name)
