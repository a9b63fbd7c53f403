"""Output batches of an interval join: payload columns of pairs, and of rows that all their matches decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.exchange.profile import measured
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW, IntervalJoinSpec

#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20
_LONG = pa.int64()

#: Rows of the output: all, or only those that (do not) wait for their copies in other tiles.
Part = Literal["all", "decided", "undecided"]
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class Output:
    """Makes batches of `schema` with at most `batch_rows` rows and about 64 MB.

    `left` and `right` are schemas that have the payload columns. `row` is the column of the sides' rows that has a
    number where only all copies of a row together decide. Then every kind but "inner" gets two more columns, int64
    ROW (NULL for pairs and for rows that are decided here) and MATCHES, the copy's own matches. An undecided row is
    output once for each copy, with the other side and COUNT NULL: left, right, full and anti need it if the matches of
    all copies are 0, semi if they are not, count with their sum if that is not 0. Counts without a payload are added up
    at once, copies or not. `part` leaves out either the undecided rows, and with them the two columns, or all others;
    undecided rows alone are found without going through pairs.
    """

    def __init__(
        self,
        spec: IntervalJoinSpec,
        left: pa.Schema,
        right: pa.Schema,
        batch_rows: int,
        row: str | None = None,
        part: Part = "all",
    ) -> None:
        self._spec = spec
        self._part = part
        self.has_pairs = spec.pairs and part != "undecided"
        self._payload = {
            "left": pa.schema([left.field(name) for name in spec.left.payload]),
            "right": pa.schema([right.field(name) for name in spec.right.payload] if spec.pairs else []),
        }
        self._batch_rows = batch_rows
        self._row = row
        has_row = row is not None and spec.kind != "inner" and part != "decided"
        self._extra = [pa.field(ROW, _LONG), pa.field(MATCHES, _LONG)] if has_row else []
        count = [pa.field(COUNT, _LONG)] if spec.kind == "count" else []
        self.schema = pa.schema([*self._payload["left"], *self._payload["right"], *count, *self._extra])

    def numbers_for(self, side: Side, count: int) -> int:
        """The first of `count` numbers for a batch of a side, for outputs that number rows."""
        return 0

    def number_from(self, side: Side, start: int) -> None:
        """The rows of the side's batch that is joined now have the numbers from `start` on."""

    def pair_rows(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """How many pairs fit into one batch."""
        return self._fitting(_width(left) + _width(right))

    def pairs(self, left: pa.RecordBatch, left_rows: Rows, right: pa.RecordBatch, right_rows: Rows) -> pa.RecordBatch:
        """One batch of pairs of rows."""
        columns = self._taken("left", left, left_rows) + self._taken("right", right, right_rows)
        return self._batch(columns + [_nulls(field.type, len(left_rows)) for field in self._extra], len(left_rows))

    def decided(self, side: Side, rows: pa.RecordBatch, counts: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """The rows of a side that are output besides pairs, by how many matches they have, and its undecided ones."""
        if self._spec.kind == "count" and not self._spec.left.payload:
            total = int(counts.sum())
            if total:
                yield self._batch([pa.array([total]), *(_nulls(field.type, 1) for field in self._extra)], 1)
            return
        undecided = np.zeros(rows.num_rows, np.bool_)
        if self._row is not None:
            undecided = rows.column(self._row).is_valid().to_numpy(zero_copy_only=False)
        chosen = counts == 0 if self._spec.keeps(side) else counts > 0
        if self._part != "undecided":
            yield from self._chunks(side, rows, counts, np.flatnonzero(chosen & ~undecided), partial=False)
        if self._part != "decided":
            yield from self._chunks(side, rows, counts, np.flatnonzero(undecided), partial=True)

    def _chunks(
        self, side: Side, rows: pa.RecordBatch, counts: npt.NDArray[np.int64], places: Rows, *, partial: bool
    ) -> Iterator[pa.RecordBatch]:
        step = self._fitting(_width(rows))
        for start in range(0, len(places), step):
            chunk = places[start : start + step]
            columns = []
            for name in ("left", "right"):
                if name == side:
                    columns += self._taken(side, rows, chunk)
                else:
                    columns += [_nulls(field.type, len(chunk)) for field in self._payload[name]]
            if self._spec.kind == "count":
                columns.append(_nulls(_LONG, len(chunk)) if partial else pa.array(counts[chunk]))
            if self._extra and partial and self._row is not None:
                columns += [rows.column(self._row).take(pa.array(chunk)), pa.array(counts[chunk])]
            elif self._extra:
                columns += [_nulls(field.type, len(chunk)) for field in self._extra]
            yield self._batch(columns, len(chunk))

    def _taken(self, side: Side, rows: pa.RecordBatch, places: Rows) -> list[pa.Array]:
        names = self._payload[side].names
        with measured("output"):
            indices = pa.array(places) if names else None
            return [rows.column(name).take(indices) for name in names]

    def _batch(self, columns: list[pa.Array], count: int) -> pa.RecordBatch:
        if not columns:
            return rows_without_columns(count)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _fitting(self, width: int) -> int:
        return max(1, min(self._batch_rows, _OUTPUT_BYTES // max(1, width)))


def _width(rows: pa.RecordBatch) -> int:
    return int(rows.nbytes // max(1, rows.num_rows))


def _nulls(kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind)
