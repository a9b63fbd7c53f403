"""Rows of streams from far in the future: one of them moves the watermark, and makes all others late.

They are looked at below the watermark, so Spark's plan of the stream is written anew from there up.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, raise_error
from sqlext_planner.spark.plans import class_name, items_of
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.streams import OBSERVED
from sqlext_planner.spark.versions import frame_of_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.config import Config

#: Observed metrics of this module start so; `FUTURE_ROWS` is the only one.
_OBSERVED = "future_rows_of_sqlext_"
FUTURE_ROWS = "future_rows"


def bounded_future(frame: DataFrame, config: Config) -> DataFrame:
    """A stream without the rows whose event time is more than `sqlext.stream.futureBound` after the clock at the start
    of their micro-batch, or one that fails at the first (`sqlext.stream.future`).

    Inputs below our own operators are those of another statement and stay.
    Raises ConfigurationError under Spark Connect, where plans are out of reach.
    """
    if is_remote(frame.sparkSession):
        raise ConfigurationError(
            "under Spark Connect rows of the future cannot be left out of a stream",
            condition="spark-connect",
            help="set sqlext.stream.future to keep, and filter the rows before withWatermark",
        )
    plan = frame._jdf.queryExecution().analyzed()
    return _frame(frame, _below_watermarks(plan, frame, config))


def future_rows(progress: Any) -> int | None:
    """The rows of the future that a micro-batch brought (its StreamingQueryProgress); None if nothing counts them."""
    rows = [row for name, row in (progress.observedMetrics or {}).items() if str(name).startswith(_OBSERVED)]
    return sum(int(row[FUTURE_ROWS] or 0) for row in rows) if rows else None


def _below_watermarks(node: Any, frame: DataFrame, config: Config) -> Any:
    """The node over inputs without rows of the future; itself if no watermark is below it."""
    if class_name(node) == "CollectMetrics" and str(node.name()).startswith(OBSERVED):
        return node
    children = items_of(node.children())
    if class_name(node) == "EventTimeWatermark":
        (child,) = children
        below = child if _is_bounded(child) else _bounded(_frame(frame, child), str(node.eventTime().name()), config)
        found = [below]
    else:
        found = [_below_watermarks(child, frame, config) for child in children]
    if all(old is new for old, new in zip(children, found, strict=True)):
        return node
    return node.withNewChildren(_java(frame).org.apache.spark.api.python.PythonUtils.toSeq(found))


def _is_bounded(node: Any) -> bool:
    """Whether the input of a watermark is one that this module has made: a text may read what was a table before."""
    below = items_of(node.children())
    return bool(below) and class_name(below[0]) == "CollectMetrics" and str(below[0].name()).startswith(_OBSERVED)


def _bounded(rows: DataFrame, time: str, config: Config) -> Any:
    """The plan of the rows whose `time` is not too far in the future."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name
    from pyspark.sql.types import StructType

    at = F.col("`" + time.replace("`", "``") + "`")
    if isinstance(rows.schema[time].dataType, StructType):  # what window() gives
        at = at["end"]
    seconds = config.stream_future_bound
    ahead = at > F.current_timestamp() + F.make_dt_interval(secs=F.lit(seconds))
    observed = rows.observe(_OBSERVED + uuid.uuid4().hex[:12], F.count_if(ahead).alias(FUTURE_ROWS))
    beyond = F.lit(False) if config.stream_future == "drop" else F.expr(future_error(time, seconds))
    kept = F.when(ahead, beyond).otherwise(F.lit(True))
    return observed.where(kept)._jdf.queryExecution().analyzed()


def future_error(time: str, seconds: int) -> str:
    """A condition in SQL that fails."""
    text = raise_error(
        f"a row of a stream has a time in {time} that is more than {seconds:,} seconds after now",
        "set sqlext.stream.future to drop, which counts and drops such rows, or sqlext.stream.futureBound to more",
        None,
        condition="future-rows",
    )
    return f"CAST({text} AS BOOLEAN)"


def _frame(like: DataFrame, plan: Any) -> DataFrame:
    return frame_of_plan(like.sparkSession, plan)


def _java(frame: DataFrame) -> Any:
    return frame.sparkSession._jvm
