"""The frames of a window on a time line: a lane for FROM and one for each source, and which rows are in the window.

A few rows show a frame: which of them are in the window of the current row (docs/reference/windows.md, section 3), on
rows before, at and after the bounds. Distances are drawn to scale up to what fits: a frame of 100 rows is shown with
six.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlext_operators.window.spec import Frame

from sqlext_planner.plan_format.markup import Markup
from sqlext_planner.plan_format.pictures.picture import WIDTH, Picture, arrow, box, dot, line, path, words
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.window.nodes import Bound, WindowFrame, WindowGroup, WindowUnion, ticks_of

#: Ticks of the longest bound in the picture, and the most rows that a bound counts there.
REACH = 100
MOST_ROWS = 6
_MOST_KEPT = 4
#: Where rows lie, as parts of 60 ticks, for FROM (which has the current row at 0) and for the other sources in turn.
_FROM_ROWS = (-82, -68, -60, -41, -24, -9, 0, 0, 18, 46)
_UNION_ROWS = ((-75, -60, -50, -32, -14, 0, 10, 34), (-88, -64, -46, -29, -18, -4, 6, 60), (-70, -55, -37, -21, -7, 26))


@dataclass(frozen=True)
class PictureRow:
    """A row of the picture: its lane (0 is FROM), its place on the line, and what becomes of it."""

    lane: int
    place: int
    state: str
    is_current: bool = False


@dataclass(frozen=True)
class FrameSamples:
    """The rows, oldest to newest, and the bounds of the frame on the same line, None where it has none; whether the
    numbers were made smaller to fit."""

    rows: tuple[PictureRow, ...]
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
        PictureRow(lane, places[number], state[number], number == current) for number, (_, lane) in enumerate(placed)
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


#: From a place on the line to the picture's pixels.
_Scale = Callable[[float], float]
_FROM, _TO = 74, WIDTH - 12
_TOP, _LANE = 32, 24
_LEGEND = (("in", "in the window", 91), ("out", "outside", 189), ("excluded", "left out", 252))
_STATES = {"in": "in the window", "out": "outside", "excluded": "left out", "oversize": "left out by MAXSIZE"}


def window_pictures(node: WindowUnion) -> Iterator[Picture]:
    """A picture for each window."""
    order = None if node.order_by is None else node.order_by.result_type(node.source.dtypes)
    names = [relation_name(_source(child)) for child in node.children]
    for window in node.windows:
        lanes = [names[0], *(names[source + 1] for source in window.sources)]
        yield frame_picture(window, lanes, order, "" if node.order_by is None else str(node.order_by))


def _source(plan: LogicalPlan) -> LogicalPlan:
    """The table that an input reads, or the join that makes its rows."""
    return _source(plan.children[0]) if len(plan.children) == 1 else plan


def frame_picture(window: WindowGroup, lanes: Sequence[str], order_dtype: str | None, order: str) -> Picture:
    """The picture of one window over FROM and other sources, which are called as `lanes` says."""
    frame = window.frame
    samples = frame_samples(frame, order_dtype, len(lanes) - 1)
    scale = _scale(samples)
    bottom = _TOP + _LANE * len(lanes)
    shapes = [*_band(frame, samples, scale, bottom)]
    for lane, name in enumerate(lanes):
        y = _lane(lane)
        shapes += [words(4, y + 4, name, room=_FROM - 14), line(_FROM - 4, y, _TO, y, "axis")]
    for row in samples.rows:
        shapes += _row(row, scale(row.place))
    shapes += [line(_FROM - 4, bottom + 4, _TO, bottom + 4, "time"), arrow(_TO + 6, bottom + 4, 1)]
    shapes.append(words(_TO, bottom + 17, f"{order} \N{RIGHTWARDS ARROW}", "small", "end", _TO - 4))
    shapes += _legend(bottom + 34)
    return Picture(
        f"Window {window.name}", _description(samples, lanes), bottom + 42, tuple(shapes), _caption(window, samples)
    )


def _scale(samples: FrameSamples) -> _Scale:
    """The place of a row's number in the picture."""
    places = [float(row.place) for row in samples.rows]
    places += [bound for bound in (samples.start, samples.end) if bound is not None]
    low, high = min(places), max(places)
    return lambda place: _FROM + 8 + (place - low) / (high - low) * (_TO - _FROM - 16)


def _lane(lane: int) -> float:
    return _TOP + _LANE * lane + _LANE / 2


def _band(frame: WindowFrame, samples: FrameSamples, scale: _Scale, bottom: float) -> Iterator[Markup]:
    """The frame as a band over all lanes, with its bounds."""
    low = _FROM - 4 if samples.start is None else scale(samples.start)
    high = _TO + 2 if samples.end is None else scale(samples.end)
    if frame.unit == "range":  # a dot at a closed bound lies in the band
        low, high = low - (0 if frame.start.open else 5), high + (0 if frame.end.open else 5)
    yield box(low, _TOP, high - low, bottom - _TOP, "band")
    yield from _bound(frame.start, low, 11, -1, bottom)
    yield from _bound(frame.end, high, 24, 1, bottom)


def _bound(bound: Bound, x: float, y: float, towards: int, bottom: float) -> Iterator[Markup]:
    if bound.amount is None:
        yield arrow(x + 3 * towards, _TOP - 5, towards)
    yield line(x, y + 3, x, bottom, "open-bound" if bound.open or bound.amount is None else "bound")
    is_right = x > (_FROM + _TO) / 2
    yield words(x + (-3 if is_right else 3), y, str(bound), "small", "end" if is_right else "start")


def _row(row: PictureRow, x: float) -> Iterator[Markup]:
    y, kind = _lane(row.lane), "row-in" if row.state == "in" else "row-out"
    if row.is_current:
        yield path([(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)], f"{kind} current", closed=True)
    else:
        yield dot(x, y, kind)
    if row.state in ("excluded", "oversize"):
        yield line(x - 5, y - 5, x + 5, y + 5, "cross")
        yield line(x - 5, y + 5, x + 5, y - 5, "cross")


def _legend(y: float) -> Iterator[Markup]:
    x = 8.0
    yield path([(x, y - 10), (x + 6, y - 4), (x, y + 2), (x - 6, y - 4)], "row-in current", closed=True)
    yield words(x + 10, y, "current row", "small")
    for state, told, place in _LEGEND:
        yield dot(place, y - 4, "row-in" if state == "in" else "row-out")
        if state == "excluded":
            yield line(place - 5, y - 9, place + 5, y + 1, "cross")
            yield line(place - 5, y + 1, place + 5, y - 9, "cross")
        yield words(place + 8, y, told, "small")


def _description(samples: FrameSamples, lanes: Sequence[str]) -> str:
    sentences = []
    for lane, name in enumerate(lanes):
        rows = [row for row in samples.rows if row.lane == lane]
        counts = {state: sum(row.state == state for row in rows) for state in _STATES}
        parts = [f"{count} {_STATES[state]}" for state, count in counts.items() if count]
        sentences.append(f"of {len(rows)} rows of {name}, {', '.join(parts)}")
    return "; ".join(sentences)


def _caption(window: WindowGroup, samples: FrameSamples) -> str:
    smaller = " The numbers of rows are drawn smaller." if samples.smaller else ""
    calls = ", ".join(str(call) for call in window.calls)
    return f"{window.frame}. Computes {calls}.{smaller}"
