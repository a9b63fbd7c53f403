"""Tiles of the axis of the compared values: the rows of a partition, or of a hot key, in parts that join alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.interval_join.codes import is_plain, plain_codes

#: The tile of rows whose key is not tiled.
UNTILED = -1


@dataclass(frozen=True)
class Tiles:
    """`bounds`, ascending codes, cut the axis into len(bounds) + 1 tiles; each belongs to the tile above it.

    With `hot_keys` (hashes of `keys.hash_keys`) only the rows of these keys are cut into tiles. A window row is copied
    to every tile that its window touches; a probe row is in one. Codes are those of `codes.plain_codes`, the same
    for every value that a join probes; `tile_bounds` makes them.
    """

    bounds: tuple[int, ...]
    hot_keys: tuple[int, ...] | None = None

    @classmethod
    def of_placement(cls, placement: Placement) -> Tiles | None:
        """The tiles of a placement in which all keys with cuts have the same; None if no key has any. Raises ValueError
        for different cuts."""
        cut = {place.key: place.cuts for place in placement.keys if place.cuts}
        if not cut:
            return None
        if len(set(cut.values())) > 1:
            raise ValueError("all keys have the same tiles")
        return cls(next(iter(cut.values())), tuple(cut))

    @cached_property
    def cuts(self) -> Int64s:
        """The bounds as int64[tiles - 1]."""
        return np.array(self.bounds, np.int64)

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return len(self.bounds) + 1

    def of(self, codes: Int64s) -> Int64s:
        """int64[n], the tile of each code."""
        return np.searchsorted(self.cuts, codes, side="right")

    def hot(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_] | None:
        """bool[n], rows whose key is cut into tiles; None for all."""
        if self.hot_keys is None:
            return None
        return np.isin(hashes, np.array(self.hot_keys, np.uint64))


def tile_bounds(samples: Sequence[pa.Array], count: int) -> tuple[int, ...]:
    """Bounds that cut the sampled values of all `samples` into at most `count` tiles of about equally many values.

    Samples are of the probe values of a join (`IntervalJoinSpec.passes`), in proportion to the sides' rows. NULLs are
    ignored. Raises ValueError for a type whose values cannot be cut (strings, binary, long decimals).
    """
    codes = []
    for sample in samples:
        if not is_plain(sample.type):
            raise ValueError(f"values of type {sample.type} cannot be cut into tiles")
        codes.append(plain_codes(sample.drop_null()))
    joined = np.sort(np.concatenate(codes)) if codes else np.empty(0, np.int64)
    if count < 2 or len(joined) == 0:
        return ()
    places = np.arange(1, count) * len(joined) // count
    bounds = np.unique(joined[places])
    return tuple(int(bound) for bound in bounds if bound > joined[0])
