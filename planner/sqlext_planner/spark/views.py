"""Temporary views of a Spark session, recognised from statement to statement, so that what is known about them is kept.

Spark analyzes a name anew for each statement, and a plan has to be walked over for its files: 1 ms and 10 ms a table. A
temporary view made of a DataFrame has its analyzed plan in Spark's catalog. As long as that holds an equal plan (its
columns have ids that no other one has), the columns are the same, and the list of files is the same object.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import class_name, items_of, optimized_plan
from sqlext_planner.spark.scans import PLAIN_SETTINGS, file_index, local_paths, plain_parquet_scan, reads_plainly

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
