"""A few rows on which a frame shows: which of them are in the window of the current row (docs/reference/windows.md,
section 3), on rows before, at and after the bounds.

Distances are drawn to scale up to what fits: a frame of 100 rows is shown with six.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlext_operators.window.spec import Frame

from sqlext_planner.window.frame import Bound, WindowFrame, ticks_of

#: Ticks of the longest bound in the picture, and the most rows that a bound counts there.
REACH = 100
MOST_ROWS = 6
_MOST_KEPT = 4
#: Where rows lie, as parts of 60 ticks, for FROM (which has the current row at 0) and for the other sources in turn.
_FROM_ROWS = (-82, -68, -60, -41, -24, -9, 0, 0, 18, 46)
_UNION_ROWS = ((-75, -60, -50, -32, -14, 0, 10, 34), (-88, -64, -46, -29, -18, -4, 6, 60), (-70, -55, -37, -21, -7, 26))


@dataclass(frozen=True)
class Sample:
    """A row of the picture: its lane (0 is FROM), its place on the line, and what becomes of it."""

    lane: int
    place: int
    state: str
    is_current: bool = False


@dataclass(frozen=True)
class FrameSamples:
    """The rows, oldest to newest, and the bounds of the frame on the same line, None where it has none; whether the
    numbers were made smaller to fit."""

    rows: tuple[Sample, ...]
    start: float | None
    end: float | None
    smaller: bool


def frame_samples(frame: WindowFrame, order_dtype: str | None, sources: int) -> FrameSamples:
    """The rows for a frame over FROM and so many other sources. A row's state is `in`, `out`, or what left it out:
    `excluded` (an attribute) or `oversize` (MAXSIZE)."""
    drawn, smaller = _drawn(frame, order_dtype)
    lanes = [_FROM_ROWS, *(_UNION_ROWS[source % len(_UNION_ROWS)] for source in range(sources))]
    placed = [(place * REACH // 60, lane) for lane, places in enumerate(lanes) for place in places]
    # Among equals, sources come before FROM, and the source listed first is the newest of them. Of equal rows of FROM
    # the last is the current one, which sees the others.
    placed.sort(key=lambda row: (row[0], -row[1]))
    current = max(number for number, row in enumerate(placed) if row == (0, 0))
    state = _states(drawn, placed, current)
    places = list(range(len(placed))) if frame.unit == "rows" else [place for place, _ in placed]
    rows = tuple(
        Sample(lane, places[number], state[number], number == current) for number, (_, lane) in enumerate(placed)
    )
    if frame.unit == "range":
        start = None if drawn.start is None else float(drawn.start)
        return FrameSamples(rows, start, None if drawn.end is None else float(drawn.end), smaller)
    inside = [row.place for row in rows if row.state != "out"]
    low, high = (min(inside), max(inside)) if inside else (places[current], places[current])
    start = None if drawn.start is None else low - 0.4
    return FrameSamples(rows, start, None if drawn.end is None else high + 0.4, smaller)


def _states(frame: Frame, sequence: Sequence[tuple[int, int]], current: int) -> list[str]:
    in_frame = set(members(frame, sequence, current))
    whole = replace(frame, maxsize=None)
    plain = replace(whole, exclude_current_row=False)
    if frame.unit == "range":
        plain = replace(plain, exclude_current_time=False, instance_not_in_window=False)
    unlimited, reached = set(members(whole, sequence, current)), set(members(plain, sequence, current))
    if frame.unit == "rows" and in_frame:  # where rows are left out others move up: those left out are between
        reached |= set(range(min(in_frame), max(in_frame) + 1))
    others = {number: "oversize" if number in unlimited else "excluded" for number in unlimited | reached}
    return ["in" if number in in_frame else others.get(number, "out") for number in range(len(sequence))]


def members(frame: Frame, sequence: Sequence[tuple[int, int]], current: int) -> list[int]:
    """The numbers of those of the rows (order, source) that are in the frame of the row numbered `current`, the newest
    last. `sequence` is in the operator's order, and no order is NULL."""
    now = sequence[current][0]
    line = [
        number
        for number, (order, source) in enumerate(sequence)
        if number == current
        or not ((frame.instance_not_in_window and source == 0) or (frame.exclude_current_time and order == now))
    ]
    low = float("-inf") if frame.start is None else frame.start
    high = float("inf") if frame.end is None else frame.end
    if frame.unit == "rows":
        here = line.index(current)
        in_frame = [number for place, number in enumerate(line, -here) if low <= place <= high]
    else:
        in_frame = [number for number in line if number == current or low <= sequence[number][0] - now <= high]
        ahead, behind = low > 0, high < 0
        in_frame = [
            number
            for number in in_frame
            if (number > current and frame.end_following)
            or (number < current and not ahead)
            or (number == current and not ahead and not behind)
        ]
    if frame.exclude_current_row:
        in_frame = [number for number in in_frame if number != current]
    return in_frame if frame.maxsize is None else in_frame[-frame.maxsize :]


def _drawn(frame: WindowFrame, order_dtype: str | None) -> tuple[Frame, bool]:
    """The frame with bounds that fit into the picture."""
    resolved = frame.resolve(order_dtype)
    plain = [abs(_plain(bound, frame, order_dtype)) for bound in (frame.start, frame.end)]
    longest, most = max(plain), (REACH if frame.unit == "range" else MOST_ROWS)
    factor = most / longest if longest > most or (longest and frame.unit == "range") else 1.0
    start, end = (
        None if bound.amount is None else _scaled(_plain(bound, frame, order_dtype), factor)
        for bound in (frame.start, frame.end)
    )
    if start is not None and frame.start.open:
        start += 1
    if end is not None and frame.end.open:
        end -= 1
    maxsize = None if frame.maxsize is None else min(frame.maxsize, _MOST_KEPT)
    smaller = (frame.unit == "rows" and factor < 1) or maxsize != frame.maxsize
    return replace(resolved, start=start, end=end, maxsize=maxsize), smaller


def _plain(bound: Bound, frame: WindowFrame, order_dtype: str | None) -> int:
    """The signed distance without OPEN; 0 for UNBOUNDED."""
    ticks = ticks_of(order_dtype if frame.unit == "range" else None)
    return replace(bound, open=False).offset(ticks, is_start=True) or 0


def _scaled(offset: int, factor: float) -> int:
    sign = -1 if offset < 0 else 1
    return sign * max(1, round(abs(offset) * factor)) if offset else 0
