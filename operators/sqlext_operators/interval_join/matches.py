"""The pairs of one pass: slices of the sorted probe rows, enumerated or counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.kernels.bounds import cut_slices
from sqlext_operators.interval_join.kernels.counts import (
    count_covers,
    count_ranked_probes,
    count_ranked_windows,
    link_slices,
)
from sqlext_operators.interval_join.kernels.pairs import count_filtered, fill_filtered_pairs, fill_pairs
from sqlext_operators.interval_join.passes import Pass
from sqlext_operators.interval_join.rows import CodedRows, Int32Array, IntArray, Sorted
from sqlext_operators.interval_join.spec import PairAlgorithm
from sqlext_operators.interval_join.sweep.slices import Slices, sweep_slices
from sqlext_operators.kernels.group_ranges import group_ranges

UInt8Array = npt.NDArray[np.uint8]

_ALL = np.iinfo(np.int64).max
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Buffers:
    """Pairs of rows, int32[capacity] a side, reused from chunk to chunk: fresh memory costs 3 times as much."""

    window: Int32Array
    probe: Int32Array

    @classmethod
    def of(cls, capacity: int) -> Buffers:
        return cls(np.empty(capacity, np.int32), np.empty(capacity, np.int32))


@dataclass(frozen=True)
class _Comparisons:
    """ours[c, i] < theirs[c, j], or equal unless strict[c], for windows i and places j."""

    ours: npt.NDArray[np.int64]
    theirs: npt.NDArray[np.int64]
    strict: UInt8Array


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
        self._item, self._window, self._probe, self._algorithm = item, window, probe, algorithm
        leading = self._window_name((item.lowers or item.uppers)[0])
        windows = window.ordered(leading, used[0])
        self._probes = probe.probes(item.probe, used[1])
        self._rows = windows.rows
        self._group = window.group[windows.rows]
        self._low, self._high = self._group_ranges()
        for condition in item.lowers + item.uppers:
            near = self._window_name(condition) == leading
            is_sorted = near and not self._shift(condition, "window")
            value = windows.codes if is_sorted else self._ours(condition, self._rows)
            self._cut(condition, self._probes, value, near, self._low, self._high)
        self._compared: _Comparisons | None = None

    def pairs(self, buffers: Buffers) -> Iterator[int]:
        """Fill the buffers with rows of matching pairs; gives how many there are, more than 0 each time."""
        state = np.zeros(2, np.int64)
        tested = self._comparisons() if self._item.residual else None
        if self._algorithm != "slices":
            slices = Slices(self._rows, self._low, self._high, self._probes.rows)
            residual = None if tested is None else (tested.ours, tested.theirs, tested.strict)
            lazy = self._algorithm == "lazy-join-by-s"
            yield from sweep_slices(slices, residual, buffers.window, buffers.probe, lazy)
            return
        while state[0] < len(self._rows):
            head = (self._rows, self._low, self._high, self._probes.rows)
            if tested is None:
                count = fill_pairs(*head, state, buffers.window, buffers.probe)
            else:
                parts = (tested.ours, tested.theirs, tested.strict)
                count = fill_filtered_pairs(*head, *parts, state, buffers.window, buffers.probe)
            if count:
                yield count

    def add_counts(self, windows: IntArray | None, probes: IntArray | None, *, exactly: bool) -> None:
        """Add how many pairs each row of a side is in, int64[rows of the side] each, None if it is not wanted.

        Unless `exactly`, a count may be smaller as long as it is positive for a row with a pair. Costs
        O((n + m) log m) whatever the number of pairs, unless the residual compares several of the probe side's values:
        then it goes through the pairs, up to the first of each window if that is enough.
        """
        for_windows = None if windows is None else np.zeros(len(self._rows), np.int64)
        for_probes = None if probes is None else np.zeros(len(self._probes.rows), np.int64)
        self._count(for_windows, for_probes, exactly)
        if windows is not None and for_windows is not None:
            windows[self._rows] += for_windows
        if probes is not None and for_probes is not None:
            probes[self._probes.rows] += for_probes

    def _count(self, windows: IntArray | None, probes: IntArray | None, exactly: bool) -> None:
        if not self._item.residual:
            if windows is not None:
                np.maximum(self._high - self._low, 0, out=windows)
            if probes is not None:
                count_covers(self._low, self._high, np.zeros(len(probes) + 1, np.int64), probes)
        elif len({self._probe_name(condition) for condition in self._item.residual}) == 1:
            self._count_ranked(windows, probes)
        else:
            tested = self._comparisons()
            most = _ALL if exactly or probes is not None else 1
            parts = (self._low, self._high, tested.ours, tested.theirs, tested.strict)
            count_filtered(*parts, most, _NONE if windows is None else windows, _NONE if probes is None else probes)

    def _count_ranked(self, windows: IntArray | None, probes: IntArray | None) -> None:
        """The residual as a slice too, of the probe rows sorted by the value that it compares."""
        residual = self._item.residual
        by_value, rank = self._probe.resorted(self._probes, self._probe_name(residual[0]))
        least, most = self._group_ranges()
        for condition in residual:
            self._cut(condition, by_value, self._ours(condition, self._rows), True, least, most)
        used = np.where(least < most, self._high - self._low, 0)
        size = len(rank) + 1
        lists = []
        for at in (self._low, self._high):
            heads, links = np.empty(size, np.int32), np.empty(len(at), np.int32)
            link_slices(at, used, heads, links)
            lists.append((heads, links))
        (starting, next_starting), (ending, next_ending) = lists
        linked = (starting, ending, next_starting, next_ending, np.zeros(size, np.int32))
        if probes is not None:
            count_ranked_probes(least, most, rank, *linked, probes)
        if windows is not None:
            from_below = any(self._is_lower(condition) for condition in residual)
            from_above = not all(self._is_lower(condition) for condition in residual)
            slices = (self._low, self._high, least, most)
            count_ranked_windows(*slices, rank, from_below, from_above, *linked, windows)

    def _comparisons(self) -> _Comparisons:
        """The residual's codes in the order of the windows and of the probe rows."""
        if self._compared is None:
            residual = self._item.residual
            ours = np.empty((len(residual), len(self._rows)), np.int64)
            theirs = np.empty((len(residual), len(self._probes.rows)), np.int64)
            for place, condition in enumerate(residual):
                # ~ reverses the order, exactly
                flip = 0 if self._is_lower(condition) else -1
                ours[place] = self._ours(condition, self._rows) ^ flip
                theirs[place] = self._theirs(condition, self._probes.rows) ^ flip
            strict = np.array([condition.is_strict for condition in residual], np.uint8)
            self._compared = _Comparisons(ours, theirs, strict)
        return self._compared

    def _group_ranges(self) -> tuple[IntArray, IntArray]:
        low, high = np.empty(len(self._rows), np.int64), np.empty(len(self._rows), np.int64)
        group_ranges(self._group, self._probes.starts, low, high)
        return low, high

    def _cut(
        self, condition: Condition, order: Sorted, value: IntArray, near: bool, low: IntArray, high: IntArray
    ) -> None:
        """Cut slices of `order`, which is sorted by the probe value of the condition, by the windows' values."""
        rank = self._theirs(condition, order.rows) if self._shift(condition, "probe") else order.codes
        cut_slices(rank, value, self._is_lower(condition), condition.is_strict, near, low, high)

    def _is_lower(self, condition: Condition) -> bool:
        """Whether it bounds the probe value from below."""
        return condition.is_lower == (self._item.window == "left")

    def _window_name(self, condition: Condition) -> str:
        return condition.left if self._item.window == "left" else condition.right

    def _probe_name(self, condition: Condition) -> str:
        return condition.right if self._item.window == "left" else condition.left

    def _ours(self, condition: Condition, rows: Int32Array) -> IntArray:
        return self._window.codes(self._window_name(condition), self._shift(condition, "window"))[rows]

    def _theirs(self, condition: Condition, rows: Int32Array) -> IntArray:
        return self._probe.codes(self._probe_name(condition), self._shift(condition, "probe"))[rows]

    def _shift(self, condition: Condition, role: Literal["window", "probe"]) -> int | float:
        """What the condition adds to the value of that side: only the left value gets the shift."""
        is_left = (role == "window") == (self._item.window == "left")
        return _number(condition.shift) if is_left else 0


def _number(shift: object) -> int | float:
    assert isinstance(shift, int | float)
    return shift


def values_used(conditions: Sequence[Condition]) -> tuple[frozenset[str], frozenset[str]]:
    """(left, right) values that an alternative compares."""
    return frozenset(item.left for item in conditions), frozenset(item.right for item in conditions)
