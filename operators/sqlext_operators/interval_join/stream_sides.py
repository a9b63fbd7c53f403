"""What an interval join on streams has to compute, as its operators read it; and the rows of one side: their keys and
periods, and how long they can find matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.keys import null_keys, row_hashes
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.stream import Late, Progress, admitted
from sqlext_operators.interval_join.codes import GREATEST, periods_of, plain_codes, saturating_add
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.matches import values_used
from sqlext_operators.interval_join.passes import SIDES, Side, longest_life, other_side, time_bounds
from sqlext_operators.interval_join.rows import CodedRows
from sqlext_operators.interval_join.spec import IntervalJoinSpec

#: The death of a row that every row to come may match; minus this, that of one that none matches.
NEVER = 1 << 62


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
        return row_hashes(self.rows, self._join.side(self._side).keys)

    @cached_property
    def distinct_hashes(self) -> npt.NDArray[np.uint64]:
        """The hashes that occur, ascending."""
        return np.unique(self.hashes)

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


@dataclass(frozen=True)
class OpenPeriod:
    """A period that comes as two rows: an opening one, whose end is NULL, and a closing one with its end.

    `start` and `end` are columns of the side, of the type of its time, which is ``coalesce(end, start)``. A closing row
    closes the period whose opening row has equal keys of the join and equal columns `key`. Its columns `closing`
    replace those of the opening row: the end, the time, and what else is about the end.
    """

    start: str
    end: str
    key: tuple[str, ...]
    closing: tuple[str, ...]


@dataclass(frozen=True)
class StreamSide:
    """One side of a join on streams.

    `columns` are the types of the columns on the wire, by name. `time` is the one with the watermark, an int64 or a
    timestamp; None for a table, whose rows all come before the first step with a watermark. `times` are the values
    that are never below the time where they are not NULL; they are of its type. `open`: the period whose end is not
    known when a row comes first.
    """

    columns: pa.Schema
    time: str | None = None
    times: tuple[str, ...] = ()
    open: OpenPeriod | None = None


@dataclass(frozen=True)
class StreamJoin:
    """A join of the specification `join` over two streams, or a stream and a table. `late` as in exchange/stream.py.

    Where keys have places, a row of the side `owned` has its results in one bucket, and rows of the other side come to
    all buckets that need them. Copies have the column `placed.COPY`.

    The algorithm for pairs is that of slices for rows of before. Raises ValueError for the kind "count", for a table
    whose rows have to be decided (left, right, full, anti), for two tables, for an owned side beside one whose rows are
    decided, and for an owned side with open periods: the two rows of a period may have two owners.
    """

    join: IntervalJoinSpec
    left: StreamSide
    right: StreamSide
    late: Late = "drop"
    batch_rows: int = 262_144
    owned: Side | None = None

    def __post_init__(self) -> None:
        if self.join.kind == "count":
            raise ValueError("an interval join on streams does not count")
        if self.left.time is None and self.right.time is None:
            raise ValueError("a join on streams has a stream")
        if any(self.side(side).time is None and self.join.keeps(side) for side in SIDES):
            raise ValueError("rows of a table are never decided")
        for side in SIDES:
            period, own = self.side(side).open, self.join.side(side)
            if period is not None and (self.side(side).time is None or (period.start, period.end) not in own.periods):
                raise ValueError("an open period is one of a stream's periods")
            if period is not None and self.join.keeps(side):
                raise ValueError("rows of open periods are closed before they are decided")
        if self.owned is not None and self.join.decides(other_side(self.owned)):
            raise ValueError("rows that are decided have one owner")
        if self.owned is not None and self.side(self.owned).open is not None:
            raise ValueError("the two rows of an open period may have two owners")

    def side(self, side: Side) -> StreamSide:
        """One side."""
        return self.left if side == "left" else self.right

    def delay(self, side: Side) -> int | None:
        """How long after its time a row of a side is in a result at most, in its unit; None: no fixed time."""
        if self.left.open is not None or self.right.open is not None:  # a period may be closed at any time
            return None
        bounds, times = self.bounds(side), self.side(side).times
        if bounds is None:
            return 0
        longest = longest_life(side, bounds, times)
        ends = {end for _, end in self.join.side(side).periods}
        # the end of a point is one unit after the time that it has
        later = 1 if self.join.empty == "point" and ends.intersection(times) else 0
        return None if longest is None else longest + later

    def new_rows(self, side: Side, new: Sequence[Block]) -> list[pa.RecordBatch]:
        """The new rows of a side; of owned rows no copies, which are of no use here."""
        batches = [block.batch for block in new if block.tag == SIDES.index(side)]
        if side == self.owned:
            batches = [without_copies(batch) for batch in batches]
        return [batch for batch in batches if batch.num_rows]

    def in_time(
        self, side: Side, batches: Sequence[pa.RecordBatch], before: int | None, progress: Progress
    ) -> tuple[pa.RecordBatch, int | None]:
        """The new rows of a side (one batch at least) that are not below the watermark `before`, and the least of their
        times; None for a table. Counts rows and raises as `admitted`."""
        own = self.side(side)
        if own.time is None:
            return whole(own.columns, batches), None
        found = admitted(batches, own.time, before, progress, fails=self.late == "fail")
        batch = found.batch.select(own.columns.names)
        if len(found.rows) < batch.num_rows:
            batch = take_rows(batch, found.rows)
        return batch, int(found.times.min(initial=NEVER))

    def bounds(self, side: Side) -> tuple[tuple[Condition, ...], ...] | None:
        """For each alternative, what bounds how long a row of a side finds matches (`time_bounds`); None if no row of
        the other side comes later."""
        other = self.side(other_side(side))
        if other.time is None:
            return None
        return tuple(
            time_bounds(side, conditions, other.times, *self.join.alternative_periods(conditions))
            for conditions in self.join.alternatives
        )
