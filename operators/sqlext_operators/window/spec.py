"""What a window-union operator has to compute: plain frozen data, picklable, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scalar = int | float | str | bool | None


@dataclass(frozen=True)
class Frame:
    """Which rows of the sequence are in the window of a FROM row (docs/reference/windows.md, section 3).

    `start` and `end` are signed distances from the current row: in rows for ``unit="rows"``, in units of the
    order column for ``unit="range"`` (microseconds for a timestamp); None is UNBOUNDED. OPEN bounds are
    already folded in (``5 OPEN PRECEDING`` is -4). ``end == 0 and not end_following`` is CURRENT ROW:
    for a range frame it takes union rows of the same key and *earlier* FROM ties, not later ones.
    `end_following` says that the end was written FOLLOWING with n > 0: every row up to the bound is in, later
    ties included. `start_following` likewise for the start (then the current row is not in the frame).
    `maxsize` (range frames only) keeps the newest rows, the current one counting as one of them if it is in.

    A range frame's bounded ends are NULL for a row whose order is NULL: they reach the NULL rows before it (after
    it for FOLLOWING), and no others; bounded frames of other rows hold no NULL rows. A bound beyond the ends of
    int64 is cut there, as is a distance of more than 2**63 - 1.
    """

    unit: Literal["rows", "range"]
    start: int | None
    end: int | None
    start_following: bool = False
    end_following: bool = False
    maxsize: int | None = None
    exclude_current_row: bool = False
    exclude_current_time: bool = False
    instance_not_in_window: bool = False


@dataclass(frozen=True)
class Call:
    """One aggregate over one window: `function` is a name of the function table, not an alias.

    `args` name columns of the inputs, one for each parameter that is not a literal, in the function's order
    (value, then condition); ``*`` is left out, so count(*) has none and count_where(*, c) has one. `constants`
    are the literal arguments; optional ones may be left out from the right. `openmldb`: the result has OpenMLDB's type
    (a sum of ints is an int), else Spark's. `filtered`: the last of `args` is a condition, and rows for which it is not
    true do not count, whatever the function.

    Checkpoints of streams hold the text of a call, so it is what it was before there were other fields: `openmldb` is
    not in it, since they have the results' types.
    """

    function: str
    args: tuple[str, ...]
    output: str
    constants: tuple[Scalar, ...] = ()
    openmldb: bool = False
    filtered: bool = False

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in ("function", "args", "output", "constants")]
        return f"Call({', '.join(shown + ['filtered=True'] * self.filtered)})"


@dataclass(frozen=True)
class Window:
    """A frame over FROM and some of the union sources.

    `sources` are ids as in `Piece.source`: 1 for the first union source of the specification, ascending; FROM
    (source 0) is always in and never listed. At equal order the first listed union source is the newest, which
    the sequence's order already implies.
    """

    frame: Frame
    sources: tuple[int, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class WindowUnionSpec:
    """All windows that share partition keys and order, so one exchange and one sort.

    `keys` and `order` name columns present in every input; `payload` names the FROM columns that are passed
    through. The operator's output is the payload, then one column for each call, windows in order.
    `ansi` makes overflow of integer and decimal sums an error; otherwise integer sums wrap at their type's
    width and decimals that do not fit are NULL. `time_zone` is the one in which timestamps are written as text.
    """

    keys: tuple[str, ...]
    order: str | None
    payload: tuple[str, ...]
    windows: tuple[Window, ...]
    ansi: bool = False
    time_zone: str = "UTC"
