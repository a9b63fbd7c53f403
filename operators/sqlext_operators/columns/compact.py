"""Columns that take less room while they travel: strings as dictionaries, whole numbers in fewer bytes.

A byte on the wire is copied some ten times, and compressed once, on its way through Spark's shuffle. Measured with
260,000 strings of 6 bytes, ns a value: 12 to 15 to encode, 5 to 8 to decode; to gather plain ones 7 to 45, encoded
ones 1.2.

Numbers are restored when a block is received. Strings stay dictionaries until `plain` decodes them: the dictionary of
an array has no NULL and no value twice, but may have values that no row has; its indices are int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.reshape import stacked

#: The metadata of a narrowed column: the type that it had.
_WIDE = b"wide"
_WIDTHS = (pa.int8(), pa.int16(), pa.int32())
_SAMPLE = 2_048
#: A dictionary has at most one value for this many rows of a block.
_ROWS_A_VALUE = 4


def compact(batch: pa.RecordBatch, blocks: int) -> pa.RecordBatch:
    """The batch with narrow columns, to be cut into about `blocks` blocks, each with all dictionaries."""
    most = batch.num_rows // (_ROWS_A_VALUE * blocks)
    if most == 0:
        return plain(batch)
    packed = [_packed(column, field, most) for column, field in zip(batch.columns, batch.schema, strict=True)]
    return pa.RecordBatch.from_arrays([column for column, _ in packed], schema=pa.schema([f for _, f in packed]))


def restore(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of `compact` with its own types, but for dictionaries, whose indices become int32."""
    if not any(_is_narrow(field) for field in batch.schema):
        return batch
    columns, fields = [], []
    for column, field in zip(batch.columns, batch.schema, strict=True):
        if _is_narrow(field):
            if pa.types.is_dictionary(field.type):
                column = _indexed(column, pa.int32())
                field = field.remove_metadata()
            else:
                column = column.cast(getattr(pa, field.metadata[_WIDE].decode())())
            field = pa.field(field.name, column.type, field.nullable)
        columns.append(column)
        fields.append(field)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without dictionaries."""
    if not any(map(pa.types.is_dictionary, batch.schema.types)):
        return batch
    columns = [plain_column(column) for column in batch.columns]
    fields = [pa.field(f.name, column.type, f.nullable) for f, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def plain_column(column: pa.Array) -> pa.Array:
    """The values of a dictionary array, or the array itself."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of equal columns, of which any may be dictionaries, as one."""
    if len(batches) == 1:
        return batches[0]
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return stacked(batches)
    columns = [
        concatenate([batch.column(place) for batch in batches], plain_type(field.type))
        for place, field in enumerate(batches[0].schema)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batches[0].schema.names)


def concatenate(columns: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array of type `kind`, or a dictionary of such values if all columns are one."""
    if any(column.type != pa.dictionary(pa.int32(), kind) for column in columns):
        columns = [column if column.type == kind else column.cast(kind) for column in columns]
    return pa.concat_arrays(columns)


def is_distinct(column: pa.DictionaryArray) -> bool:
    """Whether no value is twice in the dictionary (a file's may have any), and none is NULL."""
    values = column.dictionary
    return bool(values.null_count == 0 and pc.count_distinct(values).as_py() == len(values))


def coded(column: pa.DictionaryArray) -> tuple[pa.Array, pa.Array]:
    """(places, values): NULL is a value too, the last one, if a row has it."""
    places, values = column.indices, column.dictionary
    if column.null_count:
        places = pc.fill_null(places, pa.scalar(len(values), places.type))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return places, values


def _packed(column: pa.Array, field: pa.Field, most: int) -> tuple[pa.Array, pa.Field]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column if len(column.dictionary) <= most else _trimmed(column)
        packed = column if len(column.dictionary) <= most else plain_column(column)
    elif _is_text(kind):
        packed = _encoded(column, most)
    elif pa.types.is_signed_integer(kind):
        packed = _narrowed(column)
    else:
        return column, field
    if pa.types.is_dictionary(packed.type):
        packed = _indexed(packed, _index_type(len(packed.dictionary)))
    is_narrow = packed.type not in (kind, plain_type(kind))
    return packed, pa.field(field.name, packed.type, field.nullable, {_WIDE: str(kind)} if is_narrow else None)


def _trimmed(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """With the values that rows have, and no others."""
    used = column.indices.drop_null().unique()
    order = np.zeros(len(column.dictionary), np.int32)
    order[used.to_numpy()] = np.arange(len(used))
    places = pa.array(order).take(column.indices)
    return pa.DictionaryArray.from_arrays(places, column.dictionary.take(used))


def _encoded(column: pa.Array, most: int) -> pa.Array:
    """As a dictionary if a sample has few values, and the column not more than `most`."""
    places = np.linspace(0, len(column) - 1, min(_SAMPLE, len(column))).astype(np.int64)
    if pc.count_distinct(column.take(pa.array(places))).as_py() > min(most, len(places) // _ROWS_A_VALUE):
        return column
    found = column.dictionary_encode()
    return found if len(found.dictionary) <= most else column


def _narrowed(column: pa.Array) -> pa.Array:
    least, greatest = (value.as_py() for value in pc.min_max(column).values())
    if least is None:
        return column
    for kind in _WIDTHS:
        if kind.bit_width >= column.type.bit_width:
            return column
        limit = 1 << (kind.bit_width - 1)
        if -limit <= least and greatest < limit:
            return column.cast(kind, safe=False)
    return column


def _index_type(values: int) -> pa.DataType:
    return next(kind for kind in _WIDTHS if values <= 1 << (kind.bit_width - 1))


def _indexed(column: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(column.indices.cast(kind, safe=False), column.dictionary)


def _is_narrow(field: pa.Field) -> bool:
    return field.metadata is not None and _WIDE in field.metadata


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def in_utc(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with all instants in the zone UTC; the same object if they are.

    Spark hands instants over in the session's zone, state and inputs without rows have them in UTC: the batches of one
    stream of results must not differ. Instants are the same in any zone, so nothing is computed.
    """
    schema = pa.schema([field.with_type(utc_type(field.type)) for field in batch.schema])
    if schema.types == batch.schema.types:
        return batch
    columns = [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def utc_type(kind: pa.DataType) -> pa.DataType:
    """The type with each zone in it as UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(utc_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(utc_type(kind.key_type), kind.item_field.with_type(utc_type(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(utc_type(field.type)) for field in kind])
    return kind
