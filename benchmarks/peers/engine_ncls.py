"""NCLS: a nested containment list of the right side, queried with the left; one thread, no keys."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from ncls import NCLS


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Build the list and find all pairs of row numbers; the tables are already in memory."""
    left, right = (pq.read_table(request[side], columns=["id", "ts", "te"]) for side in ("left", "right"))
    a, b, c, d = (side[name].to_numpy() for side in (left, right) for name in ("ts", "te"))
    start = time.perf_counter()
    index = NCLS(c, d, np.arange(len(c)))
    found, others = index.all_overlaps_both(a, b, np.arange(len(a)))
    seconds = time.perf_counter() - start
    ours, theirs = left["id"].to_numpy()[found], right["id"].to_numpy()[others]
    mix = int((ours * (theirs % 1009)).sum())
    checksums = {"l": int(ours.sum()), "r": int(theirs.sum()), "mix": mix}
    return {"seconds": seconds, "rows": len(found), "checksums": checksums}
