"""The rows of one side as integers: key groups, codes of the compared values, sorted orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int32s, Int64s, offsets_of
from sqlext_operators.columns.keys import validity
from sqlext_operators.exchange.profile import measured
from sqlext_operators.interval_join.codes import Encoder, RowPeriods
from sqlext_operators.interval_join.tiles import UNTILED, Tiles
from sqlext_operators.kernels.sequence_sort import group_rows, sort_groups

#: Sorting by groups costs about as much for a row as for so many groups.
_FEW_GROUPS = 8


@dataclass(frozen=True)
class Sorted:
    """Rows by (group, code): rows int32[k], their codes int64[k]; group g takes places starts[g]:starts[g + 1]."""

    rows: Int32s
    codes: Int64s
    starts: Int64s


class CodedRows:
    """One side's rows, at most 2^31, ready to be sorted by any of its values.

    `group` int64[n] are dense codes below `groups` of the keys, negative for keys that match nothing. `tile` int64[n],
    with `tiles`, is the tile that a copy of a row belongs to. Memory besides the rows: 8 bytes a row for the groups, 8
    for each value whose codes are not its own bytes and for each shift, 12 for each order.
    """

    def __init__(
        self,
        rows: pa.RecordBatch,
        group: Int64s,
        groups: int,
        encoders: Mapping[str, Encoder],
        periods: RowPeriods,
        tiles: tuple[Tiles, Int64s] | None = None,
    ) -> None:
        self.rows = rows
        self.group = group
        self._groups = groups
        self._encoders = encoders
        self._periods = periods
        self._tiles = tiles
        usable = group >= 0
        self._usable = usable if periods.valid is None else usable & periods.valid
        self._codes: dict[tuple[str, int | float], Int64s] = {}
        self._orders: dict[tuple[str, frozenset[str]], Sorted] = {}

    def __len__(self) -> int:
        return len(self.group)

    def codes(self, name: str, shift: int | float) -> Int64s:
        """int64[n], the codes of a value with a shift added; undefined where it is NULL."""
        found = self._codes.get((name, shift))
        if found is None:
            column = self._periods.ends.get(name)
            found = self._encoders[name](self.rows.column(name) if column is None else column, shift)
            self._codes[(name, shift)] = found
        return found

    def ordered(self, name: str, used: frozenset[str]) -> Sorted:
        """The rows that may match (none of their values `used` is NULL) by group and the value `name`."""
        found = self._orders.get((name, used))
        if found is None:
            with measured("sort"):
                found = self._sorted(name, used)
            self._orders[(name, used)] = found
        return found

    def windows(self, name: str, used: frozenset[str]) -> tuple[Int32s, Int64s]:
        """(rows, codes) of `ordered`. A few rows of many groups are sorted without a look at the groups."""
        if self._groups <= _FEW_GROUPS * len(self):
            found = self.ordered(name, used)
            return found.rows, found.codes
        with measured("sort"):
            chosen = np.flatnonzero(self.usable(used))
            codes = self.codes(name, 0)[chosen]
            order = np.lexsort((codes, self.group[chosen]))
            return chosen[order].astype(np.int32), codes[order]

    def probes(self, name: str, used: frozenset[str]) -> Sorted:
        """Like `ordered`, for the copies in the tile of their value `name`."""
        copies = self.ordered(name, used)
        if self._tiles is None:
            return copies
        tiles, tile = self._tiles
        own = tile[copies.rows]
        kept = (own == UNTILED) | (own == tiles.of(copies.codes))
        if kept.all():
            return copies
        return Sorted(copies.rows[kept], copies.codes[kept], offsets_of(kept)[copies.starts])

    def resorted(self, order: Sorted, name: str) -> tuple[Sorted, Int32s]:
        """(the rows of `order` by group and the value `name`, the place there of each place in `order`)."""
        places = sort_rows(self.group[order.rows], self.codes(name, 0)[order.rows], self._groups)
        rank = np.empty(len(order.rows), np.int32)
        rank[places.rows] = np.arange(len(order.rows), dtype=np.int32)
        return Sorted(order.rows[places.rows], places.codes, order.starts), rank

    def usable(self, used: frozenset[str]) -> Bools:
        """bool[n], the rows that may match if the values `used` are compared: none of them is NULL."""
        usable = self._usable
        for value in used:
            mask = validity(self.rows.column(value))
            if len(mask):
                usable = usable & mask.view(np.bool_)
        return usable

    def _sorted(self, name: str, used: frozenset[str]) -> Sorted:
        usable = self.usable(used)
        if usable.all():
            return sort_rows(self.group, self.codes(name, 0), self._groups)
        chosen = np.flatnonzero(usable).astype(np.int32)
        found = sort_rows(self.group[chosen], self.codes(name, 0)[chosen], self._groups)
        return Sorted(chosen[found.rows], found.codes, found.starts)


def sort_rows(group: Int64s, codes: Int64s, groups: int) -> Sorted:
    """All rows by (group, code), equal ones in their order; no group is negative."""
    starts = np.empty(groups + 1, np.int64)
    rows = np.empty(len(group), np.int32)
    keys = np.empty(len(group), np.int64)
    group_rows(group, codes, np.arange(groups), starts, rows, keys)
    sort_groups(starts, keys, rows)
    return Sorted(rows, keys, starts)
