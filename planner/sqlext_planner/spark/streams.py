"""What Spark says of a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.spark.plans import class_name, items_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_DELAY = "spark.watermarkDelayMs"


def watermarks(schema: StructType) -> dict[str, int]:
    """The columns that have a watermark, with their delays in milliseconds."""
    return {item.name: int(item.metadata[_DELAY]) for item in schema if _DELAY in item.metadata}


def stacked_watermarks(frame: DataFrame) -> bool:
    """Whether an input has a watermark above another one, which Spark refuses only when the query starts. False under
    Connect, where the plan is out of reach."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:
        return False
    stack = [(java_frame.queryExecution().analyzed(), 0)]
    while stack:
        node, above = stack.pop()
        above += class_name(node) == "EventTimeWatermark"
        if above > 1:
            return True
        stack += [(child, above) for child in items_of(node.children())]
    return False
