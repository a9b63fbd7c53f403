"""LAST JOIN over one partition: right sides at once, left rows batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.flat import take, truth
from sqlext_operators.columns.keys import KeyCodes, null_keys
from sqlext_operators.exchange.profile import measured
from sqlext_operators.last_join.right import SortedRight
from sqlext_operators.last_join.spec import LastJoinSpec


class LastJoinProcessor:
    """The LAST JOIN operator over one partition.

    `rights` are the rows of each right side in input order; their columns are those that the specification names, of
    types that are equal on both sides or differ in the width of integers or floats only. Memory depends on the right
    sides alone. Raises KeyTypeError for a type that cannot be a key.
    """

    def __init__(self, spec: LastJoinSpec, rights: Sequence[pa.RecordBatch]) -> None:
        self._spec = spec
        self._codes = KeyCodes(max(1, len(spec.keys)))
        pairs = list(zip(spec.rights, rights, strict=True))
        coded = [self._codes.encode([rows.column(key) for key in side.keys]) for side, rows in pairs if side.keys]
        groups = max(1, len(self._codes))
        self._rights: list[SortedRight] = []
        for place, (side, rows) in enumerate(pairs):
            group = coded[place] if side.keys else np.zeros(rows.num_rows, np.int64)
            without = null_keys([rows.column(key) for key in side.keys], side.null_safe)
            self._rights.append(SortedRight(side, rows, _without(group, without), groups))

    def join(self, left: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """One output row for each row of `left`, in its order, in batches of at most `batch_rows`: the left payload,
        then each right side's."""
        winners = self._winners(left)
        payload = left.select(list(self._spec.payload))
        names = [*self._spec.payload, *(name for side in self._spec.rights for name in side.payload)]
        for start in range(0, left.num_rows, batch_rows):
            with measured("output"):
                columns = list(payload.slice(start, batch_rows).columns)
                for right, rows in zip(self._rights, winners, strict=True):
                    columns += [take(column, rows[start : start + batch_rows]) for column in right.payload.columns]
                batch = pa.RecordBatch.from_arrays(columns, names=names)
            yield batch

    def _winners(self, left: pa.RecordBatch) -> list[Int64s]:
        """For each right side int64[m], the row that each left row gets, -1 for none."""
        keys = [left.column(key) for key in self._spec.keys]
        group = self._codes.find(keys) if keys else np.zeros(left.num_rows, np.int64)
        winners = []
        for side, right in zip(self._spec.rights, self._rights, strict=True):
            own = _without(group, null_keys(keys, side.null_safe))
            if side.condition is not None:
                own = _without(own, ~truth(left.column(side.condition)))
            winners.append(right.winners(left, own))
        return winners


def _without(group: Int64s, rows: npt.NDArray[np.bool_] | None) -> Int64s:
    """The codes with -1 for `rows`."""
    return group if rows is None else np.where(rows, -1, group)
