"""The emptiest stateful operator in Python: each partition of state counts the rows that arrived.

Its micro-batches cost what every stateful operator of PySpark pays: Spark's planning and offsets, the sources, two
Python workers, state of one row, a commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

COUNTS = "pid int, rows bigint"


@dataclass(frozen=True)
class CountBatches:
    """Arrow batches in, one row (pid, rows) out for each batch and each of `partitions`: every one gets some."""

    partitions: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function for mapInArrow."""
        for batch in batches:
            share, rest = divmod(batch.num_rows, self.partitions)
            rows = [share + (pid < rest) for pid in range(self.partitions)]
            yield pa.RecordBatch.from_pydict(
                {"pid": pa.array(range(self.partitions), pa.int32()), "rows": pa.array(rows, pa.int64())}
            )


class CountRows(StatefulProcessor):
    """State: the number of rows so far of one pid. Output: the new number, once a micro-batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._rows = handle.getValueState("rows", "rows bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Add up one micro-batch."""
        known = self._rows.get()
        total = (known[0] if known else 0) + sum(row.rows for row in rows)
        self._rows.update((total,))
        yield Row(pid=key[0], rows=total)

    def close(self) -> None:
        """Nothing to give back."""


def union(streams: Sequence[DataFrame]) -> DataFrame:
    """The rows of all streams."""
    return reduce(DataFrame.union, streams)


def counted(streams: Sequence[DataFrame], partitions: int) -> DataFrame:
    """The running counts (pid, rows) over all streams."""
    packed = union(streams).mapInArrow(CountBatches(partitions), COUNTS)
    return packed.groupBy("pid").transformWithState(CountRows(), COUNTS, "Append", "None")
