"""What no kernel could improve: the script's own plan with operators that compute nothing.

Scans, scatters, shuffles and Spark's share stay as they are. Each operator collects the rows that the real one
collects, and sends back as many rows and columns. It does not sort, slide windows, or look for the last row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from sqlext_planner.exchange.driver import Wire
from sqlext_planner.exchange.wire import arrow_schema, months_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_planner.exchange.wire import Size

FROM = 0
#: Rows of FROM that are sent together, and bytes of an output batch, as the real operators have them.
FROM_ROWS = 262_144
OUTPUT_BYTES = 64 << 20


@dataclass(frozen=True)
class IdleSpec:
    """The specification of a real operator, and which columns of which input are sent back.

    `payloads[i]` are names of columns of input i. `schema` is the operator's result: the payloads in the order of the
    inputs, then what would be computed.
    """

    real: Any
    payloads: tuple[tuple[str, ...], ...]
    schema: pa.Schema

    @classmethod
    def of(cls, real: Any, schema: pa.Schema) -> IdleSpec:
        """Takes the place of a window or a LAST JOIN. Raises TypeError for any other operator."""
        match real:
            case object(window=window):
                return cls(real, (window.payload,), schema)
            case object(join=join):
                return cls(real, (join.payload, *(side.payload for side in join.rights)), schema)
        raise TypeError(f"no idle operator for {type(real).__name__}")

    def operator(self) -> Any:
        """The real operator, which collects as ever, with other results."""
        operator = self.real.operator()
        operator.needs_copies = False
        operator.results = self.results
        return operator

    def results(self, parts: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Every row of FROM once, with a row of each other input that has a payload (one after the other, again from
        the first after the last), and NULL for what would be computed."""
        for part in parts:
            others: list[list[pa.Array]] | None = None
            sent = 0
            for rows in self._from_rows(part):
                if others is None:
                    tags = range(FROM + 1, len(self.payloads))
                    others = [self._columns(tag, [block.batch for block in part.blocks(tag)]) for tag in tags]
                yield from self._sent(rows, others, sent)
                sent += len(rows[0])

    def _from_rows(self, part: Any) -> Iterator[list[pa.Array]]:
        """The payload of FROM, some blocks together."""
        held: list[pa.RecordBatch] = []
        count = 0
        for block in part.blocks(FROM):
            held.append(block.batch)
            count += block.batch.num_rows
            if count >= FROM_ROWS:
                yield self._columns(FROM, held)
                held, count = [], 0
        if count:
            yield self._columns(FROM, held)

    def _columns(self, tag: int, batches: Sequence[pa.RecordBatch]) -> list[pa.Array]:
        """The payload of an input's rows; the results may say otherwise how the time zone is called."""
        before = sum(map(len, self.payloads[:tag]))
        types = self.schema.types[before : before + len(self.payloads[tag])]
        named = zip(self.payloads[tag], types, strict=True)
        return [
            pa.concat_arrays([pa.array([], kind), *(batch[name].cast(kind) for batch in batches)])
            for name, kind in named
        ]

    def _sent(self, rows: list[pa.Array], others: list[list[pa.Array]], sent: int) -> Iterator[pa.RecordBatch]:
        width = sum(column.nbytes // max(1, len(column)) for columns in (rows, *others) for column in columns)
        step = max(1, min(FROM_ROWS, OUTPUT_BYTES // max(1, width)))
        for start in range(0, len(rows[0]), step):
            columns = [column.slice(start, step) for column in rows]
            count = len(columns[0])
            columns += [item for other in others for item in _in_turn(other, sent + start, count)]
            columns += [pa.nulls(count, kind) for kind in self.schema.types[len(columns) :]]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _in_turn(columns: list[pa.Array], start: int, count: int) -> list[pa.Array]:
    """`count` rows from row `start` on, again from the first row after the last; NULL if there is none."""
    places = pa.array(np.arange(start, start + count) % max(1, len(columns[0]) if columns else 0))
    return [column.take(places) if len(column) else pa.nulls(count, column.type) for column in columns]


def idle_operators() -> AbstractContextManager[object]:
    """While it is entered, DataFrames get idle operators behind their exchanges."""
    real = Wire.run

    def run(wire: Wire, operator: Any, result: StructType, size: Size | None) -> DataFrame:
        return real(wire, IdleSpec.of(operator, arrow_schema(months_schema(result))), result, size)

    return patch.object(Wire, "run", run)
