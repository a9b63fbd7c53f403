"""Which codes of frames come for the first time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sqlext_operators.kernels.jit import jit

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@jit
def first_codes(codes: Int64Array, places: Int64Array, offsets: Int64Array, seen: Int64Array, out: BoolArray) -> None:
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
