"""Which FROM rows are answered early in a step: those whose time plus the delay the clock has passed in it, and new
ones that were due before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.early.key_totals import Ints
from sqlext_operators.exchange.placed import COPY, owned_rows
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.parts import Part
from sqlext_operators.window.stream_state import FAR, WindowState

#: Positions of rows begin with the numbers of their chunks.
_CHUNK_BITS = 32


@dataclass(frozen=True)
class Due:
    """The FROM rows of the keys of the due ones, between the first and the last of them; the column COPY marks those
    that are not due. `codes` are those of the keys."""

    parts: tuple[Part, ...]
    codes: KeyCodes

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last row."""
        return min(int(part.times[0]) for part in self.parts), max(int(part.times[-1]) for part in self.parts)

    def rows(self) -> Ints:
        """The positions of the due rows, ascending."""
        return np.sort(np.concatenate([part.positions[owned_rows(part.batch)] for part in self.parts]))


@dataclass(frozen=True)
class DueRows:
    """`least` is the time of the first row that is not final; `before` and `until` the last times that were due before
    and are due now; chunks from the number `since` on are new."""

    least: int
    before: int | None
    until: int
    since: int

    def of(self, state: WindowState, keys: Sequence[str]) -> Due | None:
        """The due rows of a state; None if there are none."""
        passed = self.least if self.before is None else max(self.least, self.before + 1)
        span = list(state.from_rows(passed, self.until + 1))
        span += state.from_rows(self.least, min(passed, self.until + 1), self.since)
        if not span:
            return None
        low = min(int(part.times[0]) for part in span)
        high = max(int(part.times[-1]) for part in span)
        codes = KeyCodes(max(1, len(keys)))
        marked = [(part, self._is_due(part)) for part in state.from_rows(low, high + 1)]
        for part, due in marked:
            if keys and due.any():
                codes.encode([take_rows(part.batch, np.flatnonzero(due)).column(name) for name in keys])
        found = []
        for part, due in marked:
            known = of_keys(part, codes, keys)
            if known is not None:
                due = due[np.isin(part.positions, known.positions)]
                found.append(known._replace(batch=with_column(known.batch, COPY, pa.array(~due))))
        return Due(tuple(found), codes)

    def _is_due(self, part: Part) -> Bools:
        is_new = part.positions >= self.since << _CHUNK_BITS
        return is_new if self.before is None else is_new | (part.times > self.before)


def of_keys(part: Part, codes: KeyCodes, keys: Sequence[str]) -> Part | None:
    """The rows of a part whose keys have codes; None without any."""
    if not keys:
        return part
    rows = np.flatnonzero(codes.find([part.batch.column(name) for name in keys]) >= 0)
    if not len(rows):
        return None
    if len(rows) == len(part.times):
        return part
    return Part(take_rows(part.batch, rows), part.times[rows], part.positions[rows])


def next_due(state: WindowState, before: int | None) -> int | None:
    """The least time of a FROM row after `before`: the next one that will be due."""
    least: int | None = None
    for chunk in state.overlapping((FROM,), -FAR if before is None else before + 1, FAR):
        low = chunk.low
        if before is not None and low <= before:
            times = state.whole(chunk).times
            low = int(times[np.searchsorted(times, before, side="right")])
        least = low if least is None else min(least, low)
    return least
