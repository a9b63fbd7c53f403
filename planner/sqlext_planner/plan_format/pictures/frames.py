"""The frames of a window on a time line: a lane for FROM and one for each source, and which rows are in the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlext_planner.plan_format.markup import Markup
from sqlext_planner.plan_format.pictures.frame_samples import FrameSamples, Sample, frame_samples
from sqlext_planner.plan_format.pictures.picture import WIDTH, Picture, arrow, box, dot, line, path, words
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.window.frame import Bound, WindowFrame
from sqlext_planner.window.nodes import WindowGroup, WindowUnion

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


def _row(row: Sample, x: float) -> Iterator[Markup]:
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
