"""How a window function is evaluated, and what several of them need: FILTER (WHERE ...) around any function, which sees
only the rows for which the condition is true; queues of two stacks; and sums over frames as differences of prefix sums,
exact, because they are computed in integers modulo 2**64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Float64s, Int64s, offsets_of
from sqlext_operators.columns.compact import plain_column
from sqlext_operators.columns.flat import truth
from sqlext_operators.window.frames import ROW_LIMIT, Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding import END, UNSET

#: Bytes of a value of `Evaluator.weights`.
WEIGHT_BYTES = 8

T = TypeVar("T")
Queue = TypeVar("Queue", bound="SliceQueue")


@dataclass(frozen=True)
class Rows:
    """The rows that a window's frames are about.

    args        the arguments of the call, one array each over the buffer's rows
    candidates  int64[n], places of the candidates in the buffer; None: all rows of the buffer
    count       the number of rows in the buffer
    memo        what evaluators have computed from the buffer's columns so far (`shared`)
    """

    args: tuple[pa.Array, ...]
    candidates: Int64s | None
    count: int
    memo: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    def shared(self, make: Callable[..., T], *arrays: pa.Array) -> T:
        """make(*arrays), computed once for all calls over a buffer that need the same from the same columns.

        Do not change the result. Measured with the 51 calls of FEBench's Q3 over 26 columns of its order
        lines: the codes of strings take 20 to 60 ns a row, as long as a sliding count over them.
        """
        key = (make, *map(id, arrays))
        if key not in self.memo:
            self.memo[key] = (arrays, make(*arrays))  # with the arrays, so that their ids stay taken
        made: T = self.memo[key][1]
        return made

    def plain(self) -> Rows:
        """These rows with arguments that are no dictionaries."""
        is_coded = [pa.types.is_dictionary(array.type) for array in self.args]
        if not any(is_coded):
            return self
        pairs = zip(self.args, is_coded, strict=True)
        return replace(self, args=tuple(self.shared(plain_column, a) if is_one else a for a, is_one in pairs))

    def places(self, end: int | None = None) -> Int64s:
        """Places in the buffer of the candidates, or of the first `end` of them."""
        if self.candidates is None:
            return np.arange(self.count if end is None else end)
        return self.candidates if end is None else self.candidates[:end]

    def buffer_places(self, candidates: Int64s) -> Int64s:
        """Places in the buffer of candidates; -1 stays."""
        if self.candidates is None or not len(self.candidates):
            return candidates
        return np.where(candidates < 0, -1, self.candidates[candidates])


class Evaluator(ABC):
    """Evaluates one call over one window, with state that is carried from one piece of the input to the next.

    For each piece the processor calls `load` with the rows that are in the buffer, `evaluate` for consecutive
    frames, then `advance`, after which the first candidates leave the buffer. In an unbounded window these stay
    in the frames of the group's later rows: the evaluator must `fold` them into its state. In other windows they
    are in no later frame. Results must not depend on where the input is cut.

    lookback    how many candidates before `Frames.before` are needed, whatever the frame holds (`first_needed`)
    ahead       how many candidates from `Frames.after` on are needed, whatever the frame holds
    newest      how many of the newest candidates of an unbounded frame are needed
    needs_rows  rows of an unbounded window cannot be folded: all have to stay in the buffer
    takes_dictionaries  in bounded windows, strings among the arguments may be dictionaries (`columns/compact.py`)
    """

    lookback = 0
    ahead = 0
    newest = 0
    needs_rows = False
    takes_dictionaries = False

    def __init__(self, site: CallSite) -> None:
        self.site = site

    def first_needed(self, before: int) -> int:
        """The first candidate that a row needs whose `Frames.before` is `before`, apart from its frame."""
        return before - self.lookback

    @property
    def kept_values(self) -> int:
        """How many values of folded rows are kept: `load` goes through them."""
        return 0

    @abstractmethod
    def load(self, rows: Rows) -> None:
        """Take the buffer's rows: those retained from earlier pieces, then new ones."""

    @abstractmethod
    def evaluate(self, frames: Frames) -> pa.Array:
        """One result of `site.result_type` for each frame. Frames come in sequence order."""

    def weights(self, frames: Frames) -> Int64s | None:
        """int64[m], how large the results for the frames are at most, in values of WEIGHT_BYTES; None for plain
        values. Called after `load`: the processor cuts the output into batches that are not too large."""
        return None

    def advance(self, closed: int, folded: int, *, new_group: bool) -> None:
        """The first `closed` candidates (of finished groups), then `folded` of the open group leave the buffer.

        `new_group`: the open group is not the one that the state is about.
        """
        if new_group:
            self.reset()
        if self.site.unbounded and folded:
            self.fold(closed, closed + folded)
        self.shift(closed + folded)

    def reset(self) -> None:  # noqa: B027
        """Forget the group that the folded candidates belong to."""

    def forget(self) -> None:  # noqa: B027
        """Forget the frames that have been evaluated: none of them belongs to the open group."""

    def fold(self, start: int, end: int) -> None:  # noqa: B027
        """Candidates [start, end) stay in every later frame of the group, but leave the buffer."""

    def shift(self, count: int) -> None:  # noqa: B027
        """The first `count` candidates leave the buffer."""


class Filtered(Evaluator):
    """A function over those candidates whose condition, the last argument, is true.

    The candidates that are left are counted anew: place p becomes the number of candidates before p that are left, so
    slices stay slices, never fall where they did not, and fold as they did.
    """

    takes_dictionaries = True

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner.site)
        self._inner = inner
        self.needs_rows = inner.needs_rows
        self.newest = inner.newest
        self.lookback = inner.lookback
        #: Whether enough rows are left after a row is known at the end of its group only.
        self.ahead = ROW_LIMIT if inner.ahead else 0
        #: int64[n + 1], how many of the first candidates are left
        self._left: Int64s = np.zeros(1, np.int64)
        self._places: Int64s = np.zeros(0, np.int64)

    @property
    def kept_values(self) -> int:
        return self._inner.kept_values

    def load(self, rows: Rows) -> None:
        self._mask = truth(rows.args[-1])
        chosen = self._mask if rows.candidates is None else self._mask[rows.candidates]
        self._places = np.flatnonzero(chosen)
        self._left = offsets_of(chosen)
        index = self._places if rows.candidates is None else rows.candidates[self._places]
        inner = replace(rows, args=rows.args[:-1], candidates=index)
        takes = self._inner.takes_dictionaries and not self.site.unbounded
        self._inner.load(inner if takes else inner.plain())

    def evaluate(self, frames: Frames) -> pa.Array:
        return self._inner.evaluate(self._chosen(frames))

    def weights(self, frames: Frames) -> Int64s | None:
        return self._inner.weights(self._chosen(frames))

    def first_needed(self, before: int) -> int:
        first = max(0, int(self._left[before]) - self.lookback)
        return min(before, int(self._places[first])) if first < len(self._places) else before

    def reset(self) -> None:
        self._inner.reset()

    def forget(self) -> None:
        self._inner.forget()

    def fold(self, start: int, end: int) -> None:
        self._inner.fold(int(self._left[start]), int(self._left[end]))

    def shift(self, count: int) -> None:
        self._inner.shift(int(self._left[count]))

    def _chosen(self, frames: Frames) -> Frames:
        places = {name: getattr(frames, name) for name in ("lo", "hi", "lo2", "hi2", "start", "before", "after", "end")}
        moved: dict[str, Any] = {
            name: None if column is None else self._left[column] for name, column in places.items()
        }
        current = None if frames.current is None else frames.current & self._mask[frames.row]
        return replace(frames, current=current, **moved)


class SliceQueue(ABC):
    """The state of a kernel of two stacks for one slice of the frames; places are candidates of the buffer.

    The `cursor` is (low, middle, end), `back` the state of [middle, end), as the kernel takes it, and `suffix` float64
    arrays with the states of [k, middle) for each place k.
    """

    def __init__(self, back: Float64s, *suffix: Float64s) -> None:
        self.cursor = np.array([0, 0, UNSET], np.int64)
        self.back = back
        self.suffix = suffix

    @abstractmethod
    def add(self, values: Any, start: int, end: int) -> None:
        """Add the candidates [start, end) to `back`."""

    @abstractmethod
    def states(self, values: Any, lo: Int64s, hi: Int64s, fresh: Bools) -> Float64s:
        """The state of each slice, as the evaluator merges them."""

    def grow(self, count: int) -> None:
        """Make room for `count` candidates; what is known about the first ones stays."""
        if count > len(self.suffix[0]):
            grown = tuple(np.empty((count, *known.shape[1:])) for known in self.suffix)
            for longer, known in zip(grown, self.suffix, strict=True):
                longer[: len(known)] = known
            self.suffix = grown

    def fold(self, values: Any, start: int, end: int) -> None:
        """Add those of the candidates [start, end) that no frame has held so far; they stay in all later ones."""
        if self.cursor[END] == UNSET:
            self.cursor[:] = start
        known = int(self.cursor[END])
        if end > known:
            self.add(values, known, end)
            self.cursor[END] = end

    def shift(self, count: int, *, unbounded: bool) -> None:
        """The first `count` candidates leave the buffer."""
        self.suffix = tuple(known[count:] for known in self.suffix)
        if self.cursor[END] == UNSET:
            return
        self.cursor -= count
        if unbounded:
            np.maximum(self.cursor, 0, out=self.cursor)


class QueuedStates(Evaluator, Generic[Queue]):
    """A state of each frame, from which a number is computed: a queue for each of the two slices of the frames.

    A subclass has a `queue`, and says how states are merged; `load` sets `_chosen`, the candidates as the queues take
    them.
    """

    _chosen: Any

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.forget()

    @abstractmethod
    def queue(self) -> Queue:
        """An empty queue."""

    @abstractmethod
    def merge(self, states: Float64s, newer: Float64s) -> None:
        """Merge newer states into others, row by row."""

    @abstractmethod
    def merge_current(self, states: Float64s, frames: Frames, current: Bools) -> None:
        """Merge the rows themselves into the states, where they are in their frames (`current`)."""

    def states(self, frames: Frames) -> Float64s:
        """The state of each frame."""
        first, second = self._queues
        states = first.states(self._chosen, frames.lo, frames.hi, frames.fresh)
        if frames.current is not None:
            self.merge_current(states, frames, frames.current)
        if frames.lo2 is not None and frames.hi2 is not None:
            self.merge(states, second.states(self._chosen, frames.lo2, frames.hi2, frames.fresh))
        return states

    def forget(self) -> None:
        self._queues = (self.queue(), self.queue())

    def fold(self, start: int, end: int) -> None:
        self._queues[0].fold(self._chosen, start, end)

    def shift(self, count: int) -> None:
        self._queues[0].shift(count, unbounded=self.site.unbounded)
        self._queues[1].shift(count, unbounded=False)


class PrefixSums:
    """Sums of int64 values over frames, modulo 2**64: subtract-on-evict for all rows at once.

    Addition modulo 2**64 is a group, so a difference of prefixes is the exact sum of the frame modulo 2**64
    whatever the prefixes have wrapped to. `carry` is the sum of what has been folded (unbounded windows).
    """

    def __init__(self) -> None:
        self.carry = 0
        self._prefix: Int64s = np.zeros(1, np.int64)
        self._values: Int64s = np.zeros(0, np.int64)

    def load(self, values: Int64s, candidates: Int64s | None) -> None:
        """`values` int64[buffer rows], 0 where nothing is to be added."""
        chosen = values if candidates is None else values[candidates]
        self._values = values
        self._prefix = offsets_of(chosen)

    def totals(self, frames: Frames) -> Int64s:
        """int64[m], the sum over each frame."""
        prefix = self._prefix
        total: Int64s = prefix[frames.hi] - prefix[frames.lo]
        if frames.lo2 is not None and frames.hi2 is not None:
            total += prefix[frames.hi2] - prefix[frames.lo2]
        if frames.current is not None:
            total += np.where(frames.current, self._values[frames.row], 0)
        if self.carry:
            total[: frames.carried()] += np.int64(self.carry)
        return total

    def fold(self, start: int, end: int) -> None:
        """Candidates [start, end) go into every later total of the group."""
        total = self.carry + self.between(start, end)
        self.carry = (total + (1 << 63)) % (1 << 64) - (1 << 63)

    def between(self, start: int, end: int) -> int:
        """The sum of candidates [start, end), modulo 2**64."""
        return int(self._prefix[end]) - int(self._prefix[start])


class PrefixCounts:
    """How many usable rows are in each frame; frame sizes themselves where every row is usable."""

    def __init__(self) -> None:
        self.carry = 0
        self._sums: PrefixSums | None = None

    def load(self, usable: Bools | None, candidates: Int64s | None) -> None:
        """`usable` bool[buffer rows], None for all."""
        self._sums = None
        if usable is not None:
            self._sums = PrefixSums()
            self._sums.load(usable.astype(np.int64), candidates)

    def totals(self, frames: Frames) -> Int64s:
        """int64[m], the number of usable rows in each frame."""
        total = frames.sizes() if self._sums is None else self._sums.totals(frames)
        if self.carry:
            total[: frames.carried()] += self.carry
        return total

    def fold(self, start: int, end: int) -> None:
        """Candidates [start, end) are in every later frame of the group."""
        self.carry += end - start if self._sums is None else self._sums.between(start, end)


class Totalled(Evaluator):
    """An evaluator whose state is totals over frames: `counts`, and further ones in `totals`."""

    def __init__(self, site: CallSite, *totals: PrefixSums | PrefixCounts) -> None:
        super().__init__(site)
        self.counts = PrefixCounts()
        self.totals = (self.counts, *totals)

    def reset(self) -> None:
        for part in self.totals:
            part.carry = 0

    def fold(self, start: int, end: int) -> None:
        for part in self.totals:
            part.fold(start, end)


def split(values: npt.NDArray[np.int64]) -> tuple[Int64s, Int64s]:
    """(low, high) with value = high * 2**32 + low, 0 <= low < 2**32: sums of up to 2**31 of each fit int64."""
    return values & 0xFFFFFFFF, values >> 32
