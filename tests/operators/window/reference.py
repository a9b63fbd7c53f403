"""The brute-force twin of the window-union operator, in plain Python: which rows are in a frame, and the result of each
function over them (docs/reference/windows.md, sections 3 to 5). Tests and benchmarks compare the two.

Values are plain Python values; timestamps are integers of microseconds. A row is (order, source, values), order
None for NULL; a sequence is the list of one group's rows in the order of `Piece`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlext_operators.window.spec import Frame, Scalar

from tests.operators.window.twins import TWINS, View
from tests.operators.window.twins.view import Values


@dataclass(frozen=True)
class SequenceRow:
    """One row of a group's sequence."""

    order: int | None
    source: int
    values: Values


def others(frame: Frame, sequence: Sequence[SequenceRow], p: int) -> tuple[list[int], list[int]]:
    """Places of the rows before and after row p that EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW leave."""
    left = []
    for i, row in enumerate(sequence):
        is_instance = frame.instance_not_in_window and row.source == 0
        is_same_time = frame.exclude_current_time and row.order == sequence[p].order
        if i != p and not is_instance and not is_same_time:
            left.append(i)
    return [i for i in left if i < p], [i for i in left if i > p]


def members(frame: Frame, sequence: Sequence[SequenceRow], p: int) -> list[int]:
    """Places of the rows in the frame of row p, oldest to newest."""
    past, future = others(frame, sequence, p)
    if frame.unit == "rows":
        line = [*past, p, *future]
        chosen = [
            i
            for offset, i in enumerate(line, -len(past))
            if (frame.start is None or offset >= frame.start) and (frame.end is None or offset <= frame.end)
        ]
    else:
        is_ahead = frame.start is not None and frame.start > 0
        is_history = frame.end is not None and frame.end < 0
        reach = [i for i in (*past, *future) if in_range(frame, sequence[p].order, sequence[i].order)]
        chosen = [] if is_ahead else [i for i in reach if i < p]
        chosen += [] if is_ahead or is_history else [p]
        chosen += [i for i in reach if i > p] if frame.end_following else []
    if frame.exclude_current_row:
        chosen = [i for i in chosen if i != p]
    return chosen if frame.maxsize is None else chosen[-frame.maxsize :]


def in_range(frame: Frame, current: int | None, order: int | None) -> bool:
    """Whether `order` is between the bounds of a row with order `current`; NULL is below every number."""
    if current is None:
        return order is None or frame.end is None
    if order is None:
        return frame.start is None
    is_above = frame.start is None or order >= current + frame.start
    is_below = frame.end is None or order <= current + frame.end
    return is_above and is_below


def _values(sequence: Sequence[SequenceRow], places: Sequence[int], filtered: bool) -> list[Values]:
    """The values of some rows; if `filtered`, of those whose last value is true, without it."""
    found = [sequence[i].values for i in places]
    return [values[:-1] for values in found if values[-1] is True] if filtered else found


def wrap(value: int, bits: int) -> int:
    """The integer that remains of `value` in `bits` bits of two's complement."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def evaluate(
    function: str,
    frame: Frame,
    sequence: Sequence[SequenceRow],
    types: tuple[pa.DataType, ...],
    constants: tuple[Scalar, ...],
    *,
    openmldb: bool = False,
    filtered: bool = False,
) -> list[Any]:
    """The function's value for each FROM row of one group's sequence (rows of the window's sources only).

    `openmldb` and `filtered` as in `Call`. Sums of integers are not wrapped, sums of decimals and their means not cut
    to the result's precision.
    """
    results = []
    types = types[:-1] if filtered else types
    for p, row in enumerate(sequence):
        if row.source != 0:
            continue
        past, future = others(frame, sequence, p)
        rows, before, after = (
            _values(sequence, places, filtered) for places in (members(frame, sequence, p), past, future)
        )
        own = row.values[:-1] if filtered else row.values
        results.append(TWINS[function](View(rows, [*before, own], types, constants, openmldb, after)))
    return results
