"""Which partitions the rows of a key may be in: frozen data that the planner makes and the workers read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)


@dataclass(frozen=True)
class KeyPlace:
    """A key with a place of its own.

    `key` is its hash (`keys.hash_keys`), a uint64. `team` are different partitions. `cuts` is None, or strictly
    ascending int64 codes of the order column, one fewer than the team has members: a row that owns its result is in
    team[j] where j = #{c in cuts: c <= time}. Raises ValueError for anything else.
    """

    key: int
    team: tuple[int, ...]
    cuts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.key not in _UINT64:
            raise ValueError(f"the hash of a key is a uint64, not {self.key}")
        if self.cuts is None:
            return
        if len(self.cuts) != len(self.team) - 1:
            raise ValueError(f"{len(self.cuts)} cuts do not make {len(self.team)} time ranges")
        if any(first >= second for first, second in itertools.pairwise(self.cuts)):
            raise ValueError("the cuts of a key ascend")
        if any(cut not in _INT64 for cut in self.cuts):
            raise ValueError("the cuts of a key are int64")


@dataclass(frozen=True)
class Placement:
    """Where the rows of all keys may be.

    `slots` are the teams of the hash slots: the slot of a hash is its upper half * len(slots) >> 32, as the partition
    of a key is by its hash alone. `keys` have places of their own instead, ascending by key. A team without cuts: a row
    that owns its result is in one member, by a hash of the row, and a copied row is in every member. With cuts and a
    reach of (back, ahead), a copied row of time t is in the pieces from #{c in cuts: c <= t - ahead} to
    #{c in cuts: c <= t + back}.

    Raises ValueError without slots, for keys that do not ascend, and for teams that are not different
    partitions from 0 up to `partitions`.
    """

    partitions: int
    slots: tuple[tuple[int, ...], ...]
    keys: tuple[KeyPlace, ...] = ()

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError("a placement has at least one partition")
        if not self.slots:
            raise ValueError("a placement has at least one hash slot")
        if any(first.key >= second.key for first, second in itertools.pairwise(self.keys)):
            raise ValueError("the keys of a placement ascend")
        for team in {*self.slots, *(place.team for place in self.keys)}:
            if not team or len(set(team)) < len(team) or min(team) < 0 or max(team) >= self.partitions:
                raise ValueError(f"a team is of different partitions from 0 to {self.partitions - 1}, not {team}")
