"""How a window function is evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.compact import plain_column
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite

T = TypeVar("T")


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
        """int64[m], how large the results for the frames are at most, in values of some 8 bytes; None for plain
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
