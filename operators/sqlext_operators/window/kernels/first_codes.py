"""Which codes of frames come for the first time."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit


@jit
def first_codes(codes: Int64s, places: Int64s, offsets: Int64s, seen: Int64s, out: Bools) -> None:
    """out[k] = whether codes[places[k]] is not -1 and has not come before in its frame.

    codes int64[n]; places int64[p], those of frame i are places[offsets[i]:offsets[i + 1]]; out bool[p]. seen int64[c]
    is all -1 at first.
    """
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            code = codes[places[k]]
            out[k] = code >= 0 and seen[code] != i
            if code >= 0:
                seen[code] = i
