"""The rows that new rows of one input may be joined with: a semi-join from input to input, by hashes and times.

What comes out is a little more than that (hashes of 32 bits, pairs of inputs looked at one at a time), and never less.
The exact join is then made over these rows alone, so it costs what the new rows match and not what is kept, and no
joined row is ever stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import UInt64s, is_among
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.exchange.stream import FAR
from sqlext_operators.umjoin.stream_bounds import StreamTimes
from sqlext_operators.umjoin.stream_state import Fresh, InputState, Probe, key_hashes

Classes = tuple[int, ...]

#: An input is probed again by an input that was found later if that has so many times fewer keys.
_WORTH = 4


@dataclass
class InputRows:
    """Rows of an input that may be joined, and the (least, greatest) of their times."""

    state: InputState
    rows: pa.RecordBatch
    times: tuple[int, int]
    _hashes: dict[Classes, UInt64s] = field(default_factory=dict)

    @classmethod
    def of(cls, state: InputState, rows: pa.RecordBatch) -> InputRows:
        """These rows of an input."""
        times = state.times(rows)
        return cls(state, rows, (int(times.min()), int(times.max())) if len(times) else (0, 0))

    def hashes(self, classes: Classes) -> UInt64s:
        """The hashes of the rows' keys, sorted, each once."""
        if classes not in self._hashes:
            self._hashes[classes] = np.unique(key_hashes(self.rows, self.state.keys(classes)))
        return self._hashes[classes]


class Reducer:
    """Finds rows among the old ones in `inputs` and the new ones in `fresh`."""

    def __init__(self, inputs: Sequence[InputState], times: StreamTimes, fresh: Mapping[int, Fresh]) -> None:
        self._inputs = inputs
        self._times = times
        self._fresh = fresh
        self._inner = [i for i, kind in enumerate(times.kinds) if kind == "inner"]

    def inner(self, first: int, rows: pa.RecordBatch, with_new: Set[int]) -> dict[int, InputRows] | None:
        """The rows of all inner inputs that may be joined with `rows` of the input `first`: old ones, of those in
        `with_new` the new ones too. None if one of them has none."""
        by_input = {first: InputRows.of(self._inputs[first], rows)}
        known: dict[tuple[int, Classes], Probe] = {}
        waiting = [i for i in self._inner if i != first]
        while waiting:
            place, probe = self._next(by_input, waiting, known)
            waiting.remove(place)
            by_input[place] = self._looked_up(by_input, place, self._old(by_input, place, probe), new=place in with_new)
            if not by_input[place].rows.num_rows:
                return None
        return by_input

    def member(self, by_input: Mapping[int, InputRows], place: int, *, new: bool) -> pa.RecordBatch:
        """The rows of an input that is not inner that the rows found may match."""
        inner = {i: item for i, item in by_input.items() if i in self._inner}
        rows = self._old(inner, place, self._next(inner, [place], {})[1])
        return self._looked_up(inner, place, rows, new=new).rows

    def _looked_up(self, by_input: Mapping[int, InputRows], place: int, old: pa.RecordBatch, *, new: bool) -> InputRows:
        """The rows of an input that match those found, among these old ones and the new ones."""
        state = self._inputs[place]
        parts = [old]
        if new and place in self._fresh:
            parts.append(self._fresh[place].batch)
        return InputRows.of(state, whole(state.schema, [self._narrowed(by_input, place, rows) for rows in parts]))

    def _next(
        self, by_input: Mapping[int, InputRows], waiting: Sequence[int], known: dict[tuple[int, Classes], Probe]
    ) -> tuple[int, Probe | None]:
        """The input to look at next, and its old rows: where the fewest match an input that was found. None: the inputs
        that are left have keys only of inputs that are not inner, or of one another; the one whose times are the
        closest to those found comes next.

        `known` are the probes so far, by input and classes. A new one is worth its time if it has far fewer hashes.
        """
        for place in waiting:
            low, high = self._range(by_input, place)
            for near, item in by_input.items():
                classes = self._shared(place, near)
                before = known.get((place, classes))
                if classes and (before is None or _WORTH * len(item.hashes(classes)) < before.hashes):
                    known[place, classes] = self._inputs[place].index(classes).probe(item.hashes(classes), low, high)
        chosen = {place: [probe for (i, _), probe in known.items() if i == place] for place in waiting}
        best = {place: min(probes, key=lambda probe: probe.count) for place, probes in chosen.items() if probes}
        if not best:
            ranges = {place: self._range(by_input, place) for place in waiting}
            return min(waiting, key=lambda place: ranges[place][1] - ranges[place][0]), None
        place = min(best, key=lambda i: best[i].count)
        return place, best[place]

    def _old(self, by_input: Mapping[int, InputRows], place: int, probe: Probe | None) -> pa.RecordBatch:
        """The old rows of a probe, or without one those whose times match the inputs found."""
        if probe is not None:
            return self._inputs[place].rows(probe.rows())
        low, high = self._range(by_input, place)
        return self._inputs[place].between(low, high + 1)

    def _shared(self, place: int, near: int) -> Classes:
        theirs = self._inputs[near].item.classes
        return tuple(c for c in self._inputs[place].item.classes if c in theirs)

    def _range(self, by_input: Mapping[int, InputRows], place: int) -> tuple[int, int]:
        """The least and the greatest time that rows of an input may have."""
        low, high = -FAR, FAR
        for near, item in by_input.items():
            back, ahead = self._times.after(place, near), self._times.after(near, place)
            low = low if back is None else max(low, item.times[0] - back)
            high = high if ahead is None else min(high, item.times[1] + ahead)
        return low, high

    def _narrowed(self, by_input: Mapping[int, InputRows], place: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of an input without those whose times, or keys of an input found, match nothing."""
        low, high = self._range(by_input, place)
        times = self._inputs[place].times(rows)
        matching = (times >= low) & (times <= high)
        least = {classes: item for near, item in by_input.items() if (classes := self._shared(place, near))}
        for near, item in by_input.items():
            classes = self._shared(place, near)
            if classes and len(item.hashes(classes)) < len(least[classes].hashes(classes)):
                least[classes] = item
        for classes, item in least.items():
            matching &= is_among(key_hashes(rows, self._inputs[place].keys(classes)), item.hashes(classes))
        return rows if matching.all() else take_rows(rows, np.flatnonzero(matching))
