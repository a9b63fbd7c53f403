"""Rows of one side of an interval join on streams: their keys and periods, and how long they can find matches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.keys import hash_keys, null_keys
from sqlext_operators.interval_join.codes import GREATEST, plain_codes, saturating_add
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.matches import values_used
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.periods import periods_of
from sqlext_operators.interval_join.rows import CodedRows
from sqlext_operators.interval_join.spec import IntervalJoinSpec

#: The death of a row that every row to come may match; minus this, that of one that none matches.
NEVER = 1 << 62


def other_side(side: Side) -> Side:
    """The right side for the left one, and the other way round."""
    return "right" if side == "left" else "left"


class StreamRows:
    """Rows of a side with the columns that the join names.

    Raises EmptyPeriodError as the specification says, ValueError for compared values of a type without codes of its
    own (strings, binary, decimals of more than 18 digits), KeyTypeError for a type that cannot be a key.
    """

    def __init__(self, join: IntervalJoinSpec, side: Side, rows: pa.RecordBatch) -> None:
        own = join.side(side)
        self.rows = rows
        self.keys: list[pa.Array] = [rows.column(name) for name in own.keys]
        self._join, self._side = join, side
        self._without = null_keys(self.keys, join.null_safe)
        self._periods = periods_of(own, rows, join.empty)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """uint64[n], a hash of each row's keys; 0 without keys."""
        return hash_keys(self.keys) if self.keys else np.zeros(len(self), np.uint64)

    @cached_property
    def distinct_hashes(self) -> npt.NDArray[np.uint64]:
        """The hashes that occur, ascending."""
        ordered = np.sort(self.hashes)
        is_first = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        found: npt.NDArray[np.uint64] = ordered[is_first]
        return found

    def coded(self, group: Int64s, groups: int) -> CodedRows:
        """The rows with codes of their keys, int64[n] below `groups`, negative for keys that match nothing."""
        if self._without is not None:
            group = np.where(self._without, -1, group)
        encoders = dict.fromkeys(self._join.side(self._side).values, plain_codes)
        return CodedRows(self.rows, group, groups, encoders, self._periods)

    def deaths(self, bounds: Sequence[Sequence[Condition]]) -> Int64s:
        """int64[n], the least watermark at which no row of the other side that is still to come matches a row.

        `bounds` are those of `time_bounds` for each alternative: a row lives until one of them has passed in every
        alternative. NEVER where an alternative has none, -NEVER for rows that match nothing.
        """
        found = np.full(len(self), -NEVER)
        for conditions, own_bounds in zip(self._join.alternatives, bounds, strict=True):
            np.maximum(found, self.death(conditions, own_bounds), out=found)
        return found

    def death(self, conditions: Sequence[Condition], bounds: Sequence[Condition]) -> Int64s:
        """The same for one alternative."""
        ends = np.full(len(self), NEVER)
        for item in bounds:
            np.minimum(ends, self._end(item), out=ends)
        return np.where(self.usable(conditions), ends, -NEVER)

    def usable(self, conditions: Sequence[Condition]) -> npt.NDArray[np.bool_]:
        """bool[n], the rows that may match in an alternative: no NULL is compared, keys and periods are valid."""
        return self._ungrouped.usable(values_used(conditions)[0 if self._side == "left" else 1])

    def codes(self, name: str, shift: int | float = 0) -> Int64s:
        """int64[n], the codes of a value with a shift added; undefined where it is NULL."""
        return self._ungrouped.codes(name, shift)

    def is_null(self, name: str) -> npt.NDArray[np.bool_]:
        """bool[n], where a value is NULL."""
        return np.asarray(self.rows.column(name).is_null().to_numpy(zero_copy_only=False))

    @cached_property
    def _ungrouped(self) -> CodedRows:
        return self.coded(np.zeros(len(self), np.int64), 1)

    def _end(self, bound: Condition) -> Int64s:
        """int64[n], the least time of the other side that is beyond a bound."""
        assert isinstance(bound.shift, int | float)
        if self._side == "left":
            last = self.codes(bound.left, bound.shift)
        else:  # time + shift <= value, where sums saturate
            value = self.codes(bound.right)
            last = np.where(value == GREATEST, GREATEST, self.codes(bound.right, -bound.shift))
        return last if bound.is_strict else saturating_add(last, 1)
