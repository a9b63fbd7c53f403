"""The gapless hash map with its arrays, which grow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sqlext_operators.interval_join.sweep.events import Ids
from sqlext_operators.interval_join.sweep.kernels.map import MapArrays, insert_all

_LEAST_CAPACITY = 64
_WORD = 64


class GaplessMap:
    """Keys of one integer type, with two int64 each if `paired`, in contiguous arrays (kernels/map.py).

    Kernels change `arrays` and report the new `size`. Entries 0 to size - 1 are in.
    """

    def __init__(self, key_type: npt.DTypeLike, paired: bool = False) -> None:
        self._key_type = np.dtype(key_type)
        self._paired = paired
        self.size = 0
        self.arrays = self._new(_LEAST_CAPACITY)

    @property
    def capacity(self) -> int:
        """How many entries there is room for."""
        return len(self.arrays.after)

    @property
    def keys(self) -> Ids:
        """The keys that are in, as a view in the order of a scan."""
        keys: Ids = self.arrays.keys[: self.size]
        return keys

    def reserve(self, entries: int) -> None:
        """Make room for that many entries in all."""
        capacity = self.capacity
        if entries <= capacity:
            return
        while capacity < entries:
            capacity *= 2
        wider = self._new(capacity)
        insert_all(self.arrays, self.size, wider)
        self.arrays = wider

    def _new(self, capacity: int) -> MapArrays:
        pairs = capacity if self._paired else 0
        return MapArrays(
            np.empty(capacity, self._key_type),
            np.empty(pairs, np.int64),
            np.empty(pairs, np.int64),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.full(capacity, -1, np.int32),
            _WORD - (capacity.bit_length() - 1),
        )
