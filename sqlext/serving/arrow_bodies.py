"""Rows as an Arrow IPC stream, from a client that nobody vouches for."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import tzinfo

import pyarrow as pa
import pyarrow.types as kinds

from sqlext.serving.bodies import MOST_ROWS, RequestError
from sqlext.serving.values import with_zone

ARROW = "application/vnd.apache.arrow.stream"
_HELP = f"send an Arrow IPC stream, uncompressed, with Content-Type {ARROW}"
#: Kinds of messages.
_DICTIONARY, _BATCH = 2, 3


def _is_decimal(kind: pa.DataType) -> bool:
    """Whether it is a decimal that can be: to cast one of another scale ends the process (pyarrow 26)."""
    return bool(kinds.is_decimal(kind) and 0 <= kind.scale <= kind.precision)


#: Types whose few bytes may stand for many rows (dictionaries, runs, views of the same text) are not among them.
_PLAIN = (
    kinds.is_null,
    kinds.is_boolean,
    kinds.is_integer,
    kinds.is_floating,
    _is_decimal,
    kinds.is_string,
    kinds.is_large_string,
    kinds.is_binary,
    kinds.is_large_binary,
    kinds.is_temporal,
)


def read_arrow(body: bytes, schema: pa.Schema, zone: tzinfo) -> pa.Table:
    """The rows of a stream, checked; their columns are those that the client names. Raises RequestError.

    `schema` has the columns that are expected: nested types come as these are, or not at all. Where it has instants,
    times without a zone are of `zone`.
    """
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            expected = {field.name.lower(): field.type for field in schema}
            for field in reader.schema:
                plain = any(matches(field.type) for matches in _PLAIN)
                if not plain and field.type != expected.get(field.name.lower()):
                    name = field.name[:60]
                    raise RequestError(
                        f"the column '{name}' comes as {str(field.type)[:100]}",
                        condition="row-value",
                        help="send it in the type that the table has",
                        place={"column": name},
                    )
            return with_zone(_checked(reader), schema, zone)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, NotImplementedError) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError("the body is no Arrow IPC stream", help=_HELP) from None


def _checked(reader: pa.RecordBatchReader) -> pa.Table:
    batches = []
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        if rows > MOST_ROWS:
            raise RequestError(f"the body has more than {MOST_ROWS:,} rows", help="send fewer at once")
        batch.validate(full=True)
        batches.append(batch)
    names = [name.lower() for name in reader.schema.names]
    if len(set(names)) != len(names):
        raise RequestError("the body has a column twice", help="names ignore case")
    return pa.Table.from_batches(batches, reader.schema)


def _refuse_compressed(body: bytes) -> None:
    """Raises RequestError for a compressed batch: a few bytes may become more than memory holds. pyarrow reads such
    batches without asking, so the flatbuffers of the messages are looked at before it does."""
    at = 0
    while at + 8 <= len(body):
        marker, size = struct.unpack_from("<Ii", body, at)
        at += 8 if marker == 0xFFFFFFFF else 4
        size = size if marker == 0xFFFFFFFF else marker
        if size <= 0:
            return
        message = _Table(body, at, struct.unpack_from("<I", body, at)[0])
        kind, content = message.number(1, "<B"), message.table(2)
        if kind == _DICTIONARY or (kind == _BATCH and content is not None and content.slot(3)):
            raise RequestError("the body is compressed, or has a dictionary", help=_HELP)
        at += size + message.number(3, "<q")
        if not 0 <= at <= len(body):
            raise ValueError(at)


class _Table:
    """A table of a flatbuffer: the places of its fields are in a table of its own."""

    def __init__(self, data: bytes, start: int, offset: int) -> None:
        self._data, self._at = data, start + offset
        self._fields = self._at - struct.unpack_from("<i", data, self._at)[0]
        if min(self._at, self._fields) < 0:
            raise ValueError(offset)

    def slot(self, field: int) -> int:
        """How far behind the table's start a field is; 0: it is not there."""
        size = struct.unpack_from("<H", self._data, self._fields)[0]
        return (
            0 if 4 + 2 * field >= size else int(struct.unpack_from("<H", self._data, self._fields + 4 + 2 * field)[0])
        )

    def number(self, field: int, form: str) -> int:
        """A number."""
        slot = self.slot(field)
        return int(struct.unpack_from(form, self._data, self._at + slot)[0]) if slot else 0

    def table(self, field: int) -> _Table | None:
        """A table below this one."""
        slot = self.slot(field)
        if not slot:
            return None
        at = self._at + slot
        return _Table(self._data, at, struct.unpack_from("<I", self._data, at)[0])


def arrow_stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    """Rows as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
