"""DataFrames that a statement reads under names of temporary views that go when it has been planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sqlext_planner.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
