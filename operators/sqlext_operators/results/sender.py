"""Sends the rows of a task to the process that asked for them, as text, while the task runs.

A connection starts with the spec's token and the partition's number (4 bytes). Then come frames: their length (4 bytes)
and text. A frame of length 0 says that all of the partition was sent.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.results.text import TextSpec, text_of

LENGTH = struct.Struct("!I")
#: Larger texts are sent as several frames.
FRAME_BYTES = 1 << 20
#: Seconds to connect.
_PATIENCE = 60


@dataclass(frozen=True)
class SendSpec:
    """Where the text goes, the bytes that prove whose it is, and what it looks like."""

    host: str
    port: int
    token: bytes
    text: TextSpec


def send_rows(spec: SendSpec, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sends the text of a partition's rows; returns one row (rows bigint), their number.

    Raises BrokenPipeError or ConnectionError when the receiver wants no more.
    """
    rows = 0
    with socket.create_connection((spec.host, spec.port), timeout=_PATIENCE) as connection:
        connection.settimeout(None)
        connection.sendall(spec.token + LENGTH.pack(partition))
        for batch in batches:
            text = memoryview(text_of(spec.text, batch))
            for start in range(0, len(text), FRAME_BYTES):
                frame = text[start : start + FRAME_BYTES]
                connection.sendall(LENGTH.pack(len(frame)))
                connection.sendall(frame)
            rows += batch.num_rows
        connection.sendall(LENGTH.pack(0))
    yield pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], names=["rows"])
