"""Computed Columns of PySpark: they have no text, so they become columns of what FROM and UNION read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError
from sqlext_planner.spark.versions import condition_name

from sqlext.builders.expressions import ColumnPart, Expr, Over, columns_in, columns_in_calls
from sqlext.builders.text import Source, SqlPart, WrittenQuery, column_name
from sqlext.builders.windows import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from sqlext.builders.select import Runner

_UNRESOLVED = "UNRESOLVED_COLUMN"


@dataclass(frozen=True, eq=False)
class ComputedColumns:
    """The computed Columns of a SELECT over one input, by the names that they get in it.

    Where all sources have FROM's columns, each Column is computed on every one. A source BY NAME may lack columns:

    - Columns in calls over such a window are computed with NULL for what an input lacks, as SQL does it.
    - Those that the window is partitioned or ordered by need a value in each row.
    - Any others are about rows of FROM, and no source BY NAME has them.
    """

    runner: Runner
    first: Source
    items: Sequence[Expr]
    windows: Sequence[Window]
    #: The names of `windows`, by their ids.
    names: Mapping[int, str] = field(default_factory=dict)
    default_window: str | None = None
    _frames: dict[int, DataFrame] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The Columns by their names in the inputs."""
        parts = (*self.items, *(item for window in self.windows for item in window.expressions))
        found = {id(column): column for column in columns_in(parts) if column_name(column) is None}
        return {f"_column{number}": column for number, column in enumerate(found.values(), 1)}

    def opened(self, source: Source, window: SqlPart | None = None) -> DataFrame:
        """The rows of FROM, or of a source of a window, with the Columns.

        Raises AnalysisError if a source BY NAME lacks a column that its window is partitioned or ordered by.
        """
        frame = self._frame(source)
        if not any(item.by_name for item in self.windows):
            return frame.withColumns(dict(self.columns))
        whole = {name: column for name, column in self.columns.items() if id(column) not in self._in_calls}
        if isinstance(window, Window) and window.by_name:
            keys = {id(column) for column in columns_in(window.expressions)}
            whole = {name: column for name, column in whole.items() if id(column) in keys}
            self._refuse_missing(frame, source, whole)
        called = {name: column for name, column in self.columns.items() if id(column) in self._in_calls}
        missing = self._missing(frame)
        for made in (whole, missing, called):
            frame = frame.withColumns(made) if made else frame  # Spark Connect refuses none
        return frame.drop(*missing) if missing else frame

    @cached_property
    def _in_calls(self) -> frozenset[int]:
        """The ids of Columns that are read in calls over windows BY NAME, and nowhere else."""
        named = {name.lower() for number, name in self.names.items() if self._by_id[number].by_name}

        def is_by_name(over: Over) -> bool:
            window = self.default_window if over.window is None else over.window
            if window is None or isinstance(window, str):
                return window is not None and window.lower() in named
            return id(window) in self._by_id and bool(self._by_id[id(window)].by_name)

        found = [id(column) for column in columns_in_calls(tuple(self.items), is_by_name)]
        parts = (*self.items, *(item for window in self.windows for item in window.expressions))
        everywhere = [id(column) for column in columns_in(parts)]
        return frozenset(number for number in found if everywhere.count(number) == found.count(number))

    @cached_property
    def _by_id(self) -> Mapping[int, Window]:
        return {id(window): window for window in self.windows}

    @cached_property
    def _fields(self) -> Mapping[str, StructField]:
        """The columns of FROM and of the sources BY NAME, each name once."""
        sources = [self.first, *(source for window in self.windows if window.by_name for source in window.sources)]
        found: dict[str, StructField] = {}
        for source in sources:
            for item in self._frame(source).schema:
                found.setdefault(self._fold(item.name), item)
        return found

    def _frame(self, source: Source) -> DataFrame:
        if id(source) not in self._frames:
            self._frames[id(source)] = opened_frame(self.runner, source)
        return self._frames[id(source)]

    def _missing(self, frame: DataFrame) -> dict[str, Column]:
        """NULL for each column that only other inputs have."""
        from pyspark.sql import functions

        own = {self._fold(name) for name in frame.columns}
        others = (item for name, item in self._fields.items() if name not in own)
        return {item.name: functions.lit(None).cast(item.dataType) for item in others}

    def _fold(self, name: str) -> str:
        return name if self.runner.spark.conf.get("spark.sql.caseSensitive") == "true" else name.lower()

    def _refuse_missing(self, frame: DataFrame, source: Source, keys: Mapping[str, Column]) -> None:
        from pyspark.errors import AnalysisException

        for column in keys.values():
            try:
                frame.select(column).schema  # noqa: B018 - Connect analyzes a plan when it is asked for its schema
            except AnalysisException as error:
                if not str(condition_name(error)).startswith(_UNRESOLVED):
                    raise
                what = f"'{source}'" if isinstance(source, str) else f"with columns {', '.join(frame.columns)}"
                raise AnalysisError(
                    f"UNION source {what} lacks a column of {column}, which the window is partitioned or ordered by",
                    condition="union-columns",
                    help="BY NAME a source may lack columns, but not these: add them to it with select or withColumn",
                ) from error


def opened_frame(runner: Runner, source: Source) -> DataFrame:
    """The rows of a source as a DataFrame."""
    if isinstance(source, str):
        return runner.spark.table(source)
    return source.df() if isinstance(source, WrittenQuery) else source


def column_title(runner: Runner, source: Source, item: Expr) -> str | None:
    """The name that PySpark gives to a computed Column as an item of its own; None for any other item."""
    part = item.parts[0]
    if len(item.parts) > 1 or not isinstance(part, ColumnPart) or column_name(part.column) is not None:
        return None
    return opened_frame(runner, source).select(part.column).columns[0]
