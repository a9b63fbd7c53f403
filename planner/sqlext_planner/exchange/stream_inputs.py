"""What an exchange on streams asks of its inputs, and what the checkpoint of a query remembers of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.spark.streams import is_behind_state, watermark_stacks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: The name of the view that a DataFrame in a text has: another one each time.
_REFERENCE = re.compile(r"_sqlext_[0-9a-f]{32}")
#: How a stream gets a watermark.
ADD_WATERMARK = "frame.withWatermark('ts', '10 seconds'), or FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS"


def watermark_error(frame: DataFrame, without: str | None = None, column: str = "") -> tuple[str, str] | None:
    """Why a stream's rows cannot be told from late ones, and what to do; None if they can. `without` is what a stream
    without a watermark leads to, None where it needs none, `column` what the watermark should be on."""
    if is_behind_state(frame):
        return (
            "is the result of another statement over streams, whose rows come when the watermark has passed them",
            "write that result to a table or a topic, and read it in a second query",
        )
    stacks = watermark_stacks(frame)
    if any(len(stack) > 1 for stack in stacks):
        return "has two watermarks, one above the other", "leave out one of them"
    if not stacks and without is not None:
        return f"has no watermark, so {without}", f"give it one on {column}: {ADD_WATERMARK}"
    return None


def watermark_names(frame: DataFrame) -> str:
    """The columns of a stream's watermarks, also of those that the frame has no longer, for a message."""
    return ", ".join(dict.fromkeys(name for stack in watermark_stacks(frame) for name in stack))


def identity(parts: Mapping[str, str], frames: Sequence[DataFrame], result: StructType) -> dict[str, str]:
    """What the state of an operator depends on, by names that a user knows: `parts`, and the types of its inputs and
    results. A DataFrame in a text has another name after a restart: that changes nothing."""
    types = "; ".join(_columns(frame.schema) for frame in frames)
    live = ", ".join("stream" if frame.isStreaming else "table" for frame in frames)
    found = {**parts, "columns": types, "inputs": live, "results": _columns(result)}
    seen: dict[str, str] = {}

    def numbered(view: re.Match[str]) -> str:
        return seen.setdefault(view[0], f"{{{len(seen)}}}")

    return {name: _REFERENCE.sub(numbered, text) for name, text in found.items()}


def _columns(schema: StructType) -> str:
    return ", ".join(f"{item.name} {item.dataType.simpleString()}" for item in schema)
