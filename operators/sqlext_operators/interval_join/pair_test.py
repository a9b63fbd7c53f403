"""The residual of an interval join, tested on its candidate pairs."""

from __future__ import annotations

import pyarrow as pa

from sqlext_operators.arrays import Int32s
from sqlext_operators.expressions.evaluation import true_rows
from sqlext_operators.interval_join.spec import IntervalJoinSpec


class PairTest:
    """Tests pairs of rows of two batches, which have the `tested` columns of their sides."""

    def __init__(self, spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        assert spec.residual is not None
        self._residual = spec.residual
        self._columns = [
            {name: rows.column(name) for name in side.tested} for side, rows in ((spec.left, left), (spec.right, right))
        ]

    def passing(self, left: Int32s, right: Int32s) -> tuple[Int32s, Int32s]:
        """The pairs (left[i], right[i]) for which the residual is true. Raises RowOverflowError as `evaluate` does."""
        if not len(left):
            return left, right
        places = [pa.array(left), pa.array(right)]
        taken: dict[str, pa.Array] = {}

        def column(name: str) -> pa.Array:
            if name not in taken:
                side = 0 if name in self._columns[0] else 1
                taken[name] = self._columns[side][name].take(places[side])
            return taken[name]

        passing = true_rows(self._residual, column, len(left))
        return left[passing], right[passing]
