"""What each partition of a window over two tables gets, counted row by row as the product's routers send them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from sqlext_planner.window.tasks import Sent

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyedTimes:
    """Two tables (a, then b) as int64 arrays: keys from 1 on, and times. `half` is half of the interval, both ends
    closed, in the unit of the times."""

    keys: tuple[Ints, Ints]
    times: tuple[Ints, Ints]
    half: int

    @property
    def rows(self) -> int:
        """Rows of both tables."""
        return len(self.keys[0]) + len(self.keys[1])

    def key_rows(self, number: int) -> Ints:
        """int64[keys], the rows of each key in a table; the first is of key 1."""
        most = max(int(keys.max(initial=0)) for keys in self.keys)
        return np.bincount(self.keys[number], minlength=most + 1)[1:]

    @cached_property
    def places(self) -> Ints:
        """int64[b], the place of each row of b in the order of keys and times."""
        found = np.empty(len(self.keys[1]), np.int64)
        found[np.lexsort((self.times[1], self.keys[1]))] = np.arange(len(found))
        return found

    @cached_property
    def windows(self) -> tuple[Ints, Ints]:
        """int64[a] each: the rows of b in the window of each row of a are those from the first place up to and without
        the last one."""
        low = min(int(times.min(initial=0)) for times in self.times) - self.half
        span = max(int(times.max(initial=0)) for times in self.times) + self.half - low + 1
        theirs = np.sort(self.keys[1] * span + (self.times[1] - low))
        own = self.keys[0] * span + (self.times[0] - low)
        return np.searchsorted(theirs, own - self.half), np.searchsorted(theirs, own + self.half, side="right")

    def moved(self, teams: Ints, copies: str) -> int:
        """The closed formula of the rows moved, for a key in teams[k - 1] partitions: the sum of a + S * b if only rows
        of the other table are copied ("others"), and of S * (a + b) if all are ("all")."""
        own, other = self.key_rows(0), self.key_rows(1)
        return int(((teams * own if copies == "all" else own) + teams * other).sum())

    def moved_by_cuts(self, cuts: Iterable[tuple[int, ...]]) -> int:
        """The same for keys that are cut in time, one tuple of cuts for each key: all rows, and for each cut c the rows
        of b from c - half up to and without c + half."""
        found = self.rows
        for key, own in enumerate(cuts, 1):
            times = np.sort(self.times[1][self.keys[1] == key]) if own else np.empty(0, np.int64)
            ends = np.searchsorted(times, [[cut - self.half, cut + self.half] for cut in own]) if own else None
            found += 0 if ends is None else int(np.diff(ends, axis=1).sum())
        return found


@dataclass(frozen=True, eq=False)
class PartitionCounts:
    """int64[partitions] each: the rows that a partition gets, copies too; those of them that have their result in it;
    and its pairs, of such a row and a row of b that is in the partition and in the row's window."""

    received: Ints
    owned: Ints
    pairs: Ints

    @classmethod
    def of(cls, tables: KeyedTimes, sent: tuple[Iterable[Sent], Iterable[Sent]], partitions: int) -> PartitionCounts:
        """Count what is sent of a and of b."""
        received, owned, pairs = (np.zeros(partitions, np.int64) for _ in range(3))
        homes = np.full(len(tables.keys[0]), -1)
        present = np.zeros((partitions, len(tables.places)), np.bool_)
        for part in sent[0]:
            received += np.bincount(part.pids, minlength=partitions)
            owned += np.bincount(part.pids[part.owned], minlength=partitions)
            homes[part.rows[part.owned]] = part.pids[part.owned]
        for part in sent[1]:
            received += np.bincount(part.pids, minlength=partitions)
            present[part.pids, tables.places[part.rows]] = True
        first, last = tables.windows
        for pid in range(partitions):
            before = np.concatenate([[0], np.cumsum(present[pid])])
            mine = np.flatnonzero(homes == pid)
            pairs[pid] = (before[last[mine]] - before[first[mine]]).sum()
        return cls(received, owned, pairs)


def over_average(counts: npt.NDArray[np.float64] | Ints) -> float:
    """The largest over the average; 1 if all are 0."""
    average = float(counts.mean())
    return float(counts.max()) / average if average else 1.0
