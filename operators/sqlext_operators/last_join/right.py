"""One right side of a partition, sorted so that the last match of a left row is found by binary search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.columns.codes import order_codes
from sqlext_operators.columns.compact import plain_column
from sqlext_operators.columns.keys import LeftCodes, validity, value_codes
from sqlext_operators.kernels.lookups import group_ranges
from sqlext_operators.kernels.sequence_sort import group_rows, sort_groups
from sqlext_operators.last_join.kernels import (
    BLOCK,
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    NULL_SAFE_EQ,
    build_trees,
    narrow,
    scan_last,
    skip_nulls,
)
from sqlext_operators.last_join.spec import JoinComparison, RightSide

_OPERATORS = {"=": EQ, "<=>": NULL_SAFE_EQ, "<>": NE, "<": LT, "<=": LE, ">": GT, ">=": GE}
#: Operators that a binary search answers, and what they become if both sides change their sign.
_SEARCHED = {"=": EQ, "<": GT, "<=": GE, ">": LT, ">=": LE}
_LEAST = np.iinfo(np.int64).min


class SortedRight:
    """The right rows of one partition, ready to be matched.

    `rows` are in input order, `group` int64[n] their key codes, dense below `groups` and negative for keys that match
    no left row. At most 2^31 rows. Memory besides the rows: about 60 bytes a row while they are sorted, 12 bytes a
    row and, for each scanned comparison, 11 a row to keep.
    """

    def __init__(self, spec: RightSide, rows: pa.RecordBatch, group: Int64s, groups: int) -> None:
        self.payload = rows.select(list(spec.payload))
        self._descending = spec.descending[:1] == (True,)
        self._left_codes: LeftCodes = order_codes
        self._sort(group, groups, [plain_column(rows.column(name)) for name in spec.order], spec.descending)
        searched = [item for item in spec.comparisons if (item.right,) == spec.order[:1] and item.operator in _SEARCHED]
        scanned = [item for item in spec.comparisons if item not in searched]
        self._searched = tuple(searched)
        self._scan = _Scan(scanned, rows, self._rows) if scanned else None

    def winners(self, left: pa.RecordBatch, group: Int64s) -> Int64s:
        """int64[m], the row of `payload` that each left row gets, -1 for none; `group` are the left rows' key codes
        (negative: no match)."""
        low, high = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        group_ranges(group, self._starts, low, high)
        if self._searched and self._nulls is not None:
            skip_nulls(group, self._nulls, low)
        for item in self._searched:
            column = plain_column(left.column(item.left))
            value = np.ascontiguousarray(self._left_codes(column))
            operator = _SEARCHED[item.operator] if self._descending else _OPERATORS[item.operator]
            narrow(self._rank, operator, ~value if self._descending else value, validity(column), low, high)
        places = np.where(high > low, high - 1, -1) if self._scan is None else self._scan.last(left, low, high)
        if len(self._rows) == 0:
            return places
        return np.where(places >= 0, self._rows[places], -1)

    def _sort(self, group: Int64s, groups: int, keys: Sequence[pa.Array], descending: Sequence[bool]) -> None:
        """Rows by (group, each key with NULL first, input order), without those that match nothing."""
        rank = np.zeros(len(group), np.int64)
        if keys:
            codes, self._left_codes = value_codes(keys[0])
            rank = ~codes if descending[0] else np.ascontiguousarray(codes)
        usable = group >= 0
        chosen = None if usable.all() else np.flatnonzero(usable)
        if len(keys) > 1:
            later = np.lexsort(
                [part for key in zip(keys[:0:-1], descending[:0:-1], strict=True) for part in _parts(*key)]
            )
            chosen = later[usable[later]]
        self._nulls: Int64s | None = None
        if keys and keys[0].null_count:
            null = validity(keys[0]) == 0
            rank = np.where(null, _LEAST, rank)
            chosen = np.flatnonzero(usable) if chosen is None else chosen
            chosen = np.concatenate([chosen[null[chosen]], chosen[~null[chosen]]])
            self._nulls = np.bincount(group[usable & null], minlength=groups).astype(np.int64)
        if chosen is not None:
            group, rank = group[chosen], rank[chosen]
        self._starts = np.empty(groups + 1, np.int64)
        self._rank = np.empty(len(group), np.int64)
        rows = np.empty(len(group), np.int32)
        group_rows(group, rank, np.arange(groups), self._starts, rows, self._rank)
        if keys:
            sort_groups(self._starts, self._rank, rows)
        self._rows = rows if chosen is None else chosen[rows]


def _parts(key: pa.Array, descending: bool) -> tuple[Int64s, UInt8s]:
    """A further order key for np.lexsort: its codes, and above them whether it is not NULL."""
    codes, valid = order_codes(key), _mask(key)
    return np.where(valid, ~codes if descending else codes, 0), valid


class _Scan:
    """The comparisons that are tested row by row, over the sorted rows."""

    def __init__(
        self, comparisons: Sequence[JoinComparison], rows: pa.RecordBatch, order: npt.NDArray[np.integer]
    ) -> None:
        count, width = len(comparisons), len(order)
        self._comparisons = tuple(comparisons)
        self._operators = np.array([_OPERATORS[item.operator] for item in comparisons], np.int8)
        self._left_codes = []
        self._codes = np.empty((count, width), np.int64)
        self._valid = np.empty((count, width), np.uint8)
        size = 1
        while size * BLOCK < width:
            size *= 2
        self._least = np.empty((count, 2 * size), np.int64)
        self._greatest = np.empty((count, 2 * size), np.int64)
        for place, item in enumerate(comparisons):
            column = plain_column(rows.column(item.right))
            codes, left_codes = value_codes(column)
            self._left_codes.append(left_codes)
            self._codes[place] = codes[order]
            self._valid[place] = _mask(column)[order]
            build_trees(self._codes[place], self._valid[place], self._least[place], self._greatest[place])

    def last(self, left: pa.RecordBatch, low: Int64s, high: Int64s) -> Int64s:
        """The last sorted row of each range [low, high) that satisfies all comparisons, -1 for none."""
        columns = [plain_column(left.column(item.left)) for item in self._comparisons]
        codes = np.stack([code(column) for code, column in zip(self._left_codes, columns, strict=True)])
        valid = np.stack([_mask(column) for column in columns])
        out = np.empty(len(low), np.int64)
        scan_last(self._operators, codes, valid, self._codes, self._valid, self._least, self._greatest, low, high, out)
        return out


def _mask(column: pa.Array) -> UInt8s:
    """uint8[n], 0 for NULL, for every row."""
    mask = validity(column)
    return mask if len(mask) == len(column) else np.ones(len(column), np.uint8)
