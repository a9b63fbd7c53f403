"""Rows of an input between two answers of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import whole


class Part(NamedTuple):
    """Some rows; times int64[n] in the order of `batch`, positions int64[n] their places in the input."""

    batch: pa.RecordBatch
    times: Int64s
    positions: Int64s


def joined(parts: Sequence[Part]) -> Part:
    """The rows of several parts (at least one), one part after the other."""
    batch = whole(parts[0].batch.schema, [part.batch for part in parts])
    times = np.concatenate([part.times for part in parts])
    return Part(batch, times, np.concatenate([part.positions for part in parts]))
