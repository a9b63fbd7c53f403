"""How far the windows of a specification reach from a row: what a stream has to keep, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext_operators.window.functions import FUNCTIONS
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

#: Longer reaches are cut here, so that adding them to a time cannot overflow.
FARTHEST = 1 << 61


@dataclass(frozen=True)
class WindowReach:
    """back, ahead   how far windows reach before and after a row, in units of the order column
    rows          how many rows before it of each key and source, whatever their time
    unbounded     some windows begin at the first row there is
    shows_from    some windows hold other FROM rows
    """

    back: int = 0
    ahead: int = 0
    rows: int = 0
    unbounded: bool = False
    shows_from: bool = False


def reach_of(spec: WindowUnionSpec) -> WindowReach:
    """The reach of all windows together."""
    reaches = [window_reach(window) for window in spec.windows]
    return WindowReach(
        max((one.back for one in reaches), default=0),
        max((one.ahead for one in reaches), default=0),
        max((one.rows for one in reaches), default=0),
        any(one.unbounded for one in reaches),
        any(one.shows_from for one in reaches),
    )


def window_reach(window: Window) -> WindowReach:
    """The reach of one window with its calls."""
    frame = window.frame
    shows = not frame.instance_not_in_window
    rows = max((_rows_before(call) for call in window.calls), default=0)
    if frame.unit == "rows":
        before = 0 if frame.start is None else max(-frame.start, 0)
        return WindowReach(0, 0, max(rows, before), frame.start is None, shows)
    ahead = min(max(frame.end or 0, 0), FARTHEST)
    if frame.start is None:  # the newest `maxsize` rows, or all: of the rows that are old enough for every row to come
        back = min(max(-(frame.end or 0), 0), FARTHEST)
        return WindowReach(back, ahead, max(rows, frame.maxsize or 0), frame.maxsize is None, shows)
    return WindowReach(min(max(-frame.start, 0), FARTHEST), ahead, rows, False, shows)


def time_reach(spec: WindowUnionSpec) -> tuple[int, int] | None:
    """(back, ahead) of all windows in units of the order column; None if one has no such bound: its rows are counted,
    or it has no start or no end."""
    frames = [window.frame for window in spec.windows]
    reach = reach_of(spec)
    if reach.rows or any(item.unit == "rows" or item.start is None or item.end is None for item in frames):
        return None
    return reach.back, reach.ahead


def _rows_before(call: Call) -> int:
    """How many rows before the current one a call reads that need not be in the frame (lag)."""
    function = FUNCTIONS[call.function]
    if not function.positional:
        return 0
    return max((n for n in function.complete_constants(call.constants) if isinstance(n, int)), default=0)
