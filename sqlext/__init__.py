"""SQL for time on Spark: ``Session(spark).sql(text)`` gives back an ordinary PySpark DataFrame."""

from __future__ import annotations

from sqlext_planner import __version__
from sqlext_planner.errors import SqlExtError
from sqlext_planner.exchange.stream_settings import stream_settings

from sqlext.session import Session, sql

__all__ = ["Session", "SqlExtError", "__version__", "sql", "stream_settings"]
