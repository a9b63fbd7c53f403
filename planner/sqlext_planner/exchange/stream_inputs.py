"""What an exchange on streams asks of its inputs, and what the checkpoint of a query remembers of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.spark.streams import EventTimes, Origin, origin_of, watermark_stacks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: The name of the view that a DataFrame in a text has: another one each time.
_REFERENCE = re.compile(r"_sqlext_[0-9a-f]{32}")
#: How a stream gets a watermark.
ADD_WATERMARK = "frame.withWatermark('ts', '10 seconds'), or FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS"
#: What to do where an operator cannot read the result of another one.
SECOND_QUERY = "write that result to a table or a topic, and read it in a second query"
_HELP = {"withWatermark": "leave out withWatermark: the rows have their event time without it"}


@dataclass(frozen=True)
class StreamInput:
    """What an operator knows of one of its inputs: a table has neither an origin nor times."""

    frame: DataFrame
    origin: Origin = field(default_factory=Origin)
    times: EventTimes = field(default_factory=EventTimes)

    @classmethod
    def of(cls, frame: DataFrame) -> StreamInput:
        """The input that a DataFrame is."""
        if not frame.isStreaming:
            return cls(frame)
        origin = origin_of(frame)
        return cls(frame, origin, EventTimes.of(frame.schema, origin.operators))

    def shipped(self, frame: DataFrame) -> StreamInput:
        """The same rows with the columns that are sent."""
        return replace(self, frame=frame, times=EventTimes.of(frame.schema, self.origin.operators))

    def error(self, without: str | None = None, column: str = "") -> tuple[str, str] | None:
        """Why the stream's rows cannot be told from late ones, and what to do; None if they can. `without` is what a
        stream without a watermark leads to, None where it needs none, `column` what the watermark should be on."""
        behind = self.origin.behind
        if behind is not None:
            why = ", whose rows come when the watermark has passed them"
            if self.origin.operators:
                why = f" with {behind} above it, and how late its rows come then is not known"
            return f"is the result of another statement over streams{why}", _HELP.get(behind, SECOND_QUERY)
        stacks = watermark_stacks(self.frame)
        if any(len(stack) > 1 for stack in stacks):
            return "has two watermarks, one above the other", "leave out one of them"
        if self.times.delays or (without is None and not self.times.unknown):
            return None
        if self.origin.operators:
            return self.result_error()
        if not stacks and without is not None:
            return f"has no watermark, so {without}", f"give it one on {column}: {ADD_WATERMARK}"
        return None

    def result_error(self, column: str | None = None) -> tuple[str, str]:
        """Why the result of another operator has no event time, or none in a column, and what to do."""
        told, unknown = "is the result of another statement over streams", self.times.unknown
        known = ", ".join(self.times.delays)
        if column not in unknown and (known or not unknown):
            which = f"none of its event times but {known}" if known else "no event time of it"
            use = f"use {known}, or select" if known else "select"
            return f"{told}, and {which} is here", f"{use} the time column itself: an expression is no event time"
        return f"{told}, and {unknown.get(column or '', next(iter(unknown.values())))}", SECOND_QUERY

    def watermark_names(self) -> str:
        """The columns of the watermarks, also of those that the frame has no longer, for a message."""
        stacks = watermark_stacks(self.frame)
        return ", ".join(dict.fromkeys(name for stack in stacks for name in stack))


def watermark_error(which: str, error: tuple[str, str], span: Span | None) -> AnalysisError:
    """The error of an input, `which` names it, whose rows cannot be told from late ones."""
    return AnalysisError(f"{which} {error[0]}", condition="stream-needs-watermark", span=span, help=error[1])


@dataclass(frozen=True)
class Chain:
    """How an operator stands to those of ours below it.

    `delay` is how long after the watermark rows of its inputs come, in microseconds. `chained` are the tags of the
    inputs that are results of `operators`.
    """

    delay: int = 0
    chained: frozenset[int] = frozenset()
    operators: tuple[str, ...] = ()

    @classmethod
    def of(cls, inputs: Sequence[StreamInput], times: Sequence[str | None]) -> Chain:
        """The chain of an operator over inputs, by tag, whose event times are in the columns `times`."""
        delays = [item.times.delays[time] for item, time in zip(inputs, times, strict=True) if time is not None]
        chained = frozenset(tag for tag, item in enumerate(inputs) if item.origin.operators)
        operators = tuple(name for item in inputs for name in item.origin.operators)
        return cls(max(delays, default=0), chained, operators)


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
