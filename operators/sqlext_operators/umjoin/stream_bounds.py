"""How far apart in time the rows of a joined row are: what may be forgotten when, when all its matches are known.

Slices of time (`copies`) are one more key of a join, so that rows far apart in time never meet.

The rows of one input, the anchor, are each in one slice. A row of another input is copied to every slice in which a row
of the anchor may be that the bounds allow beside it. So a joined row is found once, in the slice of its anchor's row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sqlext_operators.arrays import Int64s, ranges
from sqlext_operators.umjoin.spec import Kind


@dataclass(frozen=True)
class TimeBound:
    """In a joined row, the time of the row of input `later` is at most `most` after that of the row of `earlier`.

    `most` is in units of the time columns, and may be negative.
    """

    earlier: int
    later: int
    most: int


@dataclass(frozen=True)
class StreamTimes:
    """The inputs' time columns, None for one without, and the bounds between them.

    `bounds` between inner inputs are conditions of the join's result; those with a left, semi or anti input are part
    of its match. Raises ValueError for a bound of an input without a time.
    """

    kinds: tuple[Kind, ...]
    columns: tuple[str | None, ...]
    bounds: tuple[TimeBound, ...] = ()

    def __post_init__(self) -> None:
        if any(self.columns[i] is None for bound in self.bounds for i in (bound.earlier, bound.later)):
            raise ValueError("a bound between inputs without a time")

    def after(self, i: int, j: int) -> int | None:
        """How much later than a row of input i a row of input j can be in one joined row; None: any time."""
        return self._closed[i][j]

    @cached_property
    def _closed(self) -> tuple[tuple[int | None, ...], ...]:
        """The shortest paths of bounds. Matches do not restrict the inner inputs: only the last step of a path, or the
        first one, is from or to an input that is not inner."""
        size = len(self.columns)
        inner = [i for i in range(size) if self.kinds[i] == "inner"]
        distances: list[list[int | None]] = [[0 if i == j else None for j in range(size)] for i in range(size)]
        for bound in self.bounds:
            distances[bound.earlier][bound.later] = _least(distances[bound.earlier][bound.later], bound.most)
        for k in inner:
            for i in range(size):
                for j in range(size):
                    distances[i][j] = _least(distances[i][j], _sum(distances[i][k], distances[k][j]))
        return tuple(map(tuple, distances))

    def span(self, anchor: int, i: int) -> TimeReach | None:
        """How far a row of input i may be from one of the anchor; None if that has no bound on one side."""
        back, ahead = self.after(i, anchor), self.after(anchor, i)
        return None if back is None or ahead is None else TimeReach(back, ahead)

    @cached_property
    def sliced(self) -> dict[int, TimeReach]:
        """The inner inputs that are also joined on slices of time, with their spans around the first of them, which has
        the shortest; none if no two inputs are bound to each other on both sides."""
        inner = [i for i, kind in enumerate(self.kinds) if kind == "inner"]
        found = []
        for anchor in inner:
            spans = {i: span for i in inner if i != anchor and (span := self.span(anchor, i)) is not None}
            found.append((-len(spans), sum(span.width for span in spans.values()), anchor, spans))
        _, _, anchor, spans = min(found, key=lambda item: item[:3])
        return {anchor: TimeReach(0, 0), **spans} if spans else {}

    def apart(self, classes: Sequence[Collection[int]]) -> tuple[int, ...]:
        """The inner inputs that neither equal keys nor slices of time join with the first one, whatever inputs of other
        kinds have to do with both. `classes` are those of each input's keys."""
        waiting = [i for i, kind in enumerate(self.kinds) if kind == "inner"]
        reached = {waiting.pop(0)}
        while joined := [i for i in waiting if any(self._are_joined(i, j, classes) for j in reached)]:
            reached.update(joined)
            waiting = [i for i in waiting if i not in reached]
        return tuple(waiting)

    def _are_joined(self, i: int, j: int, classes: Sequence[Collection[int]]) -> bool:
        return bool(set(classes[i]) & set(classes[j])) or (i in self.sliced and j in self.sliced)

    @cached_property
    def deciding(self) -> tuple[int, ...]:
        """The left and anti inputs: a row comes out when nothing more can match in them."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind in ("left", "anti"))

    @cached_property
    def waited(self) -> tuple[int, ...]:
        """The inputs that must be complete before a row comes out: left and anti ones, and beside them semi ones."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind != "inner") if self.deciding else ()

    def anchor(self, member: int) -> int | None:
        """The inner input whose row says until when rows of a member may match; None if there is none."""
        inner = [i for i, kind in enumerate(self.kinds) if kind == "inner"]
        known = [(most, i) for i in inner if (most := self.after(i, member)) is not None]
        return min(known)[1] if known else None

    @cached_property
    def waits(self) -> dict[int, tuple[int, int]]:
        """Of the members that have one, the anchor, and how long after the time of its row a joined row waits for the
        member."""
        anchors = {member: self.anchor(member) for member, kind in enumerate(self.kinds) if kind != "inner"}
        known = {member: anchor for member, anchor in anchors.items() if anchor is not None}
        return {m: (a, wait) for m, a in known.items() if (wait := self.after(a, m)) is not None}

    @cached_property
    def retention(self) -> tuple[int | None, ...]:
        """For each input, how long after its time a row may still be in a new joined row; None: for ever."""
        return tuple(self._retention_of(i) for i in range(len(self.columns)))

    def _retention_of(self, i: int) -> int | None:
        if self.columns[i] is None:
            return None
        # rows to come that it is joined with, and joined rows with it, or that it matches, which wait for other inputs:
        # for those of `waited`, or where there are none, for a match in each semi input
        others = [j for j in range(len(self.columns)) if j != i]
        if self.waited:
            others = [j for j in others if "inner" in (self.kinds[i], self.kinds[j])]
        waits = [self.after(i, j) for j in others]
        # those of `waited` all have an anchor (the operator's specification)
        members = [member for member in self.waited if member in self.waits]
        if self.kinds[i] == "semi":  # a later match of the same joined row must not be taken for its first one
            members.append(i)
        for anchor, wait in (self.waits.get(member, (None, None)) for member in members):
            waits.append(None if anchor is None else _sum(self.after(i, anchor), wait))
        known = [wait for wait in waits if wait is not None]
        return max(known, default=0) if len(known) == len(waits) else None


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


#: The shortest span of bounds is about so many slices: a row has some copies more than that, and meets few rows that
#: the bounds exclude.
_FINE = 4
#: No row has many more copies than this.
_MOST_COPIES = 16


@dataclass(frozen=True)
class TimeReach:
    """A row of an input is at most `back` before and `ahead` after the anchor's row, in units of the time columns."""

    back: int
    ahead: int

    @property
    def width(self) -> int:
        """How long the span is; 0 for one that excludes every row."""
        return max(0, self.back + self.ahead + 1)


def slice_width(spans: list[TimeReach]) -> int:
    """The width of slices for these spans, one at least."""
    widths = [span.width for span in spans]
    return max(1, min(widths) // _FINE, max(widths) // _MOST_COPIES)


def copies(times: Int64s, span: TimeReach, width: int, low: int, high: int) -> tuple[Int64s, Int64s]:
    """(rows, slices), int64[n] each: every row with each slice, from `low` to `high`, that it may have matches in."""
    first = np.maximum((times - span.ahead) // width, low)
    last = np.minimum((times + span.back) // width, high)
    counts = np.maximum(last - first + 1, 0)
    return np.repeat(np.arange(len(times)), counts), ranges(first, counts)
