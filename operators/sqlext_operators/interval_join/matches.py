"""The pairs of one pass: slices of the sorted probe rows, enumerated or counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from sqlext_operators.arrays import Int32s, Int64s, UInt8s
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.kernels.matches import (
    count_covers,
    count_filtered,
    count_ranked_probes,
    count_ranked_windows,
    cut_slices,
    fill_filtered_pairs,
    fill_pairs,
    link_slices,
)
from sqlext_operators.interval_join.passes import Pass
from sqlext_operators.interval_join.rows import CodedRows, Sorted
from sqlext_operators.interval_join.spec import PairAlgorithm
from sqlext_operators.interval_join.sweep.slices import SweptSlices, sweep_slices
from sqlext_operators.kernels.lookups import group_ranges

_ALL = np.iinfo(np.int64).max
_NONE = np.empty(0, np.int64)
#: How many candidates of a row the first round of `undecided_pairs` takes, and the growth from round to round.
_FIRST_ROUND = 4
_ROUND_GROWTH = 4


@dataclass(frozen=True)
class Buffers:
    """Pairs of rows, int32[capacity] a side, reused from chunk to chunk: fresh memory costs 3 times as much."""

    window: Int32s
    probe: Int32s

    @classmethod
    def of(cls, capacity: int) -> Buffers:
        return cls(np.empty(capacity, np.int32), np.empty(capacity, np.int32))


@dataclass(frozen=True)
class _Comparisons:
    """ours[c, i] < theirs[c, j], or equal unless strict[c], for windows i and places j."""

    ours: npt.NDArray[np.int64]
    theirs: npt.NDArray[np.int64]
    strict: UInt8s


class Probes(Protocol):
    """The rows that the windows of a pass look at, in the order of (group, probe value)."""

    @property
    def order(self) -> Sorted: ...

    def ranks(self, condition: Condition) -> Int64s:
        """int64[places], what a condition on the probe value compares of the row at each place."""

    def residual(self) -> Int64s:
        """int64[residual conditions, places], what these compare; complemented where they bound it from above."""


class CodedProbes:
    """The probe side of a pass; residual conditions are looked at when someone asks for them."""

    def __init__(self, item: Pass, rows: CodedRows, used: frozenset[str]) -> None:
        self._item, self._rows = item, rows
        self.order = rows.probes(item.probe, used)

    def ranks(self, condition: Condition) -> Int64s:
        return self.ranks_in(self.order, condition)

    def ranks_in(self, order: Sorted, condition: Condition) -> Int64s:
        """The same in the places of another order, by the condition's value."""
        shift = shift_of(self._item, condition, "probe")
        return self._codes(condition, order) if shift else order.codes

    def residual(self) -> Int64s:
        theirs = np.empty((len(self._item.residual), len(self.order.rows)), np.int64)
        for place, condition in enumerate(self._item.residual):
            theirs[place] = self._codes(condition, self.order) ^ _flip(self._item, condition)
        return theirs

    def resorted(self, name: str) -> tuple[Sorted, Int32s]:
        """`CodedRows.resorted` of the order."""
        return self._rows.resorted(self.order, name)

    def _codes(self, condition: Condition, order: Sorted) -> Int64s:
        shift = shift_of(self._item, condition, "probe")
        return self._rows.codes(_probe_name(self._item, condition), shift)[order.rows]


class WindowSlices:
    """The windows of a pass as slices [low, high) of the places of the probe rows, one for each of `rows`.

    `used` are the values of the window side that the pass's alternative compares: NULL in one of them matches nothing.
    """

    def __init__(self, item: Pass, window: CodedRows, used: frozenset[str], probes: Probes) -> None:
        self._item, self._window, self._probes = item, window, probes
        leading = _window_name(item, (item.lowers or item.uppers)[0])
        self.rows, codes = window.windows(leading, used)
        self._group = window.group[self.rows]
        self.low, self.high = self.group_ranges()
        for condition in item.lowers + item.uppers:
            near = _window_name(item, condition) == leading
            is_sorted = near and not shift_of(item, condition, "window")
            value = codes if is_sorted else self.codes(condition)
            self._cut(condition, probes.ranks(condition), value, near, self.low, self.high)

    def group_ranges(self) -> tuple[Int64s, Int64s]:
        """(low, high) of all rows of each window's group."""
        low, high = np.empty(len(self.rows), np.int64), np.empty(len(self.rows), np.int64)
        group_ranges(self._group, self._probes.order.starts, low, high)
        return low, high

    def cut(self, condition: Condition, rank: Int64s, low: Int64s, high: Int64s) -> None:
        """Cut slices of places that are sorted by what the condition compares of the probe side, `rank`."""
        self._cut(condition, rank, self.codes(condition), True, low, high)

    def codes(self, condition: Condition) -> Int64s:
        """int64[windows], what a condition compares of the window side."""
        shift = shift_of(self._item, condition, "window")
        return self._window.codes(_window_name(self._item, condition), shift)[self.rows]

    def residual(self) -> Int64s:
        """int64[residual conditions, windows], what these compare, as in `Probes.residual`."""
        ours = np.empty((len(self._item.residual), len(self.rows)), np.int64)
        for place, condition in enumerate(self._item.residual):
            # ~ reverses the order, exactly
            ours[place] = self.codes(condition) ^ _flip(self._item, condition)
        return ours

    def _cut(self, condition: Condition, rank: Int64s, value: Int64s, near: bool, low: Int64s, high: Int64s) -> None:
        """Cut slices of places, which are sorted by `rank`, by the windows' values."""
        cut_slices(rank, value, _is_lower(self._item, condition), condition.is_strict, near, low, high)


class PassMatches:
    """The matches of a pass between two sides: the slice of each window row, and the residual to test in it.

    `used` are the values of the (window, probe) side that the pass's alternative compares: NULL in one of them matches
    nothing.
    """

    def __init__(
        self,
        item: Pass,
        window: CodedRows,
        probe: CodedRows,
        used: tuple[frozenset[str], frozenset[str]],
        algorithm: PairAlgorithm = "slices",
    ) -> None:
        self._item, self._algorithm = item, algorithm
        self._probes = CodedProbes(item, probe, used[1])
        self._windows = WindowSlices(item, window, used[0], self._probes)
        self._compared: _Comparisons | None = None

    def pairs(self, buffers: Buffers) -> Iterator[int]:
        """Fill the buffers with rows of matching pairs; gives how many there are, more than 0 each time."""
        if self._algorithm == "slices":
            yield from self._filled(None, self._windows.low, self._windows.high, buffers)
            return
        head = (self._windows.rows, self._windows.low, self._windows.high, self._probes.order.rows)
        tested = self._comparisons() if self._item.residual else None
        residual = None if tested is None else (tested.ours, tested.theirs, tested.strict)
        lazy = self._algorithm == "lazy-join-by-s"
        yield from sweep_slices(SweptSlices(*head), residual, buffers.window, buffers.probe, lazy)

    def undecided_pairs(self, buffers: Buffers, decided: Int64s) -> Iterator[int]:
        """Like `pairs`, but in rounds and only until a window's row is decided: whoever iterates sets `decided`,
        int64[rows of the side], to something else than 0 for rows of which no more pairs are wanted.

        A round takes the next places of each slice, `_ROUND_GROWTH` times as many as the round before, so that a row
        with many candidates of which many will do costs a few of them.
        """
        rows, step = self._windows.rows, _FIRST_ROUND
        places = np.flatnonzero((self._windows.low < self._windows.high) & (decided[rows] == 0))
        low = self._windows.low[places]
        while len(places):
            end = self._windows.high[places]
            stop = np.minimum(low + step, end)
            yield from self._filled(places, low, stop, buffers)
            kept = (stop < end) & (decided[rows[places]] == 0)
            places, low, step = places[kept], stop[kept], step * _ROUND_GROWTH

    def _filled(self, places: Int64s | None, low: Int64s, high: Int64s, buffers: Buffers) -> Iterator[int]:
        """`pairs` of the slices [low, high) of some windows, None for all."""
        state = np.zeros(2, np.int64)
        tested = self._comparisons() if self._item.residual else None
        rows = self._windows.rows if places is None else self._windows.rows[places]
        head = (rows, low, high, self._probes.order.rows)
        while state[0] < len(rows):
            if tested is None:
                count = fill_pairs(*head, state, buffers.window, buffers.probe)
            else:
                ours = tested.ours if places is None else np.ascontiguousarray(tested.ours[:, places])
                parts = (ours, tested.theirs, tested.strict)
                count = fill_filtered_pairs(*head, *parts, state, buffers.window, buffers.probe)
            if count:
                yield count

    def add_counts(self, windows: Int64s | None, probes: Int64s | None, *, exactly: bool) -> None:
        """Add how many pairs each row of a side is in, int64[rows of the side] each, None if it is not wanted.

        Unless `exactly`, a count may be smaller as long as it is positive for a row with a pair. Costs
        O((n + m) log m) whatever the number of pairs, unless the residual compares several of the probe side's values:
        then it goes through the pairs, up to the first of each window if that is enough.
        """
        window_rows, probe_rows = self._windows.rows, self._probes.order.rows
        for_windows = None if windows is None else np.zeros(len(window_rows), np.int64)
        for_probes = None if probes is None else np.zeros(len(probe_rows), np.int64)
        self._count(for_windows, for_probes, exactly)
        if windows is not None and for_windows is not None:
            windows[window_rows] += for_windows
        if probes is not None and for_probes is not None:
            probes[probe_rows] += for_probes

    def _count(self, windows: Int64s | None, probes: Int64s | None, exactly: bool) -> None:
        low, high = self._windows.low, self._windows.high
        if not self._item.residual:
            if windows is not None:
                np.maximum(high - low, 0, out=windows)
            if probes is not None:
                count_covers(low, high, np.zeros(len(probes) + 1, np.int64), probes)
        elif len({_probe_name(self._item, condition) for condition in self._item.residual}) == 1:
            self._count_ranked(windows, probes)
        else:
            tested = self._comparisons()
            most = _ALL if exactly or probes is not None else 1
            parts = (low, high, tested.ours, tested.theirs, tested.strict)
            count_filtered(*parts, most, _NONE if windows is None else windows, _NONE if probes is None else probes)

    def _count_ranked(self, windows: Int64s | None, probes: Int64s | None) -> None:
        """The residual as a slice too, of the probe rows sorted by the value that it compares."""
        residual = self._item.residual
        low, high = self._windows.low, self._windows.high
        by_value, rank = self._probes.resorted(_probe_name(self._item, residual[0]))
        least, most = self._windows.group_ranges()
        for condition in residual:
            self._windows.cut(condition, self._probes.ranks_in(by_value, condition), least, most)
        used = np.where(least < most, high - low, 0)
        size = len(rank) + 1
        lists = []
        for at in (low, high):
            heads, links = np.empty(size, np.int32), np.empty(len(at), np.int32)
            link_slices(at, used, heads, links)
            lists.append((heads, links))
        (starting, next_starting), (ending, next_ending) = lists
        linked = (starting, ending, next_starting, next_ending, np.zeros(size, np.int32))
        if probes is not None:
            count_ranked_probes(least, most, rank, *linked, probes)
        if windows is not None:
            from_below = any(_is_lower(self._item, condition) for condition in residual)
            from_above = not all(_is_lower(self._item, condition) for condition in residual)
            count_ranked_windows(low, high, least, most, rank, from_below, from_above, *linked, windows)

    def _comparisons(self) -> _Comparisons:
        """The residual's codes in the order of the windows and of the probe rows."""
        if self._compared is None:
            self._compared = _Comparisons(
                self._windows.residual(), self._probes.residual(), strictness(self._item.residual)
            )
        return self._compared


def strictness(conditions: Sequence[Condition]) -> UInt8s:
    """uint8[conditions], 1 where equality is excluded."""
    return np.array([condition.is_strict for condition in conditions], np.uint8)


def _is_lower(item: Pass, condition: Condition) -> bool:
    """Whether it bounds the probe value from below."""
    return condition.is_lower == (item.window == "left")


def _flip(item: Pass, condition: Condition) -> int:
    return 0 if _is_lower(item, condition) else -1


def _window_name(item: Pass, condition: Condition) -> str:
    return condition.left if item.window == "left" else condition.right


def _probe_name(item: Pass, condition: Condition) -> str:
    return condition.right if item.window == "left" else condition.left


def shift_of(item: Pass, condition: Condition, role: Literal["window", "probe"]) -> int | float:
    """What the condition adds to the value of that side: only the left value gets the shift."""
    is_left = (role == "window") == (item.window == "left")
    return _number(condition.shift) if is_left else 0


def _number(shift: object) -> int | float:
    assert isinstance(shift, int | float)
    return shift


def values_used(conditions: Sequence[Condition]) -> tuple[frozenset[str], frozenset[str]]:
    """(left, right) values that an alternative compares."""
    return frozenset(item.left for item in conditions), frozenset(item.right for item in conditions)
