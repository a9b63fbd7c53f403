"""The specification of an interval join on streams: plain frozen data, picklable, and its operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlext_operators.exchange.chunk_cache import DECODED_BYTES
from sqlext_operators.exchange.stream import StreamOperator
from sqlext_operators.interval_join.open_stream import OpenStream
from sqlext_operators.interval_join.stream_join import IntervalStream
from sqlext_operators.interval_join.stream_sides import StreamJoin


@dataclass(frozen=True)
class IntervalStreamSpec(StreamJoin):
    """A join over streams that a worker makes an operator from."""

    #: New rows may match any run: what is not at hand would be read again in each micro-batch.
    cache_bytes: ClassVar[int] = 2 * DECODED_BYTES

    def stream(self) -> StreamOperator:
        """The operator."""
        return IntervalStream(self) if self.left.open is None and self.right.open is None else OpenStream(self)
