"""What Spark says of a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import class_name, items_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_DELAY = "spark.watermarkDelayMs"


def watermarks(schema: StructType) -> dict[str, int]:
    """The columns that have a watermark, with their delays in milliseconds."""
    return {item.name: int(item.metadata[_DELAY]) for item in schema if _DELAY in item.metadata}


def without_watermarks(schema: StructType) -> StructType:
    """The schema of results that come after the watermark: Spark's own operators would drop them as late."""
    from pyspark.sql.types import StructField, StructType

    found = []
    for item in schema:
        kept = {key: value for key, value in item.metadata.items() if key != _DELAY}
        found.append(StructField(item.name, item.dataType, item.nullable, kept))
    return StructType(found)


def is_behind_state(frame: DataFrame) -> bool:
    """Whether a frame reads the result of `transformWithState`, ours or the user's. False under Connect."""
    java_frame = getattr(frame, "_jdf", None)
    stack = [] if java_frame is None else [java_frame.queryExecution().analyzed()]
    while stack:
        node = stack.pop()
        if class_name(node).startswith("TransformWithState"):
            return True
        stack += items_of(node.children())
    return False


def watermark_stacks(frame: DataFrame) -> list[tuple[str, ...]]:
    """The columns of the watermarks of each input, the uppermost first; also of columns that the frame has no longer.
    Spark refuses two above each other only when the query starts. Under Connect, where the plan is out of reach, those
    of the frame's own columns."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:
        return [(name,) for name in watermarks(frame.schema)]
    found: list[tuple[str, ...]] = []
    stack: list[tuple[Any, tuple[str, ...]]] = [(java_frame.queryExecution().analyzed(), ())]
    while stack:
        node, above = stack.pop()
        if class_name(node) == "EventTimeWatermark":
            above = (*above, str(node.eventTime().name()))
        children = items_of(node.children())
        stack += [(child, above) for child in children]
        if not children and above:
            found.append(above)
    return found
