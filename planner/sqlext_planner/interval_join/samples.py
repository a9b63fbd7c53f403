"""Sampled rows of both sides of an interval join, and what they tell about its pairs at planning.

If the tables told too little, where rows go is seen when it runs: tiles by a sample of the real inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import IntervalJoinSpec

from sqlext_planner.exchange.partitioning.choice import PAIR_COST, Demand
from sqlext_planner.interval_join.choice import BROADCAST_SIDES
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoinKind

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlext_operators.arrays import UInt64s


#: Rows of a side that are joined to see how many pairs match: of 16 million, in a few milliseconds.
_JOINED_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class JoinSample:
    """Sampled rows with the keys and values of `spec`, without rows of a key that matches nothing. A row stands for
    `weights` rows of its side."""

    spec: IntervalJoinSpec
    rows: Mapping[Side, pa.RecordBatch]
    weights: Mapping[Side, float]

    @classmethod
    def of(cls, spec: IntervalJoinSpec, tables: Mapping[Side, pa.Table], weights: Mapping[Side, float]) -> JoinSample:
        """A sample of `tables`; their empty periods are no errors, the workers see to these."""
        import pyarrow as pa

        rows: dict[Side, pa.RecordBatch] = {}
        for side, table in tables.items():
            columns = [column.combine_chunks() for column in table.columns]
            rows[side] = pa.RecordBatch.from_arrays(columns, names=table.column_names)
        return cls(replace(spec, empty="drop") if spec.empty == "error" else spec, rows, weights)

    @cached_property
    def hashes(self) -> Mapping[Side, UInt64s]:
        """uint64[n], the hashes of the keys of each side."""
        import numpy as np
        from sqlext_operators.columns.keys import hash_keys

        found: dict[Side, UInt64s] = {}
        for side, rows in self.rows.items():
            keys = [rows.column(name) for name in self.spec.side(side).keys]
            found[side] = hash_keys(keys) if keys else np.zeros(rows.num_rows, np.uint64)
        return found

    def matching_share(self) -> float:
        """The share of all combinations of a left and a right row, whatever their keys, that match or are candidates of
        a residual: each of these costs as much as a pair."""
        from sqlext_operators.interval_join.processor import join_batches

        sides = [replace(self.spec.side(side), keys=(), payload=(), tested=()) for side in SIDES]
        spec = replace(
            self.spec, kind="count", left=sides[0], right=sides[1], null_safe=(), residual=None, candidates=False
        )
        left, right = (_some(self.rows[side]) for side in SIDES)
        matches = sum(sum(batch.column(0).to_pylist()) for batch in join_batches(spec, left, right))
        share: float = matches / max(1, left.num_rows * right.num_rows)
        return share

    def work(self) -> float:
        """About how many rows there are, and pairs whatever their keys."""
        left, right = (self.rows[side].num_rows * self.weights[side] for side in SIDES)
        found: float = left + right + self.matching_share() * left * right
        return found


def join_demand(kind: IntervalJoinKind, sample: JoinSample | None) -> Demand:
    """What the rows of a key need. Rows whose outcome depends on all their matches are owned, and so see all rows of
    the other side; a join in which both sides have such rows keeps its keys together, or cuts them into tiles.

    Pairs that are output cost something: those of a key are all combinations of its rows, times the share that matches
    among sampled rows of any key. Without a sample only rows count.
    """
    whole = None
    if not BROADCAST_SIDES[kind]:
        whole = f"{kind.upper()} JOIN keeps rows of both sides that match nothing: each must meet all rows of its key"
    pair_cost = 0.0 if sample is None or not sample.spec.pairs else PAIR_COST * sample.matching_share()
    return Demand(pair_cost=pair_cost, whole=whole)


def _some(rows: pa.RecordBatch) -> pa.RecordBatch:
    """At most `_JOINED_ROWS` of the rows, from all over them."""
    import numpy as np
    import pyarrow as pa

    count = min(_JOINED_ROWS, rows.num_rows)
    return rows.take(pa.array(np.arange(count) * rows.num_rows // max(1, count)))
