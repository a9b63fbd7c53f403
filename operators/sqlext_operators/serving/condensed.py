"""Long windows of a request: rows of a key condensed once and for all requests, so that a window over a million rows
reads a few hundred.

A run of a store does not change, and neither do the rows of a key in it. They are cut into leaves of some rows, and
leaves into larger blocks; each block is condensed to a few rows of partial calls when a request first reaches it
(`window.condense`). A span is covered by the largest blocks that are in it, and by the rows themselves at its ends.
Nothing is subtracted, and rows that come late are in another run, with blocks of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.window.condense import PartialCall, condensed

#: Rows of a leaf, and blocks of a larger one.
LEAF, _FAN = 256, 16
#: Leaves that leave more than this share of their rows are not worth it, as where most values of `distinct_count`
#: differ. Then larger ones are tried, of which fewer make a block: each of them has many rows.
_MOST_LEFT = 0.25
_LARGER = ((4_096, 4), (65_536, 4))
#: How many leaves are tried.
_TRIED = 4
_BLOCK = "__block"


@dataclass(frozen=True)
class Recipe:
    """What rows are condensed to: columns of partial calls; with `category` for each value of this column."""

    partials: tuple[PartialCall, ...]
    category: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of condensed rows."""
        return (*(() if self.category is None else (self.category,)), *(partial.column for partial in self.partials))

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of ordinary rows."""
        values = [partial.values(batch.column, batch.num_rows) for partial in self.partials]
        categories = [] if self.category is None else [batch.column(self.category)]
        return pa.RecordBatch.from_arrays([*categories, *values], names=list(self.names))


@dataclass(frozen=True)
class _Level:
    """Blocks of one size: those of block i are the rows [starts[i], starts[i + 1])."""

    rows: pa.RecordBatch
    starts: Int64s

    @classmethod
    def of(cls, numbers: Int64s, batch: pa.RecordBatch, recipe: Recipe) -> _Level:
        """The level of rows whose blocks are `numbers`, 0, 1, 2 ... in this order, each of them with a row."""
        names = [_BLOCK, *recipe.names]
        keys = names[: len(names) - len(recipe.partials)]
        rows = pa.RecordBatch.from_arrays([pa.array(numbers), *batch.columns], names=names)
        few = condensed(rows, keys, recipe.partials)
        blocks = few.column(_BLOCK).to_numpy()
        by_block = np.argsort(blocks, kind="stable")
        starts = np.searchsorted(blocks[by_block], np.arange(int(blocks.max()) + 2))
        return cls(few.take(pa.array(by_block)).select(names[1:]), starts)

    def numbers(self) -> Int64s:
        """int64[rows], the block of each row."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class CondensedSlice:
    """The rows of one key in a run, and their blocks."""

    def __init__(self, rows: pa.RecordBatch, recipe: Recipe) -> None:
        self.rows, self._recipe = rows, recipe
        self._levels: list[_Level] = []
        self._leaf, self._fan = LEAF, _FAN
        for self._leaf, self._fan in ((LEAF, _FAN), *_LARGER):
            whole = rows.num_rows // self._leaf * self._leaf
            some = min(whole, _TRIED * self._leaf)
            if some and self._leaves(some).rows.num_rows <= _MOST_LEFT * some:
                self._make(self._leaves(whole))
                break

    @property
    def is_worth_it(self) -> bool:
        """Whether its blocks have few rows."""
        return bool(self._levels)

    @property
    def nbytes(self) -> int:
        """The Arrow bytes of the blocks."""
        return int(sum(level.rows.nbytes + level.starts.nbytes for level in self._levels))

    def _leaves(self, rows: int) -> _Level:
        columns = self._recipe.columns(self.rows.slice(0, rows))
        return _Level.of(np.arange(rows) // self._leaf, columns, self._recipe)

    def _make(self, leaves: _Level) -> None:
        self._levels.append(leaves)
        while len(self._levels[-1].starts) - 1 >= 2 * self._fan:
            below = self._levels[-1]
            blocks = (len(below.starts) - 1) // self._fan
            most = int(below.starts[blocks * self._fan])
            numbers = below.numbers()[:most] // self._fan
            self._levels.append(_Level.of(numbers, below.rows.slice(0, most), self._recipe))

    def cover(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch, bool]]:
        """What the rows [start, stop) are: (the first row's place, rows, whether they are condensed)."""
        leaf = self._leaf
        first, last = -(-start // leaf), stop // leaf
        if first >= last:
            yield start, self.rows.slice(start, stop - start), False
            return
        if start < first * leaf:
            yield start, self.rows.slice(start, first * leaf - start), False
        yield from self._blocks(first, last)
        if last * leaf < stop:
            yield last * leaf, self.rows.slice(last * leaf, stop - last * leaf), False

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch, bool]]:
        """The blocks of the leaves [first, last): neighbours of one level are one batch."""
        fan = self._fan
        while first < last:
            level, size = 0, 1
            while (
                level + 1 < len(self._levels)
                and first % (size * fan) == 0
                and first + size * fan <= min(last, (len(self._levels[level + 1].starts) - 1) * size * fan)
            ):
                level, size = level + 1, size * fan
            until = (first // (size * fan) + 1) * size * fan if level + 1 < len(self._levels) else last
            count = (min(until, last) - first) // size
            found, number = self._levels[level], first // size
            low, high = int(found.starts[number]), int(found.starts[number + count])
            yield first * self._leaf, found.rows.slice(low, high - low), True
            first += count * size
